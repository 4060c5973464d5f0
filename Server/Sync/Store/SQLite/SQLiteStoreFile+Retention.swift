import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
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
