extension IngestContext {
  /// Returns whether a decision that was made with this context holds in a later transaction, which
  /// has loaded the frame of `later` for the same packets: nothing of the space has changed meanwhile.
  ///
  /// Records and the history need no comparison. They change only together with the head. Tombstones
  /// and operations that are pruned meanwhile could be pruned after the decision as well.
  func isBasis(in later: IngestContext) -> Bool {
    var space = space
    // The name of a timeline that is about to begin is random.
    if space.nextTimeline != nil, later.space.nextTimeline != nil {
      space.nextTimeline = later.space.nextTimeline
    }
    return space == later.space && now == later.now && hasHadTokens == later.hasHadTokens
      && owners == later.owners && usage == later.usage && total == later.total
      && chains == later.chains && buffered == later.buffered
      && timelineEnds == later.timelineEnds
  }
}
