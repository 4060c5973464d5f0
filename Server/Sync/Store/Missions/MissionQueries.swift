import FerryProtocol

// Published missions and their content in both stores.
extension SyncStore {
  /// Returns missions in force in the order of their names, UUIDs last.
  ///
  /// - Parameters:
  ///   - mission: The place of the list before the page; `nil` for the start.
  ///   - limit: The records to read.
  package func missions(
    in space: Int64, after mission: MissionID?, limit: Int
  ) async throws(StoreError) -> MissionPage {
    try await plain(.reading) { connection in
      let place: [PlainValue] = [.integer(space), .record(Name(mission?.value ?? ""))]
      // Texts may be long, so the list is read twice: first the lengths, then the rows that fit.
      let sizes = try connection.rows(
        MissionQueries.sizes, place + [.integer(Int64(limit))]
      ) { (try $0.recordName(0).name, try $0.integer(1)) }
      let count = sizes.fittingCount(MissionPage.bytesMax)
      guard count > 0 else { return MissionPage() }
      let last = sizes[count - 1].0
      let records = try connection.rows(
        MissionQueries.list, place + [.record(last)]
      ) { row -> MissionRecord? in
        guard let id = MissionID(try row.recordName(0).name.text) else { return nil }
        return MissionRecord(id, stored: try row.recordState(1))
      }
      let isLast = count == sizes.count && count < limit
      return MissionPage(
        records: records.compactMap { $0 }, next: isLast ? nil : MissionID(last.text))
    }
  }

  /// Returns the content uploaded to a space and named by no mission yet.
  package func unpublishedUse(in space: Int64) async throws(StoreError) -> UnpublishedUse {
    try await plain(.reading) { connection in
      try connection.rows(MissionQueries.unpublished, [.integer(space)]) {
        UnpublishedUse(files: try $0.integer(0), bytes: try $0.integer(1))
      }[0]
    }
  }

  /// Returns the content, if a mission of one of these spaces names it.
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
}

/// The statements of missions. Those of missions in force pass over no retracted ones.
enum MissionQueries {
  /// Missions in force; an index has just these (`records_missions`).
  private static let inForce = "space = $1 AND tbl = '\(MissionRecord.table)' AND NOT dead"

  static let count = PlainStatement(
    "mission_count",
    "SELECT count(*) FROM (SELECT 1 FROM records WHERE \(inForce) LIMIT $2) AS found")
  static let sizes = PlainStatement(
    "mission_sizes",
    """
    SELECT record, CAST(length(state) AS bigint) FROM records
    WHERE \(inForce) AND record > $2 ORDER BY record LIMIT $3
    """)
  static let list = PlainStatement(
    "missions",
    """
    SELECT record, state FROM records
    WHERE \(inForce) AND record > $2 AND record <= $3 ORDER BY record
    """)
  static let unpublished = PlainStatement(
    "mission_blobs_unpublished",
    """
    SELECT count(*), CAST(coalesce(sum(size), 0) AS bigint) FROM mission_blobs AS sent
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
}
