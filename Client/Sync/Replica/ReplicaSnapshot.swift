import FerryProtocol
import FerrySQLite

/// A look at a replica's file beside the processes that use it. It writes nothing, and waits for no
/// writer. Not `Sendable`: it stays on one thread.
package final class ReplicaSnapshot {
  package let connection: SQLiteConnection
  private let file: ReplicaFile

  /// A record of the space rejected by the tables of the file.
  package struct RejectedRecord: Sendable, Equatable {
    package var key: RecordKey
    /// The columns set by the record's last writes.
    package var columns: [Column]
    package var reason: String
  }

  /// Runs `body` with one state of a file.
  ///
  /// - Parameter connection: may be read-only.
  /// - Returns: The result of `body`; `nil` if the file is no replica yet.
  /// - Throws: ``ReplicaError/busy(_:)`` if another program locks out readers.
  package static func read<T>(
    _ connection: SQLiteConnection, in surroundings: ReplicaSurroundings = .system,
    _ body: (ReplicaSnapshot) throws -> T
  ) throws -> T? {
    do {
      return try connection.transaction(.deferred) {
        let isReplica = try connection.exists(
          "SELECT 1 FROM sqlite_master WHERE name = 'ferry_replica'")
        return isReplica ? try body(ReplicaSnapshot(connection, surroundings)) : nil
      }
    } catch let error as SQLiteError {
      throw ReplicaError(error)
    }
  }

  private init(_ connection: SQLiteConnection, _ surroundings: ReplicaSurroundings) {
    self.connection = connection
    let capture = CaptureContext(
      limits: surroundings.limits, wallClock: surroundings.wallClock, random: surroundings.random)
    file = ReplicaFile(
      host: connection, capture: capture, limits: surroundings.limits,
      wallClock: surroundings.wallClock, random: surroundings.random)
  }

  /// The newest change announced by the server.
  package func head() throws -> SequenceNumber { try file.syncState().head }

  /// The names of the tracked tables.
  package func tables() throws -> [Name] { try file.tables.tracked.names() }

  /// The schema of the space as of the last pull.
  package func schema() throws -> SpaceSchema { try file.tables.schemas.current() }

  /// The number of records rejected by the tables of the file.
  package func rejectedCount() throws -> Int { try file.kept.refusedCount() }

  /// Returns records rejected by the tables of the file, oldest first.
  package func rejected(limit: Int) throws -> [RejectedRecord] {
    try file.kept.changes(.refused, limit: limit).map {
      RejectedRecord(
        key: $0.change.key, columns: $0.change.state.columns.map { Column($0.name, $0.value) },
        reason: $0.reason ?? "the table here rejects it")
    }
  }
}
