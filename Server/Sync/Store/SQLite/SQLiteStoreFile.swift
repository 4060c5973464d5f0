import FerryProtocol
import FerrySQLite

/// One connection to the embedded store's file. Synchronous, so a simulation can drive it; it stays
/// on one thread.
package final class SQLiteStoreFile {
  let connection: SQLiteConnection
  let limits: Limits
  let quotas: Quotas
  let schemas = SchemaCache()
  let timelines: OwnTimelines
  /// The turns of this process's connections to write.
  let writing: WriteLock
  /// The largest transaction that may delay other spaces.
  let slice: WriteSlice
  /// True if ``writing`` is this connection's.
  var isWriting = false
  /// True if transactions are synced only if they run in `synced`; see ``prepareForSlices()``.
  var leavesSyncing = false
  /// True if another connection copies the log while it writes slices.
  var leavesLog = false
  /// The space as the transaction under way leaves it.
  var unsettled: SpaceState?

  /// Opens the file. A missing file is created with all tables.
  package init(
    path: String, limits: Limits, quotas: Quotas = .standard, fileSystem: String? = nil,
    timelines: OwnTimelines = OwnTimelines(), writing: WriteLock = WriteLock(),
    slice: WriteSlice = .standard
  ) throws {
    (self.writing, self.slice) = (writing, slice)
    self.limits = limits
    self.quotas = quotas
    self.timelines = timelines
    connection = try SQLiteConnection(path: path, fileSystem: fileSystem)
    try connection.execute(SQLiteStoreSchema.settings)
    try SQLiteStoreSchema.prepare(connection)
  }

  /// Throws unless the file can be read.
  func check() throws { try connection.execute("SELECT 1 FROM spaces LIMIT 1") }

  /// Returns the newest assigned sequence; 0 for a deleted space.
  func head(of space: Int64) throws -> SequenceNumber {
    try connection.first("SELECT head FROM spaces WHERE id = ?", space) { $0.int64(0) } ?? 0
  }

  /// Runs one durable transaction that may assign places in a space's order.
  func change<T>(_ space: Int64, _ body: () throws -> T) throws -> T {
    unsettled = nil
    let result = try connection.transaction { try body() }
    if let unsettled { timelines.update(unsettled, of: space) }
    return result
  }

  // MARK: Room

  /// The most pages freed by one call.
  private static let reclaimedPages: Int64 = 1_000

  /// Cuts free pages off the file while they are more than a quarter of it; fewer pages are soon
  /// used again.
  func reclaim() throws -> ReclaimStep {
    let free = try pragma("freelist_count")
    guard free > Self.reclaimedPages, free > (try pragma("page_count")) / 4 else { return .done }
    try connection.execute("PRAGMA incremental_vacuum(\(Self.reclaimedPages))")
    return try pragma("freelist_count") < free ? .more : .done
  }

  private func pragma(_ name: String) throws -> Int64 {
    try connection.prepare("PRAGMA \(name)").first { $0.int64(0) } ?? 0
  }
}
