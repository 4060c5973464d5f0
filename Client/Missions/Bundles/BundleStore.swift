import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The states of bundles in a SQLite file, for any number of processes. Each change is one
/// transaction: a process killed at any moment leaves the state before or after it.
package final class BundleStore: Sendable {
  private let index: IndexFile<SQLiteConnection, BundleError>

  /// Opens the file at `path`, and creates an absent one.
  package static func open(_ path: String) async throws(BundleError) -> BundleStore {
    try await open(path, on: ThreadExecutor(name: "bundle-store"))
  }

  package static func open(
    _ path: String, on executor: any WorkExecutor, fileSystem: String? = nil
  ) async throws(BundleError) -> BundleStore {
    // A switch is on the disk when it returns: few are made, and each matters.
    BundleStore(
      index: try await IndexFile.open(
        path, on: executor, fileSystem: fileSystem, isDurable: true, steps: ContentSchema.steps))
  }

  private init(index: IndexFile<SQLiteConnection, BundleError>) { self.index = index }

  /// Returns the state of a bundle.
  func state(of name: BundleName) async throws(BundleError) -> BundleState {
    try await index.read { try Self.read(name, on: $0) }
  }

  /// Returns the bundles with a state, by name.
  func names() async throws(BundleError) -> [BundleName] {
    try await index.read { connection in
      try connection.rows("SELECT name FROM bundles ORDER BY name") { BundleName($0.text(0)) }
        .compactMap { $0 }
    }
  }

  /// Changes the state of a bundle in one transaction, and returns the state after it.
  @discardableResult
  func change(
    _ name: BundleName, _ body: @escaping @Sendable (inout BundleState) -> Void
  ) async throws(BundleError) -> BundleState {
    try await index.write { connection in
      let before = try Self.read(name, on: connection)
      var state = before
      body(&state)
      if state != before { try Self.write(state, of: name, on: connection) }
      return state
    }
  }

  // MARK: Rows

  private static func read(
    _ name: BundleName, on connection: SQLiteConnection
  ) throws -> BundleState {
    let outcomes = try connection.rows(
      """
      SELECT version, manifest, failure, blocked, number, reported FROM outcomes WHERE name = ?
      ORDER BY place
      """, name.value
    ) { row -> KeptOutcome? in
      key(row, 0).map {
        KeptOutcome(
          key: $0, failure: row.optionalText(2).map { BundleReason(bounding: $0) },
          isBlocked: row.int64(3) != 0, number: row.int64(4), isReported: row.int64(5) != 0)
      }
    }.compactMap { $0 }
    let formers = try connection.rows(
      "SELECT version, manifest FROM formers WHERE name = ? ORDER BY place", name.value
    ) { key($0, 0) }.compactMap { $0 }
    let state = try connection.first(
      "SELECT active, active_manifest, confirmed FROM bundles WHERE name = ?", name.value
    ) { row in
      BundleState(
        active: key(row, 0), isConfirmed: row.int64(2) != 0, formers: formers,
        outcomes: outcomes)
    }
    return state ?? BundleState(active: nil, isConfirmed: false, formers: [], outcomes: outcomes)
  }

  private static func key(_ row: SQLiteStatement, _ column: Int32) -> BundleKey? {
    guard !row.isNull(column), let version = BundleVersion(row.text(column)),
      let manifest = ContentHash(row.blob(column + 1))
    else { return nil }
    return BundleKey(version: version, manifest: manifest)
  }

  private static func write(
    _ state: BundleState, of name: BundleName, on connection: SQLiteConnection
  ) throws {
    try connection.run(
      "INSERT OR REPLACE INTO bundles VALUES (?, ?, ?, ?)", name.value,
      state.active?.version.description, state.active?.manifest.bytes,
      Int64(state.isConfirmed ? 1 : 0))
    try connection.run("DELETE FROM formers WHERE name = ?", name.value)
    for (place, former) in state.formers.enumerated() {
      try connection.run(
        "INSERT INTO formers VALUES (?, ?, ?, ?)", name.value, Int64(place),
        former.version.description, former.manifest.bytes)
    }
    try connection.run("DELETE FROM outcomes WHERE name = ?", name.value)
    for (place, outcome) in state.outcomes.enumerated() {
      try connection.run(
        "INSERT INTO outcomes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", name.value, Int64(place),
        outcome.key.version.description, outcome.key.manifest.bytes, outcome.failure?.text,
        Int64(outcome.isBlocked ? 1 : 0), outcome.number, Int64(outcome.isReported ? 1 : 0))
    }
  }
}

extension BundleError: ConvertingError {
  package init(converting error: any Error) {
    switch error {
    case let error as SQLiteError: self.init(.database, error.message)
    case let error as FileStoreError: self.init(.database, error.message)
    default: self.init(.database, String(describing: error))
    }
  }
}
