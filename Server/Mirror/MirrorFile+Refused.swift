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
    /// True while the replica still has the program's values, until the space's record is fetched.
    var isAwaited: Bool
    /// True if a program has written to the row since then.
    var isRewritten: Bool
  }

  /// Returns the rows of refused transactions, with their entries of the quarantine. The replica
  /// has the space's rows again, and PostgreSQL keeps the programs' rows.
  func refused(
    _ connection: SQLiteConnection
  ) throws -> (rows: [UnsentRow], entries: [Int64]) {
    var (entries, awaited): (Set<Int64>, Set<Int64>) = ([], [])
    var (rows, places): ([UnsentRow], [[String?]: Int]) = ([], [:])
    for operation in try refusedOperations(connection) {
      guard let table = plan.table(operation.table),
        let key = table.key(ofRecord: operation.record)
      else { continue }
      entries.insert(operation.entry)
      if operation.isAwaited {
        awaited.insert(operation.entry)
        continue
      }
      let name = [operation.table] + key
      guard let place = places[name] else {
        places[name] = rows.count
        rows.append(Self.unsent(operation, key))
        continue
      }
      // The last operation on the row decides whether the table has it.
      let former = rows[place]
      rows[place] = Self.unsent(operation, key)
      if operation.reason == nil, !former.canRetry {
        (rows[place].reason, rows[place].canRetry) = (former.reason, operation.isRewritten)
      }
    }
    return (rows, entries.subtracting(awaited).sorted())
  }

  private func refusedOperations(
    _ connection: SQLiteConnection
  ) throws -> [RefusedOperation] {
    try connection.rows(
      """
      SELECT entry, tbl, record, kind = 'delete', code, detail, EXISTS (
        SELECT 1 FROM ferry_refresh AS r WHERE r.tbl = q.tbl AND r.record = q.record),
        code IS NOT NULL AND EXISTS (SELECT 1 FROM ferry_operations AS o
          WHERE o.seq > q.seq AND o.record = q.record AND o.tbl = q.tbl AND o.state < 2)
      FROM ferry_quarantine AS q ORDER BY entry, seq
      """
    ) { row in
      RefusedOperation(
        entry: row.int64(0), table: row.text(1), record: row.text(2),
        isDelete: row.int64(3) != 0, reason: row.isNull(4) ? nil : row.text(5),
        isAwaited: row.int64(6) != 0, isRewritten: row.int64(7) != 0)
    }
  }

  private static func unsent(_ operation: RefusedOperation, _ key: [String?]) -> UnsentRow {
    let subject = operation.isDelete ? "its delete" : "it"
    return UnsentRow(
      table: operation.table, key: key,
      reason: operation.reason.map { "the space refuses \(subject): \($0)" }
        ?? "the space refuses another row of the same transaction",
      canRetry: operation.reason == nil || operation.isRewritten, isGone: operation.isDelete)
  }
}
