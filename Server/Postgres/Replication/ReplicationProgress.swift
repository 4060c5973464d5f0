/// The positions of a reader of the log, and the position up to which the server may forget it; pure.
///
/// The server sends transactions again after a break, from the last confirmed position. Those up to
/// the stored position are skipped.
package struct ReplicationProgress: Sendable, Equatable {
  /// The end of the last transaction in the reader's tables.
  package private(set) var stored: PostgresLSN
  /// All before it is stored, or of no interest.
  package private(set) var confirmed: PostgresLSN
  /// The end of the received log.
  package private(set) var received: PostgresLSN

  /// - Parameter stored: the position in the reader's tables at the start.
  package init(stored: PostgresLSN) {
    (self.stored, confirmed, received) = (stored, stored, stored)
  }

  /// Records a received message of the plugin.
  package mutating func receive(at start: PostgresLSN) { received = max(received, start) }

  /// Returns `true` if the transaction with this commit is stored already.
  package func isStored(commit: PostgresLSN) -> Bool { commit < stored }

  /// Records that all received transactions are stored, the last one with this end.
  package mutating func store(_ end: PostgresLSN) {
    stored = max(stored, end)
    (received, confirmed) = (max(received, end), max(confirmed, end))
  }

  /// Records a report of the server: it has sent everything before the position. Even if nothing of
  /// it concerns the reader, it is confirmed: the server keeps the log from there on.
  ///
  /// - Parameter isIdle: whether all received transactions are complete and stored.
  package mutating func keepalive(_ end: PostgresLSN, isIdle: Bool) {
    received = max(received, end)
    if isIdle { confirmed = max(confirmed, end) }
  }
}
