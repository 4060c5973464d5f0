import FerryProtocol

@testable import FerrySyncServer

extension SQLiteStoreFile {
  /// Applies packets as a store does, on one connection: finds the matches of their batches between
  /// two attempts.
  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64
  ) throws -> IngestBatch {
    var matches = BatchMatches()
    while true {
      switch try ingest(packets, into: space, now: now, matches) {
      case .done(_, let batch): return batch
      case .needsMatches(let wanted):
        let shared = SharedMatcher(wanted.matcher)
        while !shared.isDone { try shared.slice { try show(&$0, in: space) } }
        matches = wanted.kept
        matches.merge(shared.matches(since: wanted.origin))
      }
    }
  }
}
