import FerryPlatform
import FerrySQLite

/// An index on one thread: a connection to an SQLite file, or a type around one. All errors have
/// one type.
///
/// ```swift
/// let file = try await IndexFile<SQLiteConnection, MissionError>.open(
///   path, on: executor, isDurable: true, steps: ["CREATE TABLE names(name TEXT PRIMARY KEY);"])
/// try await file.write { try $0.run("INSERT INTO names VALUES (?)", "a") }
/// ```
package final class IndexFile<Index, Failure: ConvertingError>: Sendable {
  package let executor: any WorkExecutor
  private let box: Box

  /// Opens an index by `make`, on the executor's thread.
  package init(
    on executor: any WorkExecutor, _ make: @escaping @Sendable () throws -> Index
  ) async throws(Failure) {
    self.executor = executor
    box = try await executor.perform(Failure.self) { Box(try make()) }
  }

  /// Runs `body` with the index on its thread.
  package func use<T: Sendable>(
    _ body: @escaping @Sendable (Index) throws -> T
  ) async throws(Failure) -> T {
    try await executor.perform(Failure.self) { [box] in
      guard let index = box.index else { throw IndexClosed() }
      return try body(index)
    }
  }

  /// Closes the file, so SQLite leaves no other files beside it. Later calls throw.
  package func close() async { _ = try? await executor.run { [box] in box.index = nil } }

  /// Carries the index to its thread.
  // SAFETY: only closures on the executor touch `index`, one at a time; the last reference may be
  // dropped on any thread, when no closure can run any more.
  private final class Box: @unchecked Sendable {
    var index: Index?

    init(_ index: Index) { self.index = index }
  }
}

/// A call on a closed index.
package struct IndexClosed: Error {}

extension IndexFile where Index == SQLiteConnection {
  /// Opens the SQLite file at `path`, and creates an absent one.
  ///
  /// - Parameters:
  ///   - fileSystem: the SQLite VFS of the file; `nil` for the operating system's.
  ///   - isDurable: true if each commit is on the disk when it returns. Otherwise a loss of power
  ///     may undo the last ones, except those of ``writeDurably(_:)``.
  ///   - steps: the statements from one format to the next.
  package static func open(
    _ path: String, on executor: any WorkExecutor, fileSystem: String? = nil, isDurable: Bool,
    steps: [String]
  ) async throws(Failure) -> IndexFile {
    try await IndexFile(on: executor) {
      try SQLiteConnection.index(
        path, fileSystem: fileSystem, isDurable: isDurable, steps: steps)
    }
  }

  /// Runs `body` on one snapshot.
  package func read<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws(Failure) -> T {
    try await use { connection in try connection.transaction(.deferred) { try body(connection) } }
  }

  /// Runs `body` in one writing transaction.
  @discardableResult
  package func write<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws(Failure) -> T {
    try await use { connection in try connection.transaction { try body(connection) } }
  }

  /// Runs `body` in one writing transaction of a file that is not durable; it is on the disk on
  /// return, with all before it.
  package func writeDurably<T: Sendable>(
    _ body: @escaping @Sendable (SQLiteConnection) throws -> T
  ) async throws(Failure) -> T {
    try await use { connection in
      try connection.setDurable(true)
      // If this fails, commits are only more durable than necessary.
      defer { try? connection.setDurable(false) }
      return try connection.transaction { try body(connection) }
    }
  }
}

extension SQLiteConnection {
  /// Opens an index (``IndexFile/open(_:on:fileSystem:isDurable:steps:)``). Safe if several
  /// processes open a new file at once.
  ///
  /// - Throws: ``FileStoreError/Kind/index`` if the file has a later format.
  static func index(
    _ path: String, fileSystem: String?, isDurable: Bool, steps: [String]
  ) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(path: path, fileSystem: fileSystem)
    try connection.execute("PRAGMA journal_mode=WAL; PRAGMA journal_size_limit=16777216")
    try connection.setDurable(isDurable)
    func format() throws -> Int {
      try connection.first("PRAGMA user_version") { Int($0.int64(0)) } ?? 0
    }
    if try format() == steps.count { return connection }
    try connection.transaction {
      let found = try format()
      guard found <= steps.count else {
        throw FileStoreError(
          .index,
          "a later version of Ferry wrote \(path) (format \(found), this version supports "
            + "\(steps.count)); update Ferry")
      }
      for step in steps[found...] { try connection.execute(step) }
      try connection.execute("PRAGMA user_version=\(steps.count)")
    }
    return connection
  }

  /// Determines if a commit is on the disk before it returns
  /// (https://sqlite.org/pragma.html#pragma_synchronous).
  fileprivate func setDurable(_ isDurable: Bool) throws {
    try execute("PRAGMA synchronous=\(isDurable ? "FULL" : "NORMAL")")
  }
}
