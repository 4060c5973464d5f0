import FerryPersistence
import FerryProtocol
import FerrySQLite

/// Transactions of programs refused by the space.
extension MirrorFile {
  /// An operation in the quarantine of the mirror's replica.
  private struct RefusedOperation {
    var entry: Int64
    var table: String
    var record: String
    var isDelete: Bool
    /// The server's reason; `nil` if another operation of the transaction is the reason.
    var reason: String?
    /// The record with the unique value, if this is the reason.
    var holder: String?
    /// True while the replica still has the program's values, until the space's record is fetched.
    var isAwaited: Bool
    /// True if another operation of the transaction is the reason, or if a program has since
    /// written to the row, or to the record with the unique value.
    var canRetry: Bool
    /// True if another device has replaced a confirmed write, with a reason.
    var isOverruled: Bool
    /// The reason for devices, of PostgreSQL's answer to a step.
    var answer: String?
  }

  /// Returns the rows of refused transactions, with their entries of the quarantine. The replica
  /// has the space's rows again, and PostgreSQL keeps the programs' rows.
  ///
  /// - Parameter withAwaited: also rows of records to fetch from the space.
  func refused(
    _ connection: SQLiteConnection, withAwaited: Bool = false
  ) throws -> (rows: [UnsentRow], entries: [Int64]) {
    var (entries, awaited): (Set<Int64>, Set<Int64>) = ([], [])
    var (rows, places): ([UnsentRow], [[String?]: Int]) = ([], [:])
    let records = MirrorRecords(plan, connection)
    for operation in try refusedOperations(connection) {
      guard let table = plan.table(operation.table),
        let key = try records.key(of: operation.record, in: table)
      else { continue }
      entries.insert(operation.entry)
      // The space has had it, and the table gets the later values.
      if operation.isOverruled { continue }
      if operation.isAwaited, !withAwaited {
        awaited.insert(operation.entry)
        continue
      }
      let name = [operation.table] + key
      guard let place = places[name] else {
        places[name] = rows.count
        rows.append(try Self.unsent(operation, key, table, records))
        continue
      }
      // The last operation on the row decides whether the table has it.
      let former = rows[place]
      rows[place] = try Self.unsent(operation, key, table, records)
      if operation.reason == nil, !former.canRetry {
        (rows[place].reason, rows[place].canRetry) = (former.reason, false)
        rows[place].holder = former.holder
      }
    }
    return (rows, entries.subtracting(awaited).sorted())
  }

  private func refusedOperations(
    _ connection: SQLiteConnection
  ) throws -> [RefusedOperation] {
    // SQLite makes `later` first, and reads all operations of the file for it. Each round comes here.
    guard try connection.first("SELECT 1 FROM ferry_quarantine LIMIT 1", row: { _ in true }) != nil
    else { return [] }
    return try connection.rows(
      """
      WITH later AS MATERIALIZED (
        SELECT tbl, record, max(seq) AS seq FROM ferry_operations
        WHERE state < 2 AND seq > (SELECT min(seq) FROM ferry_quarantine) GROUP BY tbl, record)
      SELECT entry, q.tbl, q.record, kind = 'delete', code, detail, EXISTS (
          SELECT 1 FROM ferry_refresh AS r WHERE r.tbl = q.tbl AND r.record = q.record), holder,
        code IS NULL OR own.seq > q.seq OR other.seq > q.seq, code IS 'overruled', q.reason
      FROM ferry_quarantine AS q
        LEFT JOIN later AS own ON own.tbl = q.tbl AND own.record = q.record
        LEFT JOIN later AS other ON other.tbl = q.tbl AND other.record = q.holder
      ORDER BY entry, q.seq
      """
    ) { row in
      RefusedOperation(
        entry: row.int64(0), table: row.text(1), record: row.text(2),
        isDelete: row.int64(3) != 0, reason: row.isNull(4) ? nil : row.text(5),
        holder: row.optionalText(7), isAwaited: row.int64(6) != 0,
        canRetry: !row.isNull(8) && row.int64(8) != 0, isOverruled: row.int64(9) != 0,
        answer: row.optionalText(10))
    }
  }

