import FerryMissionServer

/// A lock against the collection of content, until it is released: on this machine, and on the
/// other nodes of the store.
package struct ContentHold: Sendable {
  private let local: BlobHold
  private let others: (any Sendable)?

  /// - Parameter isExclusive: Whether no publisher may hold one, as the collector requires.
  init(
    _ blobs: any ContentStore, _ store: any SyncStore, isExclusive: Bool
  ) async throws(MissionFailure) {
    do {
      let threads = blobs.local
      local = try await isExclusive ? threads.acquireForCollecting() : threads.acquire()
    } catch {
      throw .content(error)
    }
    others =
      blobs.locksAllNodes
      ? nil
      : try await MissionFailure.asking { () async throws(StoreError) in
        try await store.lockContent(isExclusive: isExclusive)
      }
  }
}
