import FerryPersistence
import FerryProtocol
import FerrySQLite

/// The spaces of a replica's file: the first one, and the joined ones (SPEC.md §29).
///
/// Each space has a separate ledger: a set of Ferry's tables, with a device identifier, a cursor, a
/// clock and a server. The tables and functions of a joined space have its number in their names,
/// such as `ferry_2_operations`. All ledgers share the file's single writing connection, so a
/// transaction of the user records to all of them, or to none.
final class FileSpaces {
  /// The most spaces of a file: each adds about 50 tables, indexes and views to the schema, and
  /// every connection reads the schema.
  static let spacesMax = 32

  /// The first space's ledger; it has the connection.
  weak var first: ReplicaFile?
  /// The joined spaces, by number.
  private(set) var joined: [ReplicaFile] = []
  /// Spaces already left. SQLite keeps their functions until the connection is closed.
  private var left: [ReplicaFile] = []
  /// The state of the schema at the last read of the joined spaces.
  private var known: SchemaMark?
  /// Makes the recorder of a joined space, and registers the functions of it.
  var makeCapture: ((SQLiteConnection) throws -> CaptureContext)?
  /// The app's interceptors of pulled changes.
  var pullInterceptors: [Interceptor] = []
  /// The change of a name made by the current ALTER TABLE.
  var renaming: Renaming?

  /// Returns the names of a ledger's tables and functions.
  static func names(of number: Int) -> SQLNamespace {
    SQLNamespace(prefix: "ferry_", number: number)
  }

  /// Creates the list of joined spaces; a file keeps it in the first ledger.
  static let schema = """
    CREATE TABLE ferry_spaces(                -- the spaces that this file has joined
      number INTEGER PRIMARY KEY,             -- in the names of the space's tables; never used again
      space TEXT NOT NULL UNIQUE
    );
    CREATE TABLE ferry_space_number(
      one INTEGER PRIMARY KEY CHECK (one = 1),
      newest INTEGER NOT NULL
    );
    INSERT INTO ferry_space_number VALUES (1, 1);
    """ + names

  /// All spaces, the first one at first.
  var all: [ReplicaFile] { (first.map { [$0] } ?? []) + joined }

  /// Forgets the joined spaces, before the connection is closed.
  func close() { (joined, left) = ([], []) }

  // MARK: Finding

  /// Opens the ledgers of spaces joined since, also by another process, and closes those of spaces
  /// left.
  func read() throws {
    guard let first else { return }
    let numbers = try first.connection.rows("SELECT number FROM ferry_spaces ORDER BY number") {
      Int($0.int64(0))
    }
    if numbers == joined.map(\.number) { return }
    left += joined.filter { !numbers.contains($0.number) }
    joined = try numbers.map { number in
      try joined.first { $0.number == number } ?? open(number, of: first)
    }
    for file in all {
      file.capture.fileTransaction = first.capture.fileTransaction
      file.capture.otherApplying = { [weak self, unowned file] in
        self?.all.first { $0 !== file && $0.capture.mode == .applying }?.capture
      }
    }
  }

  /// Forgets the spaces left by another process.
  func forgetLeft() throws {
    if joined.isEmpty { return }
    let numbers = try list().map(\.number)
    left += joined.filter { !numbers.contains($0.number) }
    joined.removeAll { !numbers.contains($0.number) }
  }

  private func open(_ number: Int, of first: ReplicaFile) throws -> ReplicaFile {
    // A rolled-back join may be made again; the space's functions are still there.
    if let former = left.firstIndex(where: { $0.number == number }) {
      return left.remove(at: former)
    }
    let connection = SQLiteConnection(
      sharing: first.connection, namespace: Self.names(of: number))
    let capture = try makeCapture?(connection) ?? newCapture(of: first, on: connection)
    return ReplicaFile(joined: connection, of: first, capture: capture)
  }