  /// Returns the rows with refused operations whose records are to be fetched, by table and key. Such a
  /// row may lack the amounts of others that are refused, and PostgreSQL has them all.
  func awaitedRows(_ connection: SQLiteConnection) throws -> Set<[String?]> {
    var found: Set<[String?]> = []
    let records = MirrorRecords(plan, connection)
    for operation in try refusedOperations(connection)
    where operation.isAwaited && !operation.isOverruled {
      guard let table = plan.table(operation.table),
        let key = try records.key(of: operation.record, in: table)
      else { continue }
      found.insert([operation.table] + key)
    }
    return found
  }

  /// Moves the changes of such rows behind a begun step.
  func postponeAwaited(_ database: Database) throws {
    for row in try awaitedRows(database.connection) {
      guard let name = row[0], let table = plan.table(name) else { continue }
      let key = Array(row.dropFirst())
      guard try isNoted(table, key, database.connection) else { continue }
      try mark(table, try table.values(ofKey: key), database)
    }
  }

  /// Returns the rows of writes with refused operations, in tables whose columns sum up or merge
  /// writes.
  func refusedRows(
    in writes: [CapturedWrite], _ connection: SQLiteConnection
  ) throws -> RefusedRows {
    var found = RefusedRows()
    let tables = plan.tables.filter { !$0.merging.isEmpty }
    guard
      writes.contains(where: { write in tables.contains { $0.name.text == write.table } })
    else { return found }
    for write in try refusedWrites(connection) {
      if !write.isAwaited {
        found.places[write.row, default: []].append(write.place)
      } else if write.isInsert {
        found.absent.insert(write.row)
      }
      found.changes[write.row, default: []] += write.changes(withAwaited: false)
    }
    return found
  }

  /// Records that a write has replaced the refused operations on a row: it contains their amounts.
  func recordReplaced(
    by write: CapturedWrite, _ refused: RefusedRows, _ database: Database
  ) throws {
    guard write.isOfWholeRow, let places = refused.places[[write.table] + write.key] else { return }
    try database.execute(
      single: """
        DELETE FROM "mirror.replaced" WHERE seq NOT IN (SELECT seq FROM ferry_quarantine)
        """)
    for place in places {
      try database.execute(
        single: "INSERT OR IGNORE INTO \"mirror.replaced\" VALUES (?)", [.integer(place)])
    }
  }

  /// Returns the entries of the quarantine with a replaced operation: to send them again would add
  /// amounts twice.
  func replacedEntries(_ connection: SQLiteConnection) throws -> Set<Int64> {
    Set(
      try connection.rows(
        """
        SELECT DISTINCT entry FROM ferry_quarantine AS q WHERE \(RefusedWrite.isReplaced)
        """
      ) { $0.int64(0) })
  }

  private static func unsent(
    _ operation: RefusedOperation, _ key: [String?], _ table: MirrorTable,
    _ records: MirrorRecords
  ) throws -> UnsentRow {
    let subject = operation.isDelete ? "its delete" : "it"
    return UnsentRow(
      table: operation.table, key: key,
      reason: operation.reason.map { "the space refuses \(subject): \($0)" }
        ?? "the space refuses another row of the same transaction",
      canRetry: operation.canRetry, isGone: operation.isDelete,
      holder: try operation.holder.flatMap { try records.key(of: $0, in: table) },
      answer: operation.answer)
  }
}

/// Rows of captured writes with operations in the quarantine, by table and key.
struct RefusedRows: Sendable, Equatable {
  /// The places of the operations on fetched records.
  var places: [[String?]: [Int64]] = [:]
  /// The refused changes of these rows, in columns whose writes add up or merge.
  var changes: [[String?]: [UnsentChange]] = [:]
  /// Rows that the space does not have: it has refused the insert. The replica has them until it
  /// fetches the record, so a write to them would reach the space as one to another row.
  var absent: Set<[String?]> = []

  /// Returns the failure of a write that the space would add to the row's next insert.
  func failure(of write: CapturedWrite) -> FailedWrite? {
    let isContent = write.kind == .update || write.isOfWholeRow
    guard isContent, absent.contains([write.table] + write.key) else { return nil }
    return FailedWrite(
      write: write, reason: "the space refuses the record", mayWait: false, canRetry: true)
  }
}

extension CapturedWrite {
  /// True if the write has the row as PostgreSQL has it, with all writes before.
  fileprivate var isOfWholeRow: Bool { [.slice, .insert, .answer].contains(kind) && !isDelete }
}
