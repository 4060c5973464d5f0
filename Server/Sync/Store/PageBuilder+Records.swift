import FerryProtocol

// The answer to a request for single records: a page without a place in any pull list.
extension PageBuilder {
  /// Begins an answer that names records whole.
  init(records count: Int, byteLimit: Int) {
    self.init(PullRequest(cursor: nil, limit: count, byteLimit: byteLimit, device: nil))
  }

  /// Whether another record may be named. There is always room for one.
  var hasRoomForRecord: Bool { count == 0 || changes.count < request.byteLimit }

  /// Adds a delete of a record that is not there.
  mutating func addAbsent(_ key: RecordKey) {
    count += 1
    changes.element()
    changes.change(.absent(key))
  }

  /// Returns the encoded answer. Its cursor asks from the start, so that sending it again skips
  /// nothing.
  mutating func finishRecords(epoch: Epoch, head: SequenceNumber, now: Int64) -> [UInt8] {
    whole(
      PageHead(
        epoch: epoch, head: head, cursor: Cursor(epoch: epoch, applied: 0), more: true,
        appliedTail: nil, serverTime: now, count: count))
  }
}
