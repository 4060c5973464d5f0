import FerryPersistence
import FerrySQLite

/// The connections that read the rows to compare.
enum RowSource: Sendable {
  /// Connections of their own, beside all writes.
  case readers(ReaderPool, SQLNamespace)
  /// The replica's own connection; writes wait meanwhile.
  case replica(ReplicaThread)

  /// Runs `body` in a transaction of the connection.
  func read<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws -> T {
    switch self {
    case .readers(let pool, let names):
      try await pool.read { database in
        guard names.number != 1 else { return try body(database.connection) }
        let ledger = SQLiteConnection(sharing: database.connection, namespace: names)
        // A connection that also writes has the functions of all spaces.
        if !pool.isShared { try KeyFunctions.install(on: ledger) }
        return try body(ledger)
      }
    case .replica(let thread):
      try await thread.run { file in try file.connection.transaction { try body(file.connection) } }
    }
  }
}
