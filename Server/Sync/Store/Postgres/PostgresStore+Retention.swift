import FerryPostgres
import FerryProtocol

extension PostgresStore {
  package func prune(
    _ slice: PruneSlice, of space: Int64
  ) async throws(StoreError) -> PruneStep {
    try await run { try PostgresPruning(space: space).prune(slice, on: $0) }
  }

  package func reclaim() async throws(StoreError) -> ReclaimStep {
    do {
      return try await sessionPool.run { [isDistributed] connection in
        try PostgresReclaiming(isDistributed: isDistributed).run(on: connection)
      }
    } catch {
      throw StoreError(postgres: error)
    }
  }
}
