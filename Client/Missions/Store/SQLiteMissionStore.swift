import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The rows of missions in their own SQLite file, for any number of processes.
public final class SQLiteMissionStore: MissionStore {
  /// The path of the file.
  public let path: String
  /// Returns the form of an address for comparisons: equal forms are one address.
  let canonical: @Sendable (String) -> String
  /// Removed rows with files to remove next, and complete versions, which a bundle may refer to, are
  /// written durably. A loss of power may undo other transactions, but their files are still there.
  let index: IndexFile<SQLiteConnection, MissionError>

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
    let index = try await IndexFile<SQLiteConnection, MissionError>.open(
      path, on: executor, fileSystem: fileSystem, isDurable: false, steps: ContentSchema.steps)
    return SQLiteMissionStore(path: path, canonical: canonical, index: index)
  }

  private init(
    path: String, canonical: @escaping @Sendable (String) -> String,
    index: IndexFile<SQLiteConnection, MissionError>
  ) {
    (self.path, self.canonical, self.index) = (path, canonical, index)
  }

  public func dataVersion() async throws(MissionError) -> Int64 {
    try await index.use { try $0.first("PRAGMA data_version") { $0.int64(0) } ?? 0 }
  }
}
