import FerryConformance
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerrySyncClient
import Synchronization

// Transactions of the device's user, and the steps of the application's schema.
extension DeviceProcess {
  /// Makes one local transaction, if the process is ready for it.
  func perform(_ planned: PlannedAction) {
    guard let replica else { return }
    start { [self] in
      do {
        let written = try await replica.writeMarked { [self] database, marks in
          marks.reason = planned.reason
          return try write(planned, on: database)
        }
        // A process that died has reported nothing, whether it committed or not.
        guard isAlive, written.contains(where: { !$0.isEmpty }) else { return }
        reportOperations(written, by: planned.action.rawValue)
        if random.chance(1, in: 3) { device.observe() }
      } catch {
        fail("write", error)
      }
    }
  }

  /// Passes the operations of a transaction, by ledger, to the oracles.
  func reportOperations(_ written: [[LocalOperation]], by author: String) {
    // Programs' writes that were taken before come first.
    reportWritten()
    let all = written.flatMap { $0 }
    setting.trace.record(.wrote, device.name, "\(author): \(Self.list(all))")
    for (ledger, operations) in zip(device.ledgers, written) where !operations.isEmpty {
      device.committed(operations, in: ledger)
    }
  }

  /// Runs `body` within a transaction, and returns the operations that it recorded, by ledger.
  private func recorded(
    on database: Database, _ body: ([SQLiteConnection]) throws -> Void
  ) throws -> [[LocalOperation]] {
    let ledgers = device.ledgers.map { $0.on(database.connection) }
    let before = try ledgers.map(RecordedOperations.lastSequence)
    try body(ledgers)
    return try zip(ledgers, before).map { try RecordedOperations.read($0, after: $1) }
  }

  /// Describes the operations of a transaction, for a person.
  private static func list(_ operations: [LocalOperation]) -> String {
    let shown = operations.prefix(4).map {
      "\($0.kind.rawValue) \($0.key.table)/\($0.key.record)"
    }
    let rest = operations.count - shown.count
    return shown.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }

  /// Returns the recorded operations of each ledger.
  private func write(
    _ planned: PlannedAction, on database: Database
  ) throws -> [[LocalOperation]] {
    var sizes = Workload.Sizes()
    sizes.largePost = setting.limits.operationsPerPacket * 11 / 10 + 3
    return try recorded(on: database) { ledgers in
      if planned.action == .answer { return try answer(planned, on: database) }
      let statements = try Workload.statements(
        for: planned, deviceName: device.name, level: try Self.level(of: database), sizes: sizes,
        spaces: device.ledgers.map(\.space.value)
      ) { sql in
        // The tables of the device's own space have their usual names here.
        try database.query(ledgers[0].namespace.rewrite(sql)).map(\.values)
      }
      for statement in statements {
        do {
          try database.execute(statement)
        } catch {
          setting.report(
            device,
            DeletesAllowed.judge(
              device: device.name, statement: statement, reason: "\(error)",
              isRefused: (error as? DatabaseError)?.isRefusedWrite == true))
          throw error
        }
      }
      if let batch = Workload.batch(for: planned) {
        try database.batch(batch.table, where: batch.predicate, set: batch.columns)
      }
    }
  }

  /// Brings the tables to the next version of the application's schema.
  func upgrade() {
    guard let replica, !isUpgraded else { return }
    start { [self] in
      do {
        let level = try await replica.write { try Self.level(of: $0) }
        let count = Workload.stepCount(isRecorded: setting.recordsSteps)
        let written = Mutex<[[LocalOperation]]>([])
        let report = try await replica.migrate(
          Workload.steps(upTo: min(level + 1, count)) { [self] database, writes in
            let operations = try recorded(on: database) { _ in
              for write in writes { try database.execute(write) }
            }
            written.withLock { $0 = operations }
          })
        guard isAlive else { return }
        for step in report.ran { setting.trace.record(.upgraded, device.name, step) }
        if report.ran.contains(Workload.recordedStep) {
          reportOperations(written.withLock { $0 }, by: Workload.recordedStep)
        }
        isUpgraded = level + report.ran.count == count
      } catch {
        fail("upgrade", error)
      }
    }
  }

  /// Returns the number of steps that the application's migrator has run.
  private static func level(of database: Database) throws -> Int {
    let made = try database.query("SELECT 1 FROM sqlite_schema WHERE name = 'ferry_steps'")
    guard !made.isEmpty,
      case .integer(let level)? = try database.query("SELECT count(*) FROM ferry_steps").first?
        .values.first
    else { return 0 }
    return Int(level)
  }
}
