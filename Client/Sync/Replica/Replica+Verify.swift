import FerryProtocol

extension Replica {
  /// Pulls, and proves that this replica has the server's rows, except for own unconfirmed changes.
  /// It reads every row and compares hash trees, so little travels if little differs.
  ///
  /// Reads and writes continue meanwhile; other syncs of the file wait.
  ///
  /// - Parameter repair: true to set differing rows to the server's values, keeping pending
  ///   changes. The former values are kept as conflicts: ``conflicts(limit:openOnly:)`` lists them,
  ///   and ``resolve(_:_:)`` chooses one again.
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/refused(_:)``,
  ///   ``ReplicaError/busy(_:)``.
  public func verify(
    repair: Bool = false,
    progress: @escaping @Sendable (VerifyProgress) -> Void = { _ in }
  ) async throws -> VerifyReport {
    try await thread.exchange { [self] in
      try await engine.verify(readers: readers, repairing: repair, progress: progress)
    }
  }
}
