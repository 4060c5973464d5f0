import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  func saveNotices(_ rows: [IngestEffects.NoticeRow], in space: Int64) throws {
    try perform(IngestEffects.writes(rows, in: space))
  }

  /// Reads the asking device's notices after the cursor, as many as a page may hold. One operation
  /// may have made two notices for it, under two of its names.
  func notices(
    for request: PullRequest, in space: Int64, to head: SequenceNumber
  ) throws -> NoticeFeed {
    if request.device == nil { return NoticeFeed() }
    let received = request.cursor?.received ?? 0
    // Notices of a device of another principal are only for this principal.
    let names = try request.addressees.filter { name in
      try known([name], in: space).first?.owner.leaves(deviceTo: request.principal) ?? false
    }
    if names.isEmpty { return NoticeFeed() }
    let newest = try newestNotice(for: names, in: space, to: head)
    guard newest > received else { return NoticeFeed() }
    let places = Array(repeating: "?", count: names.count).joined(separator: ", ")
    let find = try connection.statement(
      """
      SELECT sequence, group_concat(body) FROM notices
      WHERE space = ? AND sequence > ? AND sequence <= ? AND device IN (\(places)) GROUP BY sequence
      ORDER BY sequence
      """)
    defer { find.reset() }
    find.bind(space, received, head, SQLiteList(names))
    var rows: [NoticeFeed.Row] = []
    var bytes = 0
    while rows.count < request.limit, bytes < request.byteLimit, try find.step() {
      let row = NoticeFeed.Row(sequence: find.int64(0), body: Array(find.textBytes(1)))
      bytes += row.body.count
      rows.append(row)
    }
    return NoticeFeed(rows, newest: newest)
  }

  /// Returns the place of the newest one; 0 if there is none.
  private func newestNotice(
    for devices: [DeviceID], in space: Int64, to head: SequenceNumber
  ) throws -> SequenceNumber {
    let last = try connection.statement(
      """
      SELECT coalesce(max(sequence), 0) FROM notices
      WHERE space = ? AND device = ? AND sequence <= ?
      """)
    var newest: SequenceNumber = 0
    for device in devices {
      newest = max(newest, try last.first(space, device.value, head) { $0.int64(0) } ?? 0)
    }
    return newest
  }
}
