import FerryProtocol

// Published missions and their content in both stores.
extension PlainStore {
  package func missions(in space: Int64) async throws(StoreError) -> [MissionRecord] {
    try await plain(.reading) { connection in
      try connection.rows(
        MissionQueries.list, [.integer(space), .text(MissionRecord.table.text)]
      ) { row -> MissionRecord? in
        guard let id = MissionID(try row.recordName(0).name.text) else { return nil }
        let state = try row.bytes(1).withUnsafeBytes {
          try RecordState(stored: $0, limits: .stored)
        }
        return MissionRecord(id, stored: state)
      }.compactMap { $0 }.sorted { $0.id < $1.id }
    }
  }

  package func unpublishedBytes(in space: Int64) async throws(StoreError) -> Int64 {
    try await plain(.reading) { connection in
      try connection.rows(MissionQueries.unpublished, [.integer(space)]) { try $0.integer(0) }[0]
    }
  }

  package func readableBlob(
    _ hash: ContentHash, in pattern: SpacePattern
  ) async throws(StoreError) -> MissionBlob? {
    try await plain(.reading) { connection in
      let isAnywhere = pattern == .everything
      return try connection.rows(
        isAnywhere ? MissionQueries.readableAnywhere : MissionQueries.readable,
        [.bytes(hash.bytes)] + (isAnywhere ? [] : [.text(pattern.first), .text(pattern.last)])
      ) { MissionBlob(hash: hash, size: try $0.integer(0)) }.first
    }
  }

  package func endBlobs(before moment: Int64) async throws(StoreError) -> Int {
    try await plain(.writing) { try $0.run(MissionQueries.endBlobs, [.integer(moment)]) }
  }
}

private enum MissionQueries {
  static let list = PlainStatement(
    "missions",
    "SELECT record, state FROM records WHERE space = $1 AND tbl = $2 AND NOT dead")
  static let unpublished = PlainStatement(
    "mission_blobs_unpublished",
    """
    SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM mission_blobs AS sent
    WHERE space = $1 AND mission = '' AND NOT EXISTS (
      SELECT 1 FROM mission_blobs AS named
      WHERE named.sha256 = sent.sha256 AND named.space = $1 AND named.mission <> '')
    """)
  static let readable = PlainStatement(
    "mission_blob",
    """
    SELECT size FROM mission_blobs WHERE sha256 = $1 AND mission <> ''
      AND space IN (SELECT id FROM space_names WHERE name >= $2 AND name <= $3) LIMIT 1
    """)
  static let readableAnywhere = PlainStatement(
    "mission_blob_any", "SELECT size FROM mission_blobs WHERE sha256 = $1 AND mission <> '' LIMIT 1"
  )
  static let endBlobs = PlainStatement(
    "mission_blobs_end", "DELETE FROM mission_blobs WHERE ended < $1")
}
