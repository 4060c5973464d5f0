import FerryProtocol

@testable import FerrySyncServer

extension ServiceStoreDouble {
  func setRetention(
    _ retention: Retention, of space: Int64, by mark: AuditMark?
  ) async throws(StoreError) {}

  func raiseRetentionHorizon(
    of space: Int64, _ request: HorizonRequest
  ) async throws(StoreError) -> RaisedHorizon {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure ?? state.pruningFailures[space] { throw failure }
      return RaisedHorizon(retentionHorizon: 0, head: 0, at: nil)
    }
  }

  func prune(_ slice: PruneSlice, of space: Int64) async throws(StoreError) -> PruneStep {
    state.withLock { $0.prunedSpaces.append(space) }
    return .pruned(PrunedRows(), reached: 0, isLast: true)
  }

  /// The pruning of a space fails from now on.
  func failPruning(of space: Int64, with failure: StoreError) {
    state.withLock { $0.pruningFailures[space] = failure }
  }

  var prunedSpaces: [Int64] { state.withLock { $0.prunedSpaces } }

  func reclaim() async throws(StoreError) -> ReclaimStep { .done }
}
