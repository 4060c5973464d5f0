import FerryPostgres

/// Provides connections to the database for the steps of a mirror.
package protocol MirrorConnections: Sendable {
  /// Runs blocking work on a connection. Once started, it runs to the end.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value
  /// Waits before another try of work stopped by programs' locks.
  func pause(_ duration: Duration) async throws
}

extension PostgresPool: MirrorConnections {
  package func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value {
    try await run(in: .push, body)
  }
}

extension MirrorConnections {
  package func pause(_ duration: Duration) async throws { try await Task.sleep(for: duration) }
}
