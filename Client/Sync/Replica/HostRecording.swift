import FerryProtocol
import FerrySQLite

/// Records the writes to tracked tables on a connection opened by another library (SPEC.md §4).
///
/// The connection's hooks and authorizer stay. If a write cannot be recorded, it fails with the
/// reason. SQLite keeps this object until the connection is closed.
///
/// ```swift
/// let isReplica = try HostRecording.prepare(connection)
/// ```
final class HostRecording {
  /// The SQL function to prepare a connection again: after a change of tables, or if the file has
  /// become a replica later.
  private static let function = "ferry_prepare"
  private static let next = "run SELECT \(function)() outside of a transaction"

  private let connection: SQLiteConnection
  /// The recorders of the file's spaces at the last preparation of the connection, and of spaces
  /// left since.
  private var captures: [CaptureContext] = []
  private let file: ReplicaFile
  private let surroundings: ReplicaSurroundings
  /// True if SQLite will report the end of the open transaction.
  private var isJoined = false

  /// Makes a connection record writes. Returns true if the main database is a replica; other files
  /// stay unchanged.
  ///
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)`` with the reason; ``SQLiteError``.
  static func prepare(
    _ handle: OpaquePointer, in surroundings: ReplicaSurroundings = .system
  ) throws -> Bool {
    let connection = SQLiteConnection(borrowing: handle)
    // A second library on one connection uses the first one's functions.
    let present = try connection.prepare(
      "SELECT 1 FROM pragma_function_list WHERE name = ?"
    ).rows(Self.function) { $0.int64(0) }
    if !present.isEmpty {
      return try connection.prepare("SELECT \(Self.function)()").first { $0.int64(0) } == 1
    }
    let recording = HostRecording(connection, in: surroundings)
    try recording.install()
    return try recording.prepare()
  }

  private init(_ connection: SQLiteConnection, in surroundings: ReplicaSurroundings) {
    self.connection = connection
    self.surroundings = surroundings
    let capture = CaptureContext(
      limits: surroundings.limits, wallClock: surroundings.wallClock, random: surroundings.random)
    captures = [capture]
    file = ReplicaFile(
      host: connection, capture: capture, limits: surroundings.limits,
      wallClock: surroundings.wallClock, random: surroundings.random)
  }

  // MARK: Preparing

  /// Registers the functions. The first registration makes SQLite keep this object.
  private func install() throws {
    try connection.observeJoinedTransactions { [self] isCommitted in
      isJoined = false
      for capture in captures { capture.transactionEnded(isCommitted: isCommitted) }
    } closing: { [connection] in
      connection.forgetStatements()
    }
    // From now on SQLite asks to drop kept statements before it closes the connection.
    try connection.connectTransactionTable()
    try record(file.capture, on: connection)
    file.spaces.makeCapture = { [unowned self] joined in
      let capture = CaptureContext(
        limits: surroundings.limits, wallClock: surroundings.wallClock, random: surroundings.random)
      captures.append(capture)
      try record(capture, on: joined)
      return capture
    }
    try connection.addFunction(Self.function, argumentCount: 0, callers: .none) {
      [unowned self] _, answer in
      do {
        answer.set(try prepare() ? 1 : 0)
      } catch let error as SQLiteError {
        answer.fail(error)
      } catch {
        answer.fail("ferry: \(error)")
      }
    }
  }

  private func record(_ capture: CaptureContext, on connection: SQLiteConnection) throws {
    capture.admission = { [unowned self] in try admit() }
    // `admit()` checks the functions if the connection does not trust the schema.
    try capture.installRecording(on: connection, callers: .all)
  }

  /// Sets the connection's settings and updates the triggers. Returns true if the file is a
  /// replica.
  private func prepare() throws -> Bool {
    // Without a joined transaction SQLite would not ask to drop kept statements.
    defer { if !isJoined { connection.forgetStatements() } }
    guard try HostChecks.isReplica(connection) else { return false }
    try HostChecks(connection: connection).checkFormat()
    guard !connection.isInTransaction else {
      throw ReplicaError.cannotOpen(
        path: connection.mainPath, "a transaction is open; prepare the connection before it begins")
    }
    if !connection.enforcesForeignKeys { try connection.execute("PRAGMA foreign_keys=ON") }
    if try !hasRecursiveTriggers() { try connection.execute("PRAGMA recursive_triggers=ON") }
    try file.spaces.read()
    if try !connection.isReadOnly && !triggersFitSchema(isWriting: false) {
      // As each program of Ferry does when it opens the file.
      _ = try ReplicaFile(
        path: connection.mainPath, limits: surroundings.limits, wallClock: surroundings.wallClock,
        random: surroundings.random)
    }
    return true
  }

  private func triggersFitSchema(isWriting: Bool) throws -> Bool {
    try file.spaces.forgetLeft()
    return try file.spaces.all.allSatisfy { try $0.schemaChanges.triggersFit(isWriting: isWriting) }
  }

  private func hasRecursiveTriggers() throws -> Bool {
    try connection.first("PRAGMA recursive_triggers") { $0.int64(0) } == 1
  }

  // MARK: Recording

  /// Throws if a captured change cannot be recorded. Every check may be passed by one write and
  /// failed by the next: the host may change settings and tables at any time.
  private func admit() throws {
    guard connection.isWritingMain else {
      throw CaptureRefusal(
        "ferry: the write is not to the main database of this connection; open the replica as the "
          + "main one")
    }
    if !isJoined {
      try connection.joinTransaction()
      isJoined = true
    }
    guard try hasRecursiveTriggers() else {
      throw CaptureRefusal(
        "ferry: recursive_triggers is off, so that REPLACE would remove rows unrecorded; "
          + Self.next)
    }
    guard connection.enforcesForeignKeys else {
      throw CaptureRefusal(
        "ferry: foreign_keys is off, so that rows could lose the rows that they refer to; "
          + Self.next)
    }
    guard !connection.isDroppingTable else {
      throw CaptureRefusal(
        "ferry: DROP TABLE would delete or change rows of a tracked table (ON DELETE), on all "
          + "devices; set foreign_keys to OFF for this statement, or use a migrator of Ferry")
    }
    try checkOtherDatabases()
    guard try triggersFitSchema(isWriting: true) else {
      throw CaptureRefusal(
        "ferry: tracked tables have changed, so that the write would not be recorded whole; "
          + Self.next)
    }
  }

  /// Checks the databases beside the main one. Ferry's functions do not know the database of the
  /// calling trigger, and their statements name tables without a database.
  private func checkOtherDatabases() throws {
    let others = try connection.rows("PRAGMA database_list") { $0.name(1) }.filter { $0 != "main" }
    for name in others {
      if name == "temp" {
        for file in file.spaces.all {
          try HostChecks(connection: file.connection).checkTemporarySchema()
        }
        continue
      }
      guard try !HostChecks.isReplica(connection, database: name) else {
        throw CaptureRefusal(
          "ferry: the attached database \(name) is a replica, too; detach it and open it as the "
            + "main one of another connection")
      }
      guard connection.trustsSchema else {
        throw CaptureRefusal(
          "ferry: trusted_schema is off, and the triggers of the attached database \(name) could "
            + "record changes; detach it, or run PRAGMA trusted_schema=ON")
      }
    }
  }
}
