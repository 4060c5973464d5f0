import FerryProtocol
import FerrySQLite

extension SQLiteStore {
  package func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    // Not from a reader: a publication committed a moment ago counts.
    try await write { file in
      let find = try file.connection.statement(
        "SELECT 1 FROM mission_blobs WHERE sha256 = ? LIMIT 1")
      return try hashes.sorted().filter { try find.exists($0.bytes) }
    }
  }
}
