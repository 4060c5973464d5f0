import FerryProtocol

// Published missions and their content in both stores.
extension PlainStore {
  package func missions(
    in space: Int64, after mission: MissionID?, limit: Int
  ) async throws(StoreError) -> MissionPage {
    try await plain(.reading) { connection in
      let rows = try connection.rows(
        MissionQueries.list,
        [
          .integer(space), .text(MissionRecord.table.text), .record(Name(mission?.value ?? "")),
          .integer(Int64(limit)),
        ]
      ) { row -> (MissionID?, MissionRecord?) in
        guard let id = MissionID(try row.recordName(0).name.text) else { return (nil, nil) }
        let state = try row.bytes(1).withUnsafeBytes {
          try RecordState(stored: $0, limits: .stored)
        }
        return (id, MissionRecord(id, stored: state))
      }
      return MissionPage(
        records: rows.compactMap(\.1), next: rows.count < limit ? nil : rows.last?.0)
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
    """
    SELECT record, state FROM records
    WHERE space = $1 AND tbl = $2 AND record > $3 AND NOT dead ORDER BY record LIMIT $4
    """)
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
