import FerryProtocol
import FerrySQLite

/// Records returning with a row that refers to them (SPEC.md §6, §28).
struct FormerParents {
  let rows: RecordRows
  let former: FormerRows
  /// This device.
  let device: DeviceID
  private var tables: LocalTables { rows.tables }

  /// The most records returning with one row.
  private static let countMax = 100

  /// A row that may return, and the records it refers to.
  struct ReferringRow {
    let columns: [Column]
    let parents: [RecordKey]
  }

  // MARK: Before a delete

  /// Returns the row of a record; `nil` if it has none.
  func row(_ key: RecordKey) throws -> ReferringRow? {
    guard let table = try? tables.schema(of: key.table), let columns = try rows.row(key, table)
    else { return nil }
    let keys = try tables.parentRules().parents(of: table.local)
    return ReferringRow(
      columns: columns, parents: try tables.foreignKeys.parents(of: key.record, by: keys))
  }

  /// Stores a row for an answer that restores it, with the rows it refers to, directly or through
  /// others: the same list may delete them.
  func store(_ row: ReferringRow, of key: RecordKey, deletedBy stamp: Stamp) throws {
    try former.store(FormerRow(columns: row.columns, deleted: stamp), of: key)
    var (seen, open) = (Set([key]), row.parents)
    while let key = open.popLast(), seen.count <= Self.countMax {
      guard seen.insert(key).inserted, let row = try self.row(key) else { continue }
      try former.store(FormerRow(columns: row.columns, deleted: stamp), of: key)
      open += row.parents
    }
  }

  // MARK: Before a row returns

  /// Inserts missing records again before a row refers to them, as this device had them last.
  ///
  /// - Parameter columns: the new values of the row.
  /// - Throws: ``ReplicaError/cannotAnswer(_:advice:)`` if the device does not have the values of
  ///   such a record.
  func insert(for key: RecordKey, _ columns: [Column]) throws {
    for (parent, columns) in try missing(for: key, columns) {
      let plan = try tables.plainPlan(for: parent.table)
      try plan.upsert(parent.record, plan.unstamped(columns), isWhole: false, kept: [])
      try tables.log(
        "returned",
        "\(parent.table)/\(parent.record) is here again: \(key.table)/\(key.record), which refers to it, "
          + "comes back")
    }
  }

  /// Returns the missing records that a row refers to, as this device had them last, each after the parents
  /// of the record.
  ///
  /// - Parameter columns: the new values of the row.
  /// - Throws: ``ReplicaError/cannotAnswer(_:advice:)`` if the device does not have the values of
  ///   such a record.
  func missing(
    for key: RecordKey, _ columns: [Column]
  ) throws -> [(key: RecordKey, columns: [Column])] {
    var order: [(RecordKey, [Column])] = []
    var seen: Set<RecordKey> = [key]
    try addParents(of: key, columns, &seen, to: &order)
    return order
  }

  private func addParents(
    of key: RecordKey, _ columns: [Column], _ seen: inout Set<RecordKey>,
    to order: inout [(RecordKey, [Column])]
  ) throws {
    for reference in try tables.parentRules().references(of: key.table) {
      guard let parent = reference.parent(of: key.record, columns), seen.insert(parent).inserted,
        try !rows.has(parent)
      else { continue }
      guard seen.count <= Self.countMax, let row = try former.newest(of: parent, by: device) else {
        throw ReplicaError.cannotAnswer(
          "\(key.table) \(key.record) refers to \(parent.table) \(parent.record), which does not exist, and "
            + "this device does not have its former values",
          advice:
            "insert \(parent.table) \(parent.record) first, or choose another record with --set")
      }
      try addParents(of: parent, row.columns, &seen, to: &order)
      order.append((parent, row.columns))
    }
  }
}