  private func newCapture(
    of first: ReplicaFile, on connection: SQLiteConnection
  ) throws -> CaptureContext {
    let capture = CaptureContext(
      limits: first.limits, wallClock: first.wallClock, random: first.random)
    try capture.install(on: connection)
    return capture
  }

  static let hasLeft = ReplicaError.notFound(.leftSpace)

  /// Returns the space with a number.
  ///
  /// - Throws: ``ReplicaError/notFound(_:)`` if the file has left it.
  func file(_ number: Int) throws -> ReplicaFile {
    if let file = all.first(where: { $0.number == number }) { return file }
    throw Self.hasLeft
  }

  /// Returns the spaces that track a table of this file: several, if the rows belong to several;
  /// the first one for an untracked table.
  func files(of table: Name) throws -> [ReplicaFile] {
    let tracking = try all.filter { try $0.tables.trackedTable(local: table) != nil }
    return tracking.isEmpty ? Array(all.prefix(1)) : tracking
  }

  /// Returns the names and numbers of the joined spaces, also of those joined by another process.
  func current() throws -> [(number: Int, space: String)] {
    guard let first else { throw ReplicaError.closed }
    if try !first.schemaChanges.isChecked() || known != first.schemaChanges.checked {
      try first.connection.transaction { try refreshTriggersOfNewSchema() }
    }
    return try list()
  }

  /// Returns the names and numbers of the joined spaces.
  func list() throws -> [(number: Int, space: String)] {
    try first?.connection.rows("SELECT number, space FROM ferry_spaces ORDER BY number") {
      (Int($0.int64(0)), $0.text(1))
    } ?? []
  }

  // MARK: Writing

  /// Runs `body` in one transaction; the tracked changes in it become one group in each space.
  func write<T>(_ body: (Database) throws -> T) throws -> T {
    guard let first else { throw ReplicaError.closed }
    return try first.connection.transaction {
      try beginChanges()
      return try body(Database(connection: first.connection, owner: self))
    }
  }

  // MARK: Triggers

  /// Applies changes deferred by other spaces because rows of this file blocked them, such as a row
  /// that moves between two spaces. A failure leaves them deferred.
  func retryDeferred(after file: ReplicaFile) {
    for other in all where other !== file {
      do {
        try other.connection.transaction {
          let waiting = try other.tables.tracked.names().filter { table in
            guard try other.tables.schema(of: table).share != nil else { return false }
            return try other.connection.exists(
              "SELECT 1 FROM ferry_kept WHERE tbl = ? AND \(KeptChanges.isRefused) LIMIT 1", table)
          }
          guard !waiting.isEmpty else { return }
          try other.kept.openUnseen()
          try other.keptRetry.apply([.open])
        }
      } catch {
        continue
      }
    }
  }

  /// Begins a user's transaction: the triggers of all spaces fit the schema then.
  func beginChanges() throws {
    for file in all { file.schemaChanges.begin() }
    try refreshTriggersOfNewSchema()
  }

  /// Updates the triggers of all spaces if the schema has changed since their last check.
  func refreshTriggersOfNewSchema() throws {
    try first?.schemaChanges.refreshIfNew()
    if known == nil || first?.schemaChanges.checked != known {
      try read()
      try removeNamesOfAbsent()
      known = first?.schemaChanges.checked
    }
    for file in joined { try file.schemaChanges.refreshIfNew() }
  }
}

/// Changes of the schema by the user's statements concern all spaces.
extension FileSpaces: DatabaseOwner {
  func tableWillDrop(_ table: Name) throws {
    for file in all { try file.schemaChanges.tableWillDrop(table) }
  }

  func tableWillAlter(_ table: Name) throws {
    for file in all { try file.schemaChanges.tableWillAlter(table) }
  }

  func schemaChanged() throws {
    try storeNames()
    for file in all { try file.schemaChanges.applied() }
    try checkForeignKeys()
  }
}
