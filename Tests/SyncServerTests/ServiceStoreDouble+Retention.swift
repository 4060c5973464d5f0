import FerryProtocol

@testable import SyncServer

extension ServiceStoreDouble {
  func setRetention(
    _ retention: Retention, of space: Int64, by mark: AuditMark?
  ) async throws(StoreError) {}

  func raiseFloor(
    of space: Int64, _ request: FloorRequest
  ) async throws(StoreError) -> SpaceFloor {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      return SpaceFloor(floor: 0, head: 0, at: nil)
    }
  }

  func prune(_ slice: PruneSlice, of space: Int64) async throws(StoreError) -> PruneStep {
    .pruned(PrunedRows(), reached: 0, isLast: true)
  }

  func reclaim() async throws(StoreError) -> ReclaimStep { .done }
}
