import FerryExecutors
import FerryProtocol
import FerrySQLite

/// The rows of missions in their own SQLite file, for any number of processes.
public final class SQLiteMissionStore: MissionStore {
  /// The path of the file.
  public let path: String
  /// Returns the form of an address for comparisons: equal forms are one address.
  let canonical: @Sendable (String) -> String
  private let executor: any WorkExecutor
  private let connection: ConnectionBox

  /// Opens the file at `path`, and creates an absent one.
  ///
  /// - Parameter canonical: returns the form of an address for comparisons.
  /// - Throws: ``MissionError/Kind/database``, ``MissionError/Kind/diskFull``.
  public static func open(
    _ path: String, canonical: @escaping @Sendable (String) -> String = { $0 }
  ) async throws(MissionError) -> SQLiteMissionStore {
    try await open(path, canonical: canonical, on: ThreadExecutor(name: "mission-store"))
  }

  package static func open(
    _ path: String, canonical: @escaping @Sendable (String) -> String,
    on executor: any WorkExecutor, fileSystem: String? = nil
  ) async throws(MissionError) -> SQLiteMissionStore {
    let connection = try await executor.perform { () throws(MissionError) in
      try translated {
        let connection = try SQLiteConnection(path: path, fileSystem: fileSystem)
        try MissionSchema.prepare(connection, path: path)
        return ConnectionBox(connection)
      }
    }
    return SQLiteMissionStore(
      path: path, canonical: canonical, executor: executor, connection: connection)
  }

  private init(
    path: String, canonical: @escaping @Sendable (String) -> String, executor: any WorkExecutor,
    connection: ConnectionBox
  ) {
    self.path = path
    self.canonical = canonical
    self.executor = executor
    self.connection = connection
  }

  /// Runs `body` in one writing transaction.
  @discardableResult
  func write<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws(MissionError) -> T {
    try await executor.perform { [connection] () throws(MissionError) in
      try translated { try connection.value.transaction { try body(connection.value) } }
    }
  }

  /// Runs `body` in one transaction; it is on the disk on return, with all before it. For rows with
  /// files to remove next, and for a complete version: a bundle may refer to it from now on. A loss
  /// of power may undo other transactions, but their files are still there.
  func writeDurably<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws(MissionError) -> T {
    try await executor.perform { [connection] () throws(MissionError) in
      try translated {
        try connection.value.execute(MissionSchema.durable)
        // If this fails, commits are only more durable than necessary.
        defer { try? connection.value.execute(MissionSchema.connectionSettings) }
        return try connection.value.transaction { try body(connection.value) }
      }
    }
  }

  /// Runs `body` on one snapshot.
  func read<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws(MissionError) -> T {
    try await executor.perform { [connection] () throws(MissionError) in
      try translated { try connection.value.transaction(.deferred) { try body(connection.value) } }
    }
  }

  public func dataVersion() async throws(MissionError) -> Int64 {
    try await executor.perform { [connection] () throws(MissionError) in
      try translated {
        try connection.value.first("PRAGMA data_version") { $0.int64(0) } ?? 0
      }
    }
  }
}

/// Carries the connection to its thread.
// SAFETY: only closures on the executor beside it touch `value`, one at a time; the last reference
// may be dropped on any thread, when no closure can run any more.
final class ConnectionBox: @unchecked Sendable {
  let value: SQLiteConnection
  init(_ value: SQLiteConnection) { self.value = value }
}

/// Converts SQLite's errors to this module's.
func translated<T>(_ body: () throws -> T) throws(MissionError) -> T {
  do {
    return try body()
  } catch let error as MissionError {
    throw error
  } catch let error as SQLiteError {
    throw MissionError(error.isDiskFull ? .diskFull : .database, error.message)
  } catch {
    throw MissionError(.database, String(describing: error))
  }
}
