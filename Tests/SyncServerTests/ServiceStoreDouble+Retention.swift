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
      if let failure = state.failure { throw failure }
      return RaisedHorizon(retentionHorizon: 0, head: 0, at: nil)
    }
  }

  func prune(_ slice: PruneSlice, of space: Int64) async throws(StoreError) -> PruneStep {
    .pruned(PrunedRows(), reached: 0, isLast: true)
  }

  func reclaim() async throws(StoreError) -> ReclaimStep { .done }
}
