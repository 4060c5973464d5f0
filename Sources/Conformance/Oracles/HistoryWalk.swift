import FerryProtocol

/// The server's history in its order, and between its operations the moments at which records
/// that did not exist were forgotten: what comes later meets a record that never was (SPEC.md §13).
struct HistoryWalk {
  private let history: [HistoryEntry]
  private let forgotten: [ForgottenRecord]
  private var next = 0
  private var nextForgotten = 0

  init(_ server: ServerEvidence) { (history, forgotten) = (server.history, server.forgotten) }

  /// Goes on through everything up to a sequence.
  mutating func advance(
    to last: SequenceNumber = .max, take: (HistoryEntry) -> Void, forget: (RecordKey) -> Void
  ) {
    while next < history.count, history[next].sequence <= last {
      pass(before: history[next].sequence, forget)
      take(history[next])
      next += 1
    }
    pass(before: last, forget)
  }

  private mutating func pass(before sequence: SequenceNumber, _ forget: (RecordKey) -> Void) {
    while nextForgotten < forgotten.count, forgotten[nextForgotten].head < sequence {
      forget(forgotten[nextForgotten].key)
      nextForgotten += 1
    }
  }
}

extension HistoryEntry {
  /// Whether the operation was pruned before another came: sent once more by somebody who had it
  /// from a copy, nobody could know it again.
  func isForgotten(before later: HistoryEntry) -> Bool {
    prunedAt.map { $0 < later.sequence } ?? false
  }
}
