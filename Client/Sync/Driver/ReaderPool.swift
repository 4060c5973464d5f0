import FerryExecutors
import FerrySQLite
import Synchronization

/// A few read-only connections, each on its own thread, opened on demand.
final class ReaderPool: Sendable {
  /// The number of concurrent reads; more of them wait their turn.
  private static let size = 3

  private let path: String
  private let surroundings: ReplicaSurroundings
  private let state = Mutex((readers: [Reader](), next: 0))

  init(path: String, in surroundings: ReplicaSurroundings) {
    self.path = path
    self.surroundings = surroundings
  }

  /// Runs `body` on one snapshot of the file.
  func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
    let reader = state.withLock { state in
      if state.readers.count < Self.size {
        state.readers.append(Reader(path: path, in: surroundings))
      }
      state.next = (state.next + 1) % state.readers.count
      return state.readers[state.next]
    }
    return try await reader.read(body)
  }
}

/// One connection on its thread.
// SAFETY: `connection` is only touched by closures that run on the executor's one thread.
private final class Reader: @unchecked Sendable {
  private let path: String
  private let fileSystem: String?
  private let executor: any WorkExecutor
  private var connection: SQLiteConnection?

  init(path: String, in surroundings: ReplicaSurroundings) {
    self.path = path
    fileSystem = surroundings.fileSystem
    executor = surroundings.makeExecutor("ferry-reader")
  }

  func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
    try await executor.run { [self] in
      let connection = try opened()
      return try connection.transaction(.deferred) {
        try body(Database(connection: connection))
      }
    }
  }

  private func opened() throws -> SQLiteConnection {
    if let connection { return connection }
    let opened = try SQLiteConnection(path: path, mode: .readOnly, fileSystem: fileSystem)
    opened.guardUserStatements()
    connection = opened
    return opened
  }
}
