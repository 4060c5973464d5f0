import FerryPostgres
import FerryProtocol

extension PostgresStore {
  private static let needed = PostgresStatement(
    "mission_blobs_needed",
    """
    SELECT wanted.sha256 FROM unnest($1::bytea[]) AS wanted(sha256)
    JOIN LATERAL (
      SELECT 1 FROM mission_blobs AS b WHERE b.sha256 = wanted.sha256 LIMIT 1
    ) AS found ON true ORDER BY wanted.sha256
    """)

  /// The same for Citus. It reads the rows of all spaces with the content.
  private static let neededAnywhere = PostgresStatement(
    "mission_blobs_needed_anywhere",
    "SELECT DISTINCT sha256 FROM mission_blobs WHERE sha256 = ANY($1) ORDER BY sha256")

  package func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    var array = PostgresArray<[UInt8]>(reserving: hashes.count, valueBytes: hashes.count * 32)
    for hash in hashes { array.append(bytes: hash.bytes) }
    let parameters: PostgresParameters = [.array(array)]
    return try await run { [isDistributed] connection in
      try connection.query(isDistributed ? Self.neededAnywhere : Self.needed, parameters)
        .compactMap { ContentHash(try $0.bytes(0)) }
    }
  }
}
