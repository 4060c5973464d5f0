import FerryProtocol

extension SQLiteStore {
  package func raiseRetentionHorizon(
    of space: Int64, _ request: HorizonRequest
  ) async throws(StoreError) -> RaisedHorizon {
    try await write { try $0.raiseRetentionHorizon(of: space, request) }
  }

  package func prune(
    _ slice: PruneSlice, of space: Int64
  ) async throws(StoreError) -> PruneStep {
    try await write { try $0.prune(slice, of: space) }
  }

  package func reclaim() async throws(StoreError) -> ReclaimStep {
    try await write { try $0.reclaim() }
  }
}
