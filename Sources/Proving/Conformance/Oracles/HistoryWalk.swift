import FerryProtocol

/// The server's history in order, with the moments at which missing records were forgotten. For
/// later operations such a record never existed (SPEC.md §13).
struct HistoryWalk {
  private let history: [HistoryEntry]
  private let forgotten: [ForgottenRecord]
  private var next = 0
  private var nextForgotten = 0

  init(_ server: ServerEvidence) { (history, forgotten) = (server.history, server.forgotten) }

  /// Continues through everything up to a sequence.
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
  /// Returns `true` if the operation was pruned before another came. If a copy of a file sends it
  /// again after that, the server cannot recognise it.
  func isForgotten(before later: HistoryEntry) -> Bool {
    prunedAt.map { $0 < later.sequence } ?? false
  }
}
