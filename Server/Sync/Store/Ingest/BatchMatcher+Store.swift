import FerryProtocol

extension BatchMatcher {
  /// Hands over the matches of a plan's batch operations, found outside of this transaction, and
  /// examines changed records again. Throws ``BatchesToMatch`` if some matches are missing.
  ///
  /// - Parameters:
  ///   - place: Returns the place of an operation in the history.
  ///   - changed: Shows the states of records changed after a place.
  ///   - load: Loads the states of records into the context.
  func handOver(
    _ matches: BatchMatches, to context: inout IngestContext,
    place: (OperationID) throws -> HistoryPlace?,
    changed: (SequenceNumber, (RecordKey, UnsafeRawBufferPointer) throws -> Void) throws -> Void,
    load: ([RecordKey], inout IngestContext) throws -> Void
  ) throws {
    var matcher = self
    let kept = matches.kept(in: context.space, place: try matches.origin?.newest.flatMap(place))
    guard let origin = kept.origin, matcher.adopt(kept) else {
      throw BatchesToMatch(matcher: self, origin: HistoryOrigin(context.space), kept: kept)
    }
    if origin.head < context.space.head {
      try changed(origin.head) { try matcher.revise($0, $1) }
    }
    try load(matcher.finish(into: &context), &context)
    context.dropAbsentMatches()
  }
}

extension IngestAttempt {
  /// Attempts before the space counts as busy because of faster writers.
  private static let roundsMax = 8

  /// Repeats attempts at packets until the matches of their batch operations are known. Returns the
  /// head before the packets, and their results.
  ///
  /// - Parameters:
  ///   - attempt: Applies the packets in one transaction, with the known matches.
  ///   - slice: Shows a matcher one slice of the requested records, outside of a transaction.
  static func repeated(
    attempt: (BatchMatches) async throws(StoreError) -> IngestAttempt,
    slice: (SharedMatcher) async throws(StoreError) -> Void
  ) async throws(StoreError) -> (before: SequenceNumber, batch: IngestBatch) {
    var matches = BatchMatches()
    for _ in 0..<roundsMax {
      switch try await attempt(matches) {
      case .done(let before, let batch): return (before, batch)
      case .needsMatches(let wanted):
        let shared = SharedMatcher(wanted.matcher)
        while !shared.isDone { try await slice(shared) }
        matches = wanted.kept
        matches.merge(shared.matches(since: wanted.origin))
      }
    }
    throw .busy("the space changes faster than the server can match its batches")
  }
}
