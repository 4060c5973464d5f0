import FerryProtocol

extension Replica {
  /// Pulls, and proves that what this replica holds is what the server has at that point, its own
  /// unconfirmed changes aside: every row is read, and hash trees are compared, so that little
  /// travels where little differs.
  ///
  /// Reads and writes go on beside it; other syncs of the file wait.
  ///
  /// - Parameter repair: set the rows that differ to what the server has, keeping pending changes.
  ///   The values that they held are kept as conflicts: ``conflicts(limit:openOnly:)`` lists them, and
  ///   ``resolve(_:keeping:)`` chooses one again.
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/refused(_:)``,
  ///   ``ReplicaError/busy(_:)``.
  public func verify(
    repair: Bool = false,
    progress: @escaping @Sendable (VerifyProgress) -> Void = { _ in }
  ) async throws -> VerifyReport {
    try await typed {
      try await engine.verify(readers: readers, mending: repair, progress: progress)
    }
  }
}
