import FerryProtocol

extension IngestEffects {
  /// Creates a notice for each device whose values lost in the merge. The author gets one too: the
  /// answer to the author may be lost.
  mutating func notifyLosers(
    of operation: SyncOperation, _ outcome: Outcome, at sequence: SequenceNumber
  ) {
    guard !outcome.conflicts.isEmpty else { return }
    for device in Set(outcome.conflicts.map(\.loser.device)).sorted() {
      let notice = Notice(
        sequence: sequence, operation: operation.id, key: operation.key,
        conflicts: outcome.conflicts.filter { $0.loser.device == device })
      var json = JSONWriter(capacity: 512)
      json.notice(notice)
      notices.append(NoticeRow(device: device, sequence: sequence, body: json.finish()))
    }
  }
}
