import FerryProtocol
import SQLite

extension SQLiteStoreFile {
  func saveNotices(_ rows: [IngestEffects.NoticeRow], in space: Int64) throws {
    if rows.isEmpty { return }
    let insert = try connection.statement(
      "INSERT INTO notices(space, device, sequence, body) VALUES (?, ?, ?, ?)")
    for row in rows {
      insert.bind(1, space)
      insert.bind(2, row.device.value)
      insert.bind(3, row.sequence)
      insert.bind(4, text: row.body)
      try insert.run()
    }
  }

  /// The asking device's notices after its cursor, as many as a page may hold.
  func notices(for request: PullRequest, in space: Int64) throws -> NoticeFeed {
    guard let device = request.device else { return NoticeFeed() }
    let received = request.cursor?.received ?? 0
    let last = try connection.statement(
      "SELECT coalesce(max(sequence), 0) FROM notices WHERE space = ? AND device = ?")
    last.bind(1, space)
    last.bind(2, device.value)
    let newest = try last.first { $0.int64(0) } ?? 0
    guard newest > received else { return NoticeFeed() }
    let find = try connection.statement(
      """
      SELECT sequence, body FROM notices WHERE space = ? AND device = ? AND sequence > ?
      ORDER BY sequence
      """)
    defer { find.reset() }
    find.bind(1, space)
    find.bind(2, device.value)
    find.bind(3, received)
    var rows: [NoticeFeed.Row] = []
    var bytes = 0
    while rows.count < request.limit, bytes < request.byteLimit, try find.step() {
      let row = NoticeFeed.Row(sequence: find.int64(0), body: Array(find.textBytes(1)))
      bytes += row.body.count
      rows.append(row)
    }
    return NoticeFeed(rows, newest: newest)
  }
}
