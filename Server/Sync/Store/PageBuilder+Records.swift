import FerryProtocol

// The answer to a request for single records: a page without a place in any pull list.
extension PageBuilder {
  /// Begins an answer with whole records.
  init(records count: Int, byteLimit: Int) {
    self.init(PullRequest(cursor: nil, limit: count, byteLimit: byteLimit, device: nil))
  }

  /// True if another record may be named. There is always room for one.
  var hasRoomForRecord: Bool { count == 0 || changes.count < request.byteLimit }

  /// Adds a delete of a missing record.
  mutating func addAbsent(_ key: RecordKey) {
    count += 1
    changes.element()
    changes.change(.absent(key))
  }

  /// Returns the encoded answer. The cursor asks from the start, so a repeated answer skips
  /// nothing.
  mutating func finishRecords(epoch: Epoch, head: SequenceNumber, now: Int64) -> [UInt8] {
    whole(
      PageHead(
        epoch: epoch, head: head, cursor: Cursor(epoch: epoch, applied: 0), more: true,
        appliedTail: nil, serverTime: now, count: count))
  }
}
