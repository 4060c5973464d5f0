extension IngestContext {
  /// Returns whether a decision that was made with this context holds in a later transaction, which
  /// has loaded `later` for the same packets: nothing of the space has changed meanwhile.
  ///
  /// Records need no comparison. They change only together with the head, or with the retention
  /// horizon.
  func isBasis(in later: IngestContext) -> Bool {
    var space = space
    // The name of a timeline that is about to begin is random.
    if space.nextTimeline != nil, later.space.nextTimeline != nil {
      space.nextTimeline = later.space.nextTimeline
    }
    return space == later.space && now == later.now && hasHadTokens == later.hasHadTokens
      && owners == later.owners && usage == later.usage && total == later.total
      && chains == later.chains && buffered == later.buffered && known == later.known
      && timelineEnds == later.timelineEnds && recordBytes == later.recordBytes
      && refused == later.refused
  }
}
