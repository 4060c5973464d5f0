import FerryPersistence

extension Replica {
  /// Runs the steps of a migrator that the file has not run, each in a separate transaction, on the
  /// replica's thread. Reads continue meanwhile. If the process ends in between, the next call
  /// continues.
  ///
  /// ```swift
  /// try await replica.migrate(migrator)
  /// ```
  ///
  /// - Parameter fallback: decides after a failed step. Nothing of the failed step is in the file
  ///   then.
  /// - Throws: `MigrationFailure` if a step fails and there is no fallback; `MigrationError` if the
  ///   file has run other steps; ``ReplicaError/busy(_:)`` if another program locks the file; the
  ///   error of the fallback.
  @discardableResult
  public func migrate(
    _ migrator: Migrator,
    fallback: (@Sendable (MigrationFailure) async throws -> MigrationFallback)? = nil
  ) async throws -> MigrationReport {
    let report = try await MigrationDriver(migrator, fallback).drive {
      try await thread.call { try MigrationSteps(file: $0).done() }
    } run: { step, earlier in
      try await thread.call { try MigrationSteps(file: $0).run(step, after: earlier) }
    }
    wakeWatchers()
    return report
  }
}
