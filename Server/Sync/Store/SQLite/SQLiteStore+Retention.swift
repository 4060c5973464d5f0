import FerryProtocol

extension SQLiteStore {
  package func prune(
    _ slice: PruneSlice, of space: Int64
  ) async throws(StoreError) -> PruneStep {
    try await write { try $0.prune(slice, of: space) }
  }

  package func reclaim() async throws(StoreError) -> ReclaimStep {
    try await write { try $0.reclaim() }
  }
}
