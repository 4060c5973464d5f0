import FerryConformance
import FerryPersistence
import FerryProtocol
import FerrySyncClient

extension SimulatedDevice {
  /// Returns the values stored in another form by the file's tables than by the defining device.
  func judgeDefinitions() -> [Violation] {
    guard setting.hasOdd, let expected = try? TableBehaviour.expected(),
      let found = look(at: ledgers[0], isApart: true, TableBehaviour.probe)
    else { return [] }
    return zip(found, expected).filter { $0 != $1 }.prefix(3).map { found, expected in
      Violation(oracle: "definitions", "\(name) has \(found), and the author \(expected)")
    }
  }
}

/// Tables defined and published by one device, and created by the others.
extension DeviceProcess {
  /// True if the tables defined by one device are known to be published, or here. A restored server
  /// may have lost the definitions since.
  var areOddTablesArranged: Bool { hasOddTables && device.oddLosses == device.mendedOddLosses }

  /// Publishes the tables, or creates them, if this is left to do. Called after each sync.
  func arrangeOddTables() {
    guard setting.hasOdd, !areOddTablesArranged, !isArrangingOdd, let replica else { return }
    isArrangingOdd = true
    start { [self] in
      defer { isArrangingOdd = false }
      do {
        hasOddTables = try await device.definesOdd ? publish(replica) : create(replica)
      } catch {
        fail("odd tables", error)
      }
    }
  }

  /// Returns true if the space has the definitions. Those pulled here may be lost by the server.
  private func publish(_ replica: Replica) async throws -> Bool {
    let losses = device.oddLosses
    if losses == device.mendedOddLosses, try await isDefined(replica) { return true }
    let report = try await replica.publishTables(Workload.oddTables)
    if let part = report.omitted.first {
      setting.report(
        device, [Violation(oracle: "definitions", "\(part.key) is published without \(part.value)")]
      )
    }
    if isAlive { device.mendedOddLosses = losses }
    return isAlive
  }

  /// Creates the tables from their definitions. Every other device uses other letters for tables
  /// whose rows are here already: a space may have both names otherwise.
  private func create(_ replica: Replica) async throws -> Bool {
    let (known, waiting) = try await replica.write { [self] database in
      let ledger = device.ledgers[0].on(database.connection)
      return (
        try ledger.rows("SELECT name FROM ferry_tables") { $0.name(0) },
        try ledger.rows("SELECT DISTINCT tbl FROM ferry_kept") { $0.name(0) }
      )
    }
    let missing = Workload.oddTables.indices.filter { !known.contains(Workload.oddTables[$0]) }
    if missing.isEmpty { return true }
    let respelled =
      device.connectsLate ? missing.filter { waiting.contains(Workload.oddTables[$0]) } : []
    if !respelled.isEmpty {
      try await replica.write { database in
        for statement in respelled.map({ Workload.oddSchema(isRespelled: true)[$0] }) {
          let ifAbsent = statement.replacing("CREATE TABLE", with: "CREATE TABLE IF NOT EXISTS")
          try database.execute(ifAbsent)
        }
      }
      try await replica.track(respelled.map { Workload.respelledOddTables[$0] })
      if isAlive { setting.trace.record(.migrated, device.name, "made tables with other letters") }
    } else if !device.connectsLate || !setting.dice.isActive, try await isDefined(replica) {
      try await replica.track(missing.map { Workload.oddTables[$0] }, creatingKey: "id")
      if isAlive { setting.trace.record(.migrated, device.name, "created tables as published") }
    }
    return false
  }

  private func isDefined(_ replica: Replica) async throws -> Bool {
    Workload.definesOddTables(try await replica.pulledSchema())
  }
}
