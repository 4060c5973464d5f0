extension IngestContext {
  /// Returns `true` if a decision made with this context holds in a later transaction. That
  /// transaction has loaded the frame of `later` for the same packets. Nothing of the space has
  /// changed meanwhile.
  ///
  /// Records and the history need no comparison: they change only together with the head.
  /// Tombstones and operations pruned meanwhile could be pruned after the decision as well.
  func isBasis(in later: IngestContext) -> Bool {
    var space = space
    // The name of the next timeline is random.
    if space.nextTimeline != nil, later.space.nextTimeline != nil {
      space.nextTimeline = later.space.nextTimeline
    }
    return space == later.space && now == later.now && hasHadTokens == later.hasHadTokens
      && owners == later.owners && usage == later.usage && total == later.total
      && chains == later.chains && buffered == later.buffered
      && timelineEnds == later.timelineEnds
  }
}
