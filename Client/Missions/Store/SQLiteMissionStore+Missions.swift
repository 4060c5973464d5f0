import FerryProtocol
import FerrySQLite

extension SQLiteMissionStore {
  public func missions() async throws(MissionError) -> [MissionRow] {
    try await index.read { connection in
      try connection.rows(
        "SELECT \(MissionRow.columns) FROM missions ORDER BY asked, mission, version"
      ) { try MissionRow($0) }
    }
  }

  public func add(_ record: MissionRecord, at: Int64) async throws(MissionError) -> MissionRow {
    try await index.write { connection in
      let rows = try connection.rows(
        "SELECT \(MissionRow.columns) FROM missions WHERE mission = ? ORDER BY version",
        record.id.value
      ) { try MissionRow($0) }
      let known = rows.first { $0.record.isSame(as: record) }
      for other in rows where !other.isComplete && other != known {
        try Self.removeRows(of: other.version, on: connection)
      }
      try connection.run("DELETE FROM endings WHERE mission = ?", record.id.value)
      if let known, known.isActive || !known.isComplete { return known }
      if let known {
        // It was in use before another version replaced it: it is put in use again.
        try connection.run(
          """
          UPDATE missions SET state = 'ready', complete = 0, activation = NULL
          WHERE mission = ? AND version = ?
          """, known.version)
        return try Self.row(known.version, on: connection) ?? known
      }
      let version = MissionVersion(
        record.id, VersionName.next(for: record.version, beside: rows.filter(\.isComplete)))
      try Self.insert(record, as: version, at: at, on: connection)
      guard let row = try Self.row(version, on: connection) else {
        throw MissionError(.database, "the row of mission \(record.id) was not written")
      }
      return row
    }
  }

  private static func insert(
    _ record: MissionRecord, as version: MissionVersion, at: Int64,
    on connection: SQLiteConnection
  ) throws {
    try connection.run(
      """
      INSERT INTO missions(mission, version, state, asked, asked_at, title, summary, items, size,
        priority, after, manifest, manifest_size, signature, signer, published_at, published)
      VALUES (?, ?, 'ready', (SELECT coalesce(max(asked), 0) + 1 FROM missions), ?, ?, ?, ?, ?, ?,
        ?, ?, ?, ?, ?, ?, ?)
      """, version, at, record.title, record.summary, record.items, record.size, record.priority,
      record.after.map(\.value).joined(separator: " "), record.manifest.description,
      record.manifestSize, record.signature, record.signer, record.publishedAt,
      version.version == record.version ? nil : record.version)
  }

  static func row(
    _ version: MissionVersion, on connection: SQLiteConnection
  ) throws -> MissionRow? {
    try connection.first(
      "SELECT \(MissionRow.columns) FROM missions WHERE mission = ? AND version = ?", version
    ) { try MissionRow($0) }
  }

  @discardableResult
  public func setState(
    _ state: MissionState, reason: MissionError?, of version: MissionVersion
  ) async throws(MissionError) -> Bool {
    try await index.write { connection in
      try connection.run(
        """
        UPDATE missions SET state = ?3, kind = ?4, item = ?5, message = ?6
        WHERE mission = ?1 AND version = ?2 AND complete = 0
        """, version, state.rawValue, reason?.kind.rawValue, reason?.item, reason?.message) > 0
    }
  }

  public func setProgress(
    bytesDone: Int64, itemsDone: Int64, of version: MissionVersion
  ) async throws(MissionError) {
    try await index.write { connection in
      try connection.run(
        """
        UPDATE missions SET bytes_done = ?3, items_done = ?4
        WHERE mission = ?1 AND version = ?2 AND complete = 0
        """, version, bytesDone, itemsDone)
    }
  }

  public func complete(_ version: MissionVersion, at: Int64) async throws(MissionError) {
    try await index.writeDurably { connection in
      try connection.run("UPDATE missions SET active = 0 WHERE mission = ?", version.mission.value)
      let changed = try connection.run(
        """
        UPDATE missions SET state = 'done', complete = 1, active = 1, kind = NULL, item = NULL,
          message = NULL, completed_at = ?3, bytes_done = size, items_done = items,
          activation = (SELECT coalesce(max(activation), 0) + 1 FROM missions)
        WHERE mission = ?1 AND version = ?2
        """, version, at)
      guard changed == 1 else {
        throw MissionError(.notFound, "mission \(version.mission) was removed meanwhile")
      }
      try connection.run(
        """
        UPDATE objects SET durable = 1 WHERE durable = 0 AND hash IN
          (SELECT hash FROM files WHERE mission = ? AND version = ?)
        """, version)
    }
  }

