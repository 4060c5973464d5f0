import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncClient
import Foundation

/// A look at a mirror beside the process that runs it. It writes nothing to the mirror's file, and
/// waits for no writer of it.
struct MirrorLook: Sendable {
  let configuration: MirrorConfiguration
  let ledger: MirrorLedger
  /// Opens the replica's file for reading; returns `nil` if it is lost.
  let openFile: @Sendable () throws -> SQLiteConnection?

  /// The state of the mirror's own file.
  private struct FileState {
    var head: SequenceNumber = 0
    /// Rows of the space that the file cannot hold.
    var waiting: [DeferredRow] = []
    var waitingCount: Int64 = 0
    /// Rows refused by the space, perhaps not listed in PostgreSQL before the next pull.
    var refused: [UnsentRow] = []
  }

  /// - Parameter limit: the most deferred rows, and the most unsent rows; the counts are of all.
  func status(limit: Int, _ connection: PostgresConnection) throws -> Mirror.Status {
    let file = try fileState(limit)
    let stops = try ledger.stops(connection)
    return try connection.transaction(.snapshot) { connection in
      let row = try connection.query(
        .once(
          """
          SELECT applied, (SELECT count(*) FROM ferry_mirror.captured WHERE mirror = $1),
            fault,
            (SELECT count(*) FROM ferry_mirror.deferred WHERE mirror = $1)
          FROM ferry_mirror.mirrors WHERE number = $1
          """), [.int8(ledger.number)]
      ).first
      let unsent = try ledger.unsent.list(connection, limit: Int64(limit))
      let more = try ledger.unsent.unlisted(file.refused, connection)
      let deferred = try ledger.deferred(connection, limit: Int64(limit)) + file.waiting
      return Mirror.Status(
        name: configuration.name, space: configuration.space, applied: try row?.int8(0) ?? 0,
        head: file.head, captured: try row?.int8(1) ?? 0,
        deferred: Array(deferred.prefix(limit)),
        deferredCount: (try row?.int8(3) ?? 0) + file.waitingCount,
        waiting: Int(file.waitingCount), adopted: try ledger.adopted(connection),
        unsent: Array((unsent.rows + more).prefix(limit)),
        unsentCount: unsent.count + Int64(more.count), stops: stops,
        fault: try row?.text(2) ?? "", views: try ledger.failingViews(connection),
        unfilled: try configuration.unfilledViews(ledger, connection),
        log: try MirrorLog.kept(ledger.number, isStopped: !stops.isEmpty, connection),
        capture: configuration.capture, captureReason: configuration.captureReason,
        role: try connection.role())
    }
  }

  private func fileState(_ limit: Int) throws -> FileState {
    guard let file = try openFile() else { return FileState() }
    return try ReplicaSnapshot.read(file) { snapshot in
      var state = FileState(head: try snapshot.head())
      state.waitingCount = Int64(try snapshot.rejectedCount())
      let here = Set(try snapshot.tables())
      // A plan that fails stops the rounds, and no row is refused then.
      let plan = try? configuration.plan(try snapshot.schema(), here: here)
      state.waiting = try snapshot.rejected(limit: limit).map {
        try Self.row($0, plan, snapshot.connection)
      }
      if let plan {
        state.refused = try MirrorFile(plan: plan).refused(snapshot.connection, withAwaited: true)
          .rows
      }
      return state
    } ?? FileState()
  }
}

extension MirrorLook {
  /// Returns a row rejected by the file. If another row has a unique value of it, the reason names
  /// that one.
  private static func row(
    _ record: ReplicaSnapshot.RejectedRecord, _ plan: MirrorPlan?, _ file: SQLiteConnection
  ) throws -> DeferredRow {
    var row = DeferredRow(
      table: record.key.table.text, key: [record.key.record.text], reason: record.reason)
    guard let plan, let table = plan.table(row.table) else { return row }
    let records = MirrorRecords(plan, file)
    guard let key = try records.key(of: record.key.record.text, in: table) else { return row }
    row.key = key
    let values = try Dictionary(
      record.columns.map { ($0.name, try records.value($0.value, of: $0.name, in: table)) }
    ) { $1 }
    let keys = table.key.indices.map { Int32($0) }
    for unique in table.unique {
      let wanted = unique.compactMap { values[$0] }
      // NULL is equal to nothing.
      guard wanted.count == unique.count, !wanted.contains(.null) else { continue }
      let equal = unique.map { "\(quoted($0)) = ?" }.joined(separator: " AND ")
      let holder = try file.first(
        "SELECT \(MirrorFile.keys(table, "")) FROM \(quoted(table.name)) WHERE \(equal)",
        SQLiteList(wanted)
      ) { row in keys.map { row.value($0) } }
      guard let holder, let texts = try? table.texts(ofKey: holder) else { continue }
      let names = unique.map(\.text).joined(separator: ", ")
      row.reason = MirrorFile.reason(row.table, texts, has: names)
      break
    }
    return row
  }
}

extension Mirror {
  /// Returns the status of a mirror at any moment, also while a process runs it.
  ///
  /// - Parameter limit: the most deferred rows, and the most unsent rows; the counts are of all.
  package static func status(
    _ folder: MirrorFolder, limit: Int = Int(MirrorLedger.deferredMax)
  ) async throws -> Status {
    let configuration = try folder.configuration()
    let path = folder.replica
    return try await PostgresPool.once(configuration.database) { pool in
      try await pool.run { connection in
        guard let ledger = try MirrorLedger(configuration.name, connection) else {
          throw MirrorFault.missing(configuration.name)
        }
        let look = MirrorLook(configuration: configuration, ledger: ledger) {
          guard FileManager.default.fileExists(atPath: path) else { return nil }
          return try SQLiteConnection(path: path, mode: .readOnly)
        }
        return try look.status(limit: limit, connection)
      }
    }
  }
}

extension MirrorFault {
  static func taken(_ name: String) -> MirrorFault {
    MirrorFault(
      description: "the database has a mirror \(name) already; choose another name, or remove that "
        + "one with `ferryd mirror remove \(name)`; --database helps if its folder is lost")
  }

  static func missing(_ name: String) -> MirrorFault {
    MirrorFault(
      description: "the database has no mirror \(name); make it with the command that was cut short"
    )
  }
}
