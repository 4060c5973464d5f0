import FerryExecutors
import FerrySQLite

/// A plain SQLite file, which does not sync. It has one writing connection on its own thread, and
/// up to eight readers beside it. Foreign keys are checked.
///
/// ```swift
/// let database = try await LocalDatabase.open("settings.db")
/// try await database.write { try Note.table.insert(Note(id: "n1", title: "Milk"), in: $0) }
/// let notes = try await database.read { try Note.all.fetch($0) }
/// await database.close()
/// ```
public final class LocalDatabase: DatabaseAccess {
  /// The path of the file.
  public let path: String
  private let writer: Writer
  private let executor: ThreadExecutor
  private let readers: ReaderPool

  /// Opens `path`, or creates it; only its owner can read a new file (mode 0600).
  ///
  /// The file of a replica can be opened as well. A write to one of its tracked tables fails then,
  /// since nothing would record it.
  ///
  /// - Throws: ``DatabaseError`` if the file cannot be opened or is not a SQLite database.
  public static func open(_ path: String) async throws -> LocalDatabase {
    let executor = ThreadExecutor(name: "ferry-database")
    let writer = try await executor.run {
      do { return try Writer(path: path) } catch let error as SQLiteError {
        throw DatabaseError("\(path): \(error.message)", code: error.code)
      }
    }
    return LocalDatabase(path: path, writer: writer, executor: executor)
  }

  private init(path: String, writer: Writer, executor: ThreadExecutor) {
    self.path = path
    self.writer = writer
    self.executor = executor
    readers = ReaderPool(path: path)
  }

  @discardableResult
  public func write<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await typed {
      try await executor.run { [writer] in
        let connection = try writer.opened()
        return try connection.transaction { try body(Database(connection: connection)) }
      }
    }
  }

  public func read<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await typed { try await readers.read(body) }
  }

  /// Closes the file after the calls that wait. Later calls fail with ``DatabaseError``.
  public func close() async {
    await readers.close()
    // The closure cannot fail. The last connection of a file also removes its log.
    try? await executor.run { [writer] in writer.close() }
  }

  private func typed<T: Sendable>(_ body: () async throws -> T) async throws -> T {
    do { return try await body() } catch let error as SQLiteError { throw DatabaseError(error) }
  }
}

/// The writing connection.
// SAFETY: `connection` is only touched by closures that run on the executor's one thread; the last
// reference may be dropped on any thread, when no closure can run any more.
private final class Writer: @unchecked Sendable {
  private let path: String
  private var connection: SQLiteConnection?

  init(path: String) throws {
    self.path = path
    let connection = try SQLiteConnection(path: path)
    let journal = try connection.first("PRAGMA journal_mode=WAL") { $0.text(0) }
    // A database in memory has no log, and its readers would see another database.
    guard journal == "wal" else {
      throw DatabaseError("\(path): the file cannot have a write-ahead log; use a file on a disk")
    }
    try connection.execute("PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;")
    connection.guardUserStatements()
    self.connection = connection
  }

  func opened() throws -> SQLiteConnection {
    guard let connection else { throw DatabaseError("\(path) is closed", code: 21) }
    return connection
  }

  func close() { connection = nil }
}
