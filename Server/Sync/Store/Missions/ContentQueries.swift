import FerryProtocol

// The content that a space's missions name and its admins upload, in both stores. The content
// itself is elsewhere.
//
// A space may read the content of its missions in force. It may read that of their former versions
// until `endBlobs(before:)` forgets it, so a device can finish a download. The content of a
// retracted mission ends with the mission.
extension SyncStore {
  /// Records content uploaded by a space's admin, which no device may read yet.
  package func storeUpload(
    _ blob: MissionBlob, in space: Int64, now: Int64
  ) async throws(StoreError) {
    try await plain(.writing) { try $0.save([blob], of: "", in: space, ended: now) }
  }

  /// Returns the contents named by the space's missions or uploaded by its admins. In order.
  package func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob] {
    let hashes = hashes.sorted()
    return try await plain(.reading) { connection in
      try connection.rows(
        ContentQueries.held, [.integer(space)], of: hashes.map { [.bytes($0.bytes)] }
      ) { place, row in MissionBlob(hash: hashes[place], size: try row.integer(0)) }
    }
  }

  /// Returns the contents still needed by some space. In order.
  package func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    // As a writer: a publication committed a moment ago counts.
    try await plain(.writing) { connection in
      var needed: [ContentHash] = []
      try connection.perform(
        hashes.sorted().map { hash in
          .one(ContentQueries.needed, [.bytes(hash.bytes)]) { _ in needed.append(hash) }
        })
      return needed
    }
  }

  /// Forgets the content of former versions, and unpublished uploads, if their use ended before
  /// `moment` (milliseconds since 1970). Returns the number of entries.
  package func endBlobs(before moment: Int64) async throws(StoreError) -> Int {
    try await inSlices { try $0.endBlobs(before: moment) }
  }
}

extension PlainConnection {
  /// Stores content of a mission. Rows that stay as they are are not written: versions of a large
  /// mission differ in few files.
  func save(
    _ blobs: [MissionBlob], of mission: String, in space: Int64, ended: Int64?
  ) throws {
    try run(
      ContentQueries.save, [.integer(space), .text(mission), .integer(ended)],
      of: blobs.map { [.bytes($0.hash.bytes), .integer($0.size)] })
  }

  /// Ends the use of content that the version in force does not name any more.
  func endBlobs(
    of mission: String, besides kept: Set<ContentHash>, in space: Int64, now: Int64
  ) throws {
    let dropped = try rows(ContentQueries.inForce, [.integer(space), .text(mission)]) {
      ContentHash(try $0.bytes(0))
    }.compactMap { $0 }.filter { !kept.contains($0) }
    try run(
      ContentQueries.end, [.integer(now), .integer(space), .text(mission)],
      of: dropped.map { [.bytes($0.bytes)] })
  }

  /// Forgets the content that only former versions name, among some of a mission's content.
  ///
  /// - Parameter place: The content after which these entries begin.
  /// - Returns: The last of them; `nil` at the end.
  func endFormerBlobs(
    of id: MissionID, in space: Int64, after place: [UInt8]
  ) throws -> [UInt8]? {
    let found = try rows(
      ContentQueries.part,
      [.integer(space), .text(id.value), .bytes(place), .integer(Int64(sliceRows))]
    ) { (hash: try $0.bytes(0), isInForce: $0.isNull(1)) }
    try run(
      ContentQueries.forget, [.integer(space), .text(id.value)],
      of: found.filter { !$0.isInForce }.map { [.bytes($0.hash)] })
    return found.count < sliceRows ? nil : found.last?.hash
  }
}

private enum ContentQueries {
  static let save = PlainBatch.insert(
    "mission_blobs_save", into: "mission_blobs",
    [.init("sha256", .bytes), .init("size", .integer)],
    sharing: ["mission", "ended"],
    """
    ON CONFLICT (space, mission, sha256) DO UPDATE SET ended = excluded.ended
      WHERE coalesce(mission_blobs.ended, -1) <> coalesce(excluded.ended, -1)
    """)
  static let inForce = PlainStatement(
    "mission_blobs_in_force",
    "SELECT sha256 FROM mission_blobs WHERE space = $1 AND mission = $2 AND ended IS NULL")
  static let end = PlainBatch.update(
    "mission_end", "mission_blobs", [.init("sha256", .bytes)], sharing: 3,
    set: { _ in "ended = $1" }
  ) { key in
    """
    mission_blobs.space = $2 AND mission_blobs.mission = $3
      AND mission_blobs.sha256 = \(key("sha256"))
    """
  }
  static let part = PlainStatement(
    "mission_blobs_part",
    """
    SELECT sha256, ended FROM mission_blobs
    WHERE space = $1 AND mission = $2 AND sha256 > $3 ORDER BY sha256 LIMIT $4
    """)
  static let forget = PlainBatch.delete(
    "mission_blobs_forget", from: "mission_blobs", [.init("sha256", .bytes)], sharing: 2
  ) { key in
    """
    mission_blobs.space = $1 AND mission_blobs.mission = $2
      AND mission_blobs.sha256 = \(key("sha256"))
    """
  }
  /// By one key: Citus asks all workers, which have the spaces.
  static let needed = PlainStatement(
    "mission_blobs_needed", "SELECT 1 FROM mission_blobs WHERE sha256 = $1 LIMIT 1")
  static let held = PlainBatch.find("mission_blobs_held", [.init("sha256", .bytes)]) { key in
    """
    SELECT b.size FROM mission_blobs AS b
    WHERE b.space = $1 AND b.sha256 = \(key("sha256")) LIMIT 1
    """
  }
}
