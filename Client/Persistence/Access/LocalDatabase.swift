import FerryPlatform
import FerrySQLite

/// A plain SQLite file without sync. It has one writing connection on a dedicated thread, and up to
/// eight readers beside it. Foreign keys are checked.
///
/// The path `:memory:` is a database in memory, for tests and previews: each call of ``open(_:)``
/// creates another one, and ``close()`` deletes it. Reads and writes run one at a time.
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
  private let changes: ChangeHub
  private let gate = WorkGate()

  /// Opens `path`, or creates it; only the owner can read a new file (mode 0600).
  ///
  /// The file of a replica can be opened as well. A write to one of the replica's tracked tables
  /// fails then, since nothing would record it.
  ///
  /// - Throws: ``DatabaseError`` if the file cannot be opened or is not a SQLite database.
  public static func open(_ path: String) async throws -> LocalDatabase {
    let executor = ThreadExecutor(name: "ferry-database")
    let (writer, version) = try await executor.run {
      do {
        let writer = try Writer(path: path)
        return (writer, try writer.dataVersion())
      } catch let error as SQLiteError {
        throw DatabaseError("\(path): \(error.message)", code: error.code)
      }
    }
    return LocalDatabase(path: path, writer: writer, version: version, executor: executor)
  }

  private init(path: String, writer: Writer, version: Int64?, executor: ThreadExecutor) {
    self.path = path
    self.writer = writer
    self.executor = executor
    readers =
      path == SQLiteConnection.memory
      ? ReaderPool(sharing: executor, gate: gate) { try writer.opened() }
      : ReaderPool(path: path, gate: gate)
    changes = ChangeHub(seen: version) {
      try await executor.run { try writer.dataVersion() }
    } pause: {
      try await Task.sleep(for: Self.poll)
    }
  }

  /// The interval between looks for changes by other processes, while there are live queries.
  private static let poll: Duration = .milliseconds(25)

  @discardableResult
  public func write<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await typed {
      try await executor.run { [writer, changes] in
        let connection = try writer.opened(for: changes)
        defer { writer.report() }
        return try connection.transaction { try body(Database(connection: connection)) }
      }
    }
  }

  public func read<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await typed { try await readers.read(body) }
  }

  /// Returns the results of a live query: the present one, and another one after each commit with
  /// changes to rows read by the query, also by another process. Commits during a run count as one.
  /// The stream ends with the query's error, or when the consumer stops.
  ///
  /// The rows are known of ``TableQuery`` and of `find`, such as `Note.find("n1", in: $0)`: the
  /// query does not run again if a commit changed only rows excluded by the query's conditions. Of
  /// plain SQL, only the tables are known. Each commit of another process runs the query.
  ///
  /// ```swift
  /// for try await notes in database.observe({ try Note.all.fetch($0) }) { show(notes) }
  /// ```
  public func observe<T: Sendable>(
    _ fetch: @escaping @Sendable (Database) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    observation.values(of: fetch, unless: { _, _ in false })
  }

  /// Returns the results of a live query; leaves out a result equal to the one before.
  public func observe<T: Sendable & Equatable>(
    _ fetch: @escaping @Sendable (Database) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    observation.values(of: fetch, unless: ==)
  }

  /// Runs the steps of a migrator that the file has not run, each in a separate transaction, on the
  /// file's thread. Reads continue meanwhile. If the process ends in between, the next call
  /// continues.
  ///
  /// ```swift
  /// let report = try await database.migrate(migrator) { failure in
  ///   print(failure)
  ///   return .keepVersion
  /// }
  /// ```
  ///
  /// - Parameter fallback: decides after a failed step. Nothing of the failed step is in the file
  ///   then.
  /// - Throws: ``MigrationFailure`` if a step fails and there is no fallback; ``MigrationError`` if
  ///   the file has run other steps; the error of the fallback.
  @discardableResult
  public func migrate(
    _ migrator: Migrator,
    fallback: (@Sendable (MigrationFailure) async throws -> MigrationFallback)? = nil
  ) async throws -> MigrationReport {
    try await MigrationDriver(migrator, fallback).drive {
      try await typed {
        try await executor.run { [writer] in
          try MigrationFile(connection: writer.opened()).done()
        }
      }
    } run: { step, earlier in
      try await typed {
        try await executor.run { [writer, changes] in
          let connection = try writer.opened(for: changes)
          defer { writer.report() }
          return try MigrationFile(connection: connection).run(step, after: earlier)
        }
      }
    }
  }

  /// Closes the file after all queued calls, and ends the live queries. Later calls fail with
  /// ``DatabaseError``.
  public func close() async {
    await readers.close()
    changes.close()
    // The closure cannot fail. The last connection of a file also removes the log.
    try? await executor.run { [writer] in writer.close() }
  }

  private var observation: LiveRead {
    LiveRead(readers: readers, hub: changes, gate: gate) { [path] in
      DatabaseError.closed(path)
    }
  }

  private func typed<T: Sendable>(_ body: () async throws -> T) async throws -> T {
    do {
      return try await body()
    } catch let error as SQLiteError {
      throw DatabaseError(error)
    } catch is StoppedWork {
      throw DatabaseError.closed(path)
    }
  }
}

/// The writing connection.
// SAFETY: only closures on the executor's one thread touch `connection`; the last reference may be
// dropped on any thread, when no closure can run any more.
private final class Writer: @unchecked Sendable {
  private let path: String
  private var connection: SQLiteConnection?
  private var reporter: ChangeReporter?

  init(path: String) throws {
    self.path = path
    let connection = try SQLiteConnection(path: path)
    let journal = try connection.first("PRAGMA journal_mode=WAL") { $0.text(0) }
    // A database in memory has no log; the only connection needs none.
    guard journal == "wal" || path == SQLiteConnection.memory else {
      throw DatabaseError("\(path): the file cannot have a write-ahead log; use a file on a disk")
    }
    try connection.execute("PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;")
    try ReplicaGuard.install(on: connection)
    connection.guardUserStatements()
    reporter = ChangeReporter(connection)
    self.connection = connection
  }

  /// Returns the connection.
  ///
  /// - Parameter hub: gets the changes; see ``report()``.
  func opened(for hub: ChangeHub? = nil) throws -> SQLiteConnection {
    guard let connection else { throw DatabaseError.closed(path) }
    if let hub { reporter?.hub = hub }
    return connection
  }

  /// Reports the changes since the last call.
  func report() { reporter?.report() }

  /// Returns the version of the file; `nil` when it is closed.
  func dataVersion() throws -> Int64? { try connection?.dataVersion() }

  func close() {
    reporter = nil
    connection = nil
  }
}