  public func setDamage(
    _ damage: MissionError?, of version: MissionVersion
  ) async throws(MissionError) {
    try await index.write { connection in
      try connection.run(
        """
        UPDATE missions SET kind = ?3, item = ?4, message = ?5
        WHERE mission = ?1 AND version = ?2 AND complete = 1
        """, version, damage?.kind.rawValue, damage?.item, damage?.message)
    }
  }

  // MARK: Manifests

  public func setManifest(
    _ document: [UInt8], _ manifest: MissionManifest, of version: MissionVersion
  ) async throws(MissionError) {
    try await index.write { [canonical] connection in
      guard try Self.row(version, on: connection) != nil else {
        throw MissionError(.notFound, "mission \(version.mission) was removed meanwhile")
      }
      try connection.run(
        "INSERT OR REPLACE INTO manifests(mission, version, document) VALUES (?, ?, ?)", version,
        document)
      try connection.run("DELETE FROM files WHERE mission = ? AND version = ?", version)
      for (place, item) in manifest.items.enumerated() {
        try Self.insert(
          item, at: place, of: version, address: item.url.map(canonical), on: connection)
      }
    }
  }

  private static func insert(
    _ item: MissionItem, at place: Int, of version: MissionVersion, address: String?,
    on connection: SQLiteConnection
  ) throws {
    try connection.run(
      """
      INSERT INTO files(mission, version, place, path, kind, media_type, size, hash, url, address)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, version, place, item.path, item.kind.rawValue, item.mediaType, item.size,
      item.hash.bytes, item.url, address)
  }

  public func manifest(of version: MissionVersion) async throws(MissionError) -> [UInt8]? {
    try await index.read { connection in
      try connection.first(
        "SELECT document FROM manifests WHERE mission = ? AND version = ?", version
      ) { $0.blob(0) }
    }
  }

  // MARK: Removing

  public func remove(
    _ version: MissionVersion, ending: MissionEnding?
  ) async throws(MissionError) -> [ContentHash] {
    try await index.writeDurably { connection in
      let orphans = try Self.contentOnly(of: version, on: connection)
      try Self.removeRows(of: version, on: connection)
      for hash in orphans { try Self.forget(hash, on: connection) }
      if let ending { try Self.record(ending, on: connection) }
      return orphans
    }
  }

  /// Returns the content found in no other version.
  private static func contentOnly(
    of version: MissionVersion, on connection: SQLiteConnection
  ) throws -> [ContentHash] {
    try connection.rows(
      """
      SELECT DISTINCT hash FROM files AS f WHERE mission = ?1 AND version = ?2 AND NOT EXISTS
        (SELECT 1 FROM files AS o WHERE o.hash = f.hash AND NOT (o.mission = ?1 AND o.version = ?2))
      ORDER BY hash
      """, version
    ) { try $0.contentHash(0) }
  }

  static func removeRows(of version: MissionVersion, on connection: SQLiteConnection) throws {
    for table in ["missions", "manifests", "files"] {
      try connection.run("DELETE FROM \(table) WHERE mission = ? AND version = ?", version)
    }
  }

  /// Removes content, complete or not.
  static func forget(_ hash: ContentHash, on connection: SQLiteConnection) throws {
    for sql in [
      "DELETE FROM objects WHERE hash = ?", "DELETE FROM chunks WHERE object = ?",
      "DELETE FROM partials WHERE hash = ?",
    ] {
      try connection.run(sql, hash.bytes)
    }
  }

  // MARK: Endings

  private static func record(_ ending: MissionEnding, on connection: SQLiteConnection) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO endings(mission, version, title, state, kind, item, message, at,
        published)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, ending.version, ending.title, ending.state.rawValue, ending.reason.kind.rawValue,
      ending.reason.item, ending.reason.message, ending.at, ending.published)
  }

  public func endings() async throws(MissionError) -> [MissionEnding] {
    try await index.read { connection in
      try connection.rows(
        """
        SELECT mission, version, title, state, kind, item, message, at, published FROM endings
        ORDER BY at, mission
        """
      ) { row in
        MissionEnding(
          version: try row.missionVersion(0, 1), published: row.optionalInt64(8),
          title: row.text(2),
          state: MissionState(rawValue: row.text(3)) ?? .failed,
          reason: row.reason(4, 5, 6) ?? MissionError(.database, row.text(6)), at: row.int64(7))
      }
    }
  }

  public func forgetEnding(of mission: MissionID) async throws(MissionError) {
    try await index.write { connection in
      try connection.run("DELETE FROM endings WHERE mission = ?", mission.value)
    }
  }
}
