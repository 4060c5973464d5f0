import FerryProtocol
import SQLite

extension SQLiteMissionStore {
  public func missions() async throws(MissionError) -> [MissionRow] {
    try await read { connection in
      try connection.statement(
        "SELECT \(MissionRow.columns) FROM missions ORDER BY asked, mission, version"
      ).map { try MissionRow($0) }
    }
  }

  public func add(_ record: MissionRecord, at: Int64) async throws(MissionError) -> MissionRow {
    try await write { connection in
      let find = try connection.statement(
        "SELECT \(MissionRow.columns) FROM missions WHERE mission = ? ORDER BY version")
      find.bind(1, record.id.value)
      let rows = try find.map { try MissionRow($0) }
      let known = rows.first { $0.record.isSame(as: record) }
      for other in rows where !other.isComplete && other != known {
        try Self.removeRows(of: other.version, on: connection)
      }
      let forget = try connection.statement("DELETE FROM endings WHERE mission = ?")
      forget.bind(1, record.id.value)
      try forget.run()
      if let known, known.isActive || !known.isComplete { return known }
      if let known {
        // It was in use before another version replaced it: it is put in use again.
        let again = try connection.statement(
          """
          UPDATE missions SET state = 'ready', complete = 0, activation = NULL
          WHERE mission = ? AND version = ?
          """)
        again.bind(1, known.version)
        try again.run()
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
    let insert = try connection.statement(
      """
      INSERT INTO missions(mission, version, state, asked, asked_at, title, summary, items, size,
        priority, after, manifest, manifest_size, signature, signer, published_at, published)
      VALUES (?, ?, 'ready', (SELECT coalesce(max(asked), 0) + 1 FROM missions), ?, ?, ?, ?, ?, ?,
        ?, ?, ?, ?, ?, ?, ?)
      """)
    insert.bind(1, version)
    insert.bind(3, at)
    insert.bind(4, record.title)
    insert.bind(5, record.summary)
    insert.bind(6, record.items)
    insert.bind(7, record.size)
    insert.bind(8, record.priority)
    insert.bind(9, record.after.map(\.value).joined(separator: " "))
    insert.bind(10, record.manifest.description)
    insert.bind(11, record.manifestSize)
    insert.bind(12, blob: record.signature)
    insert.bind(13, blob: record.signer)
    insert.bind(14, record.publishedAt)
    if version.version == record.version {
      insert.bindNull(15)
    } else {
      insert.bind(15, record.version)
    }
    try insert.run()
  }

  static func row(
    _ version: MissionVersion, on connection: SQLiteConnection
  ) throws -> MissionRow? {
    let find = try connection.statement(
      "SELECT \(MissionRow.columns) FROM missions WHERE mission = ? AND version = ?")
    find.bind(1, version)
    return try find.first { try MissionRow($0) }
  }

  @discardableResult
  public func setState(
    _ state: MissionState, reason: MissionError?, of version: MissionVersion
  ) async throws(MissionError) -> Bool {
    try await write { connection in
      let save = try connection.statement(
        """
        UPDATE missions SET state = ?3, kind = ?4, item = ?5, message = ?6
        WHERE mission = ?1 AND version = ?2 AND complete = 0
        """)
      save.bind(1, version)
      save.bind(3, state.rawValue)
      save.bind(4, reason?.kind.rawValue)
      save.bind(5, reason?.item)
      save.bind(6, reason?.message)
      try save.run()
      return connection.changes > 0
    }
  }

  public func setProgress(
    bytesDone: Int64, itemsDone: Int64, of version: MissionVersion
  ) async throws(MissionError) {
    try await write { connection in
      let save = try connection.statement(
        """
        UPDATE missions SET bytes_done = ?3, items_done = ?4
        WHERE mission = ?1 AND version = ?2 AND complete = 0
        """)
      save.bind(1, version)
      save.bind(3, bytesDone)
      save.bind(4, itemsDone)
      try save.run()
    }
  }

  public func complete(_ version: MissionVersion, at: Int64) async throws(MissionError) {
    try await write { connection in
      let others = try connection.statement("UPDATE missions SET active = 0 WHERE mission = ?")
      others.bind(1, version.mission.value)
      try others.run()
      let save = try connection.statement(
        """
        UPDATE missions SET state = 'done', complete = 1, active = 1, kind = NULL, item = NULL,
          message = NULL, completed_at = ?3, bytes_done = size, items_done = items,
          activation = (SELECT coalesce(max(activation), 0) + 1 FROM missions)
        WHERE mission = ?1 AND version = ?2
        """)
      save.bind(1, version)
      save.bind(3, at)
      try save.run()
      guard connection.changes == 1 else {
        throw MissionError(.notFound, "mission \(version.mission) was removed meanwhile")
      }
      let durable = try connection.statement(
        """
        UPDATE objects SET durable = 1 WHERE durable = 0 AND hash IN
          (SELECT hash FROM files WHERE mission = ? AND version = ?)
        """)
      durable.bind(1, version)
      try durable.run()
    }
  }

  // MARK: Manifests

  public func setManifest(
    _ document: [UInt8], _ manifest: MissionManifest, of version: MissionVersion
  ) async throws(MissionError) {
    try await write { [canonical] connection in
      guard try Self.row(version, on: connection) != nil else {
        throw MissionError(.notFound, "mission \(version.mission) was removed meanwhile")
      }
      let save = try connection.statement(
        "INSERT OR REPLACE INTO manifests(mission, version, document) VALUES (?, ?, ?)")
      save.bind(1, version)
      save.bind(3, blob: document)
      try save.run()
      let clear = try connection.statement("DELETE FROM files WHERE mission = ? AND version = ?")
      clear.bind(1, version)
      try clear.run()
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
    let insert = try connection.statement(
      """
      INSERT INTO files(mission, version, place, path, kind, media_type, size, hash, url, address)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    insert.bind(1, version)
    insert.bind(3, place)
    insert.bind(4, item.path)
    insert.bind(5, item.kind.rawValue)
    insert.bind(6, item.mediaType)
    insert.bind(7, item.size)
    insert.bind(8, blob: item.hash.bytes)
    insert.bind(9, item.url)
    insert.bind(10, address)
    try insert.run()
  }

  public func manifest(of version: MissionVersion) async throws(MissionError) -> [UInt8]? {
    try await read { connection in
      let find = try connection.statement(
        "SELECT document FROM manifests WHERE mission = ? AND version = ?")
      find.bind(1, version)
      return try find.first { $0.blob(0) }
    }
  }

  // MARK: Removing

  public func remove(
    _ version: MissionVersion, ending: MissionEnding?
  ) async throws(MissionError) -> [ContentHash] {
    try await writeDurably { connection in
      let orphans = try Self.contentOnly(of: version, on: connection)
      try Self.removeRows(of: version, on: connection)
      for hash in orphans { try Self.forget(hash, on: connection) }
      if let ending { try Self.note(ending, on: connection) }
      return orphans
    }
  }

  /// Returns the content that no other version has.
  private static func contentOnly(
    of version: MissionVersion, on connection: SQLiteConnection
  ) throws -> [ContentHash] {
    if PlantedFault.sharedContentRemoved.isPlanted {
      let all = try connection.statement(
        "SELECT DISTINCT hash FROM files WHERE mission = ?1 AND version = ?2 ORDER BY hash")
      all.bind(1, version)
      return try all.map { try $0.contentHash(0) }
    }
    let find = try connection.statement(
      """
      SELECT DISTINCT hash FROM files AS f WHERE mission = ?1 AND version = ?2 AND NOT EXISTS
        (SELECT 1 FROM files AS o WHERE o.hash = f.hash AND NOT (o.mission = ?1 AND o.version = ?2))
      ORDER BY hash
      """)
    find.bind(1, version)
    return try find.map { try $0.contentHash(0) }
  }

  static func removeRows(of version: MissionVersion, on connection: SQLiteConnection) throws {
    for table in ["missions", "manifests", "files"] {
      let remove = try connection.statement(
        "DELETE FROM \(table) WHERE mission = ? AND version = ?")
      remove.bind(1, version)
      try remove.run()
    }
  }

  /// Removes content, complete or not.
  static func forget(_ hash: ContentHash, on connection: SQLiteConnection) throws {
    for sql in [
      "DELETE FROM objects WHERE hash = ?", "DELETE FROM chunks WHERE object = ?",
      "DELETE FROM partials WHERE hash = ?",
    ] {
      let remove = try connection.statement(sql)
      remove.bind(1, blob: hash.bytes)
      try remove.run()
    }
  }

  // MARK: Endings

  private static func note(_ ending: MissionEnding, on connection: SQLiteConnection) throws {
    let insert = try connection.statement(
      """
      INSERT OR REPLACE INTO endings(mission, version, title, state, kind, item, message, at,
        published)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    insert.bind(1, ending.version)
    insert.bind(3, ending.title)
    insert.bind(4, ending.state.rawValue)
    insert.bind(5, ending.reason.kind.rawValue)
    insert.bind(6, ending.reason.item)
    insert.bind(7, ending.reason.message)
    insert.bind(8, ending.at)
    insert.bind(9, ending.published)
    try insert.run()
  }

  public func endings() async throws(MissionError) -> [MissionEnding] {
    try await read { connection in
      try connection.statement(
        """
        SELECT mission, version, title, state, kind, item, message, at, published FROM endings
        ORDER BY at, mission
        """
      ).map { row in
        MissionEnding(
          version: try row.missionVersion(0, 1), published: row.optionalInt64(8),
          title: row.text(2),
          state: MissionState(rawValue: row.text(3)) ?? .failed,
          reason: row.reason(4, 5, 6) ?? MissionError(.database, row.text(6)), at: row.int64(7))
      }
    }
  }

  public func forgetEnding(of mission: MissionID) async throws(MissionError) {
    try await write { connection in
      let remove = try connection.statement("DELETE FROM endings WHERE mission = ?")
      remove.bind(1, mission.value)
      try remove.run()
    }
  }
}
