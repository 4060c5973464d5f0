import FerryProtocol
import FerrySQLite

/// Pulled changes not applied yet, for people: the view `ferry_to_apply` (S1.12).
enum StagedChanges {
  /// The function to list the changes in a stored page, a blob, or in a stored state, a text.
  /// Quoted, so the views of all spaces of a file call the same function.
  private static let function: Name = "ferry_changes"

  /// The view. The columns have the names of those of `ferry_pending`.
  static let view = """
    CREATE VIEW ferry_to_apply AS             -- pulled changes that are not applied yet, for people
      SELECT operation, tbl, record, kind, data,
        coalesce(lag(operation) OVER (ORDER BY page, place), (SELECT applied FROM ferry_replica))
          AS dependency,
        \(time) AS time, 'the rest of its pull list is missing' AS reason
      FROM (SELECT page, c.key AS place, json_extract(c.value, '$.operation') AS operation,
        json_extract(c.value, '$.table') AS tbl, json_extract(c.value, '$.record') AS record,
        \(members) FROM ferry_staged, json_each(\(quoted(function))(body)) AS c)
      UNION ALL
      SELECT operation, tbl, record, kind, data, NULL, \(time),
        coalesce(reason, 'its table or column does not exist here yet')
      FROM (SELECT k.sequence AS operation, k.tbl, k.record, k.reason, \(members)
        FROM ferry_kept AS k LEFT JOIN json_each(\(quoted(function))(CAST(k.state AS TEXT))) AS c);

    """

  private static let members = """
    json_extract(c.value, '$.kind') AS kind, json_extract(c.value, '$.data') AS data,
        json_extract(c.value, '$.time') AS ms
    """

  private static let time = "strftime('%Y-%m-%dT%H:%M:%fZ', ms / 1000.0, 'unixepoch')"

  /// Registers the view's function, once for all spaces of the file.
  ///
  /// - Parameter callers: the schemas with views that may call it.
  static func install(
    on connection: SQLiteConnection, callers: SQLiteFunctionCallers = .trusted
  ) throws {
    guard connection.namespace.number == 1 else { return }
    try connection.addFunction(
      function.text, argumentCount: 1, isDeterministic: true, callers: callers
    ) { arguments, answer in
      do {
        let changes =
          arguments.type(0) == .blob
          ? try changes(inPage: Array(arguments.blobBytes(0)))
          : changes(inState: Array(arguments.textBytes(0)))
        list(changes).withUnsafeBufferPointer { answer.set(text: $0) }
      } catch {
        answer.fail("ferry: \(error)")
      }
    }
  }

  /// Returns the changes of a page as ``StagedPages`` stores it, without unreadable ones.
  private static func changes(inPage stored: [UInt8]) throws -> [Change] {
    let page = try PageFeed(StoredPage(stored), limits: .standard)
    var changes: [Change] = []
    while let batch = try page.next() { changes += batch.compactMap { try? $0.get() } }
    return changes
  }

  /// Returns the change of a record as ``KeptChanges`` stores it; none if it is unreadable.
  private static func changes(inState stored: [UInt8]) -> [Change] {
    let state = stored.withUnsafeBytes {
      try? RecordState(decoding: $0, limits: .standard)
    }
    guard let state else { return [] }
    return [Change(sequence: 0, key: RecordKey(table: "", record: ""), state: state)]
  }

  private static func list(_ changes: [Change]) -> [UInt8] {
    var json = JSONWriter(capacity: 64 + changes.count * 128)
    json.array(of: changes.map { WaitingChange($0, reason: "") }) { json, change in
      json.object { json in
        json.member("operation", change.sequence)
        json.member("table", change.key.table.text)
        json.member("record", change.key.record.text)
        json.member("kind", change.kind.rawValue)
        json.member("time", change.time.milliseconds)
        if change.kind == .delete {
          json.member("data", String?.none)
        } else {
          json.key("data")
          json.columns(change.columns)
        }
      }
    }
    return json.finish()
  }
}
