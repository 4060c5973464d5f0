import FerryPlatform
import FerrySQLite
import Synchronization

/// Read-only connections to a file, each on a separate thread, opened on demand. A database in
/// memory has one connection; it reads and writes in turn.
package final class ReaderPool: Sendable {
  /// The most connections. A read waits for the one with the shortest queue if all of them are at
  /// work.
  package static let size = 8

  private let makeReader: @Sendable () -> Reader
  private let readers = Mutex<[(reader: Reader, queued: Int)]>([])
  private let sizeMax: Int
  private let gate: WorkGate

  /// - Parameters:
  ///   - gate: admits the reads. A suspension ends their running statements.
  ///   - fileSystem: the SQLite VFS of the file; `nil` for the operating system's.
  ///   - busyTimeout: how long a read waits while another program locks the file.
  ///   - prepare: prepares each new connection.
  ///   - makeExecutor: makes the thread of a connection, with this name.
  package init(
    path: String, gate: WorkGate = WorkGate(), fileSystem: String? = nil,
    busyTimeout: Duration = .seconds(10),
    prepare: @escaping @Sendable (SQLiteConnection) throws -> Void = { _ in },
    makeExecutor: @escaping @Sendable (String) -> any WorkExecutor = { ThreadExecutor(name: $0) }
  ) {
    self.gate = gate
    sizeMax = Self.size
    makeReader = {
      Reader(executor: makeExecutor("ferry-reader"), isShared: false) {
        let opened = try SQLiteConnection(
          path: path, mode: .readOnly, busyTimeout: busyTimeout, fileSystem: fileSystem)
        opened.guardUserStatements()
        opened.recordTables()
        try prepare(opened)
        return opened
      }
    }
  }

  /// Reads through the writing connection.
  ///
  /// - Parameters:
  ///   - executor: the thread of the connection.
  ///   - connection: returns the connection on the thread.
  package init(
    sharing executor: any WorkExecutor, gate: WorkGate,
    connection: @escaping @Sendable () throws -> SQLiteConnection
  ) {
    self.gate = gate
    sizeMax = 1
    makeReader = { Reader(executor: executor, isShared: true, open: connection) }
  }

  /// True if reads use the connection of the writes.
  package var isShared: Bool { sizeMax == 1 }

  /// Runs `body` on one snapshot of the file. If the task is cancelled, a running statement ends.
  ///
  /// - Throws: the error of `body`; `CancellationError`; ``StoppedWork``.
  package func read<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    let (index, reader) = try acquire()
    defer { readers.withLock { $0[index].queued -= 1 } }
    return try await CancellationFlag.whileRunning { [gate] cancelled in
      try await reader.read(body) {
        if gate.isSuspended { return StoppedWork.suspended }
        return cancelled.isSet ? CancellationError() : nil
      }
    }
  }

  /// Returns after the end of all reads under way.
  package func finish() async {
    for reader in readers.withLock({ $0.map(\.reader) }) { await reader.finish() }
  }

  /// Closes the connections after the waiting reads. Later reads fail.
  package func close() async {
    gate.close()
    for reader in readers.withLock({ $0.map(\.reader) }) { await reader.close() }
  }

  /// Returns an idle connection, or a new one, or the one with the shortest queue.
  private func acquire() throws -> (index: Int, reader: Reader) {
    try readers.withLock { readers in
      try gate.check()
      let shortest = readers.indices.min { readers[$0].queued < readers[$1].queued }
      var index = shortest ?? 0
      if readers.isEmpty || (readers[index].queued > 0 && readers.count < sizeMax) {
        index = readers.count
        readers.append((makeReader(), 0))
      }
      readers[index].queued += 1
      return (index, readers[index].reader)
    }
  }
}

/// One connection on one thread.
// SAFETY: only closures on the executor's one thread touch `connection`.
private final class Reader: @unchecked Sendable {
  private let executor: any WorkExecutor
  private let isShared: Bool
  private let open: @Sendable () throws -> SQLiteConnection
  private var connection: SQLiteConnection?
  private var isClosed = false

  init(
    executor: any WorkExecutor, isShared: Bool,
    open: @escaping @Sendable () throws -> SQLiteConnection
  ) {
    (self.executor, self.isShared, self.open) = (executor, isShared, open)
  }

  func read<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T,
    unless due: @escaping @Sendable () -> (any Error)?
  ) async throws -> T {
    try await executor.run { [self] in
      if let reason = due() { throw reason }
      let connection = try opened()
      return try connection.interrupting(when: due) {
        try connection.transaction(.deferred) {
          try body(Database(connection: connection, isReadOnly: isShared))
        }
      }
    }
  }

  func finish() async {
    // The closure cannot fail.
    try? await executor.run {}
  }

  func close() async {
    // The closure cannot fail.
    try? await executor.run { [self] in
      connection = nil
      isClosed = true
    }
  }

  private func opened() throws -> SQLiteConnection {
    if isClosed { throw StoppedWork.closed }
    if let connection { return connection }
    let opened = try open()
    // The owner of a shared connection closes it.
    if !isShared { connection = opened }
    return opened
  }
}
