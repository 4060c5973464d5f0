import FerryProtocol

extension IngestEffects {
  /// Creates a notice for each device whose values lost in the merge. The author gets one too: the
  /// answer to the author may be lost.
  ///
  /// - Parameters:
  ///   - overruled: Other devices' values that the operation overrules with a reason.
  ///   - author: The operation's device.
  mutating func notifyLosers(
    of operation: SyncOperation, _ outcome: Outcome, overruled: [Conflict] = [],
    by author: DeviceID, at sequence: SequenceNumber
  ) {
    guard !outcome.conflicts.isEmpty || !overruled.isEmpty else { return }
    let known = Set(overruled.map(LostPart.init))
    let conflicts = overruled + outcome.conflicts.filter { !known.contains(LostPart($0)) }
    let overruling = operation.reason.map {
      Notice.Overruling(kind: operation.kind, reason: $0)
    }
    for device in Set(conflicts.map(\.loser.device)).sorted() {
      let notice = Notice(
        sequence: sequence, operation: operation.id, key: operation.key,
        conflicts: conflicts.filter { $0.loser.device == device },
        overruling: device == author ? nil : overruling)
      var json = JSONWriter(capacity: 512)
      json.notice(notice)
      notices.append(NoticeRow(device: device, sequence: sequence, body: json.finish()))
    }
  }
}

/// A part of a record that one device lost.
private struct LostPart: Hashable {
  let column: Name?
  let loser: Stamp

  init(_ conflict: Conflict) { (column, loser) = (conflict.column, conflict.loser) }
}
