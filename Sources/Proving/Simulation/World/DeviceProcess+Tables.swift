import FerryConformance
import FerryPersistence
import FerryProtocol
import FerrySyncClient

/// The tables of the application on a device.
extension DeviceProcess {
  /// The tables to track, without those with rows of two spaces.
  var trackedTables: [Name] {
    Workload.tables + (setting.hasStrays ? Workload.strays : [])
      + (setting.hasStacks ? Workload.stacked : [])
      + (setting.hasOrders ? Workload.numbered : [])
      + (setting.hasBranches ? Workload.branches : [])
      + (device.definesOdd ? Workload.oddTables : [])
  }

  /// Creates all tables.
  ///
  /// - Parameter shares: true if the file takes part in two spaces.
  func createTables(in database: Database, shares: Bool) throws {
    for statement in Workload.schema {
      // Ferry makes the tables of a mirror's file, and no key of them is checked at commit.
      let atOnce = statement.replacing("DEFERRABLE INITIALLY DEFERRED", with: "")
      try database.execute(device.mirror == nil ? statement : atOnce)
    }
    // Every other device declares foreign keys.
    let isBound = device.name.utf8.last.map { $0.isMultiple(of: 2) } ?? false
    // A copy of a file whose device renames them may have them before all others.
    let find = "SELECT 1 FROM sqlite_schema WHERE name = '\(Workload.sharedRename.table)'"
    let lacksShared = try shares && !device.renamesShared && database.query(find).isEmpty
    var more = lacksShared ? Workload.sharedSchema : []
    if setting.hasStrays { more += Workload.straySchema(isBound: isBound) }
    if setting.hasStacks { more += Workload.stackSchema }
    if setting.hasOrders { more += Workload.orderSchema }
    if setting.hasBranches { more += Workload.branchSchema }
    if device.definesOdd { more += Workload.oddSchema(isRespelled: false) }
    for statement in more { try database.execute(statement) }
  }
}
