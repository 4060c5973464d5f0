import FerryProtocol
import FerrySQLite

extension SQLiteMissionStore {
  // MARK: Files

  public func files(of version: MissionVersion) async throws(MissionError) -> [MissionFileRow] {
    try await index.read { connection in
      try connection.rows(
        """
        SELECT \(MissionFileRow.columns) FROM files AS f WHERE mission = ? AND version = ?
        ORDER BY place
        """, version
      ) { try MissionFileRow($0) }
    }
  }

  public func file(
    _ path: String, of version: MissionVersion
  ) async throws(MissionError) -> MissionFileRow? {
    try await index.read { connection in
      try connection.first(
        """
        SELECT \(MissionFileRow.columns) FROM files AS f
        WHERE mission = ? AND version = ? AND path = ?
        """, version, path
      ) { try MissionFileRow($0) }
    }
  }

  public func file(url: String) async throws(MissionError) -> MissionFileRow? {
    try await index.read { [canonical] connection in
      try connection.first(
        """
        SELECT \(MissionFileRow.columns) FROM files AS f
          JOIN missions AS m ON m.mission = f.mission AND m.version = f.version
        WHERE f.address = ? AND m.active = 1 ORDER BY m.activation DESC, f.place LIMIT 1
        """, canonical(url)
      ) { try MissionFileRow($0) }
    }
  }

  // MARK: Content during a download

  public func chunkMap(
    of hash: ContentHash, chunkCount: Int
  ) async throws(MissionError) -> ChunkMap? {
    try await index.read { connection in
      try connection.first("SELECT map FROM partials WHERE hash = ?", hash.bytes) {
        ChunkMap(encoded: $0.blob(0), chunkCount: chunkCount)
      } ?? nil
    }
  }

  public func setChunkMap(_ map: ChunkMap, of hash: ContentHash) async throws(MissionError) {
    try await index.write { connection in
      try connection.run(
        "INSERT OR REPLACE INTO partials(hash, map) VALUES (?, ?)", hash.bytes, map.encoded())
    }
  }

  public func removeChunkMap(of hash: ContentHash) async throws(MissionError) {
    try await index.write { connection in
      try connection.run("DELETE FROM partials WHERE hash = ?", hash.bytes)
    }
  }

  // MARK: Complete content

  public func addObject(
    _ object: ObjectRow, chunkSize: Int64, chunks: [ContentHash], path: String?
  ) async throws(MissionError) {
    let hash = object.content.hash
    try await index.write { connection in
      try Self.forget(hash, on: connection)
      try connection.run(
        "INSERT INTO objects(hash, size, durable, at) VALUES (?, ?, ?, ?)", hash.bytes,
        object.content.size, object.isDurable, object.at)
      let add = try connection.statement(
        "INSERT OR IGNORE INTO chunks(hash, object, offset, length) VALUES (?, ?, ?, ?)")
      for (index, chunk) in chunks.enumerated() {
        let offset = Int64(index) * chunkSize
        try add.run(chunk.bytes, hash.bytes, offset, min(chunkSize, object.content.size - offset))
      }
      try connection.run(
        "UPDATE files SET local_path = ?, completed_at = ? WHERE hash = ?", path, object.at,
        hash.bytes)
    }
  }

  public func object(_ hash: ContentHash) async throws(MissionError) -> ObjectRow? {
    try await index.read { connection in
      try connection.first(
        "SELECT size, durable, at FROM objects WHERE hash = ?", hash.bytes
      ) { row in
        ObjectRow(
          content: StoredContent(hash: hash, size: row.int64(0)), isDurable: row.int64(1) == 1,
          at: row.int64(2))
      }
    }
  }

  public func refers(to hash: ContentHash) async throws(MissionError) -> Bool {
    try await index.read { try $0.exists("SELECT 1 FROM files WHERE hash = ?", hash.bytes) }
  }

  public func removeObject(_ hash: ContentHash) async throws(MissionError) {
    try await index.write { connection in
      try Self.forget(hash, on: connection)
      try connection.run(
        "UPDATE files SET local_path = NULL, completed_at = NULL WHERE hash = ?", hash.bytes)
    }
  }

  public func part(_ chunk: ContentHash) async throws(MissionError) -> StoredPart? {
    try await index.read { connection in
      try connection.first(
        """
        SELECT c.object, o.size, c.offset, c.length FROM chunks AS c
          JOIN objects AS o ON o.hash = c.object
        WHERE c.hash = ? ORDER BY c.object, c.offset LIMIT 1
        """, chunk.bytes
      ) { row in
        StoredPart(
          content: StoredContent(hash: try row.contentHash(0), size: row.int64(1)),
          offset: row.int64(2), length: Int(row.int64(3)), hash: chunk)
      }
    }
  }

  public func chunks(
    of hash: ContentHash
  ) async throws(MissionError) -> (size: Int64, [ContentHash]) {
    try await index.read { connection in
      var size: Int64 = 0
      let hashes = try connection.rows(
        "SELECT hash, length FROM chunks WHERE object = ? ORDER BY offset", hash.bytes
      ) { row in
        size = max(size, row.int64(1))
        return try row.contentHash(0)
      }
      return (size, hashes)
    }
  }

  public func contents(of version: MissionVersion) async throws(MissionError) -> [ContentRow] {
    try await index.read { connection in
      try connection.rows(
        """
        SELECT DISTINCT f.hash, f.size, o.durable, o.at FROM files AS f
          LEFT JOIN objects AS o ON o.hash = f.hash
        WHERE f.mission = ? AND f.version = ? ORDER BY f.hash
        """, version
      ) { row in
        let content = StoredContent(hash: try row.contentHash(0), size: row.int64(1))
        guard let at = row.optionalInt64(3) else { return ContentRow(content: content) }
        return ContentRow(
          content: content,
          object: ObjectRow(content: content, isDurable: row.int64(2) == 1, at: at))
      }
    }
  }

  public func needed() async throws(MissionError) -> NeededFiles {
    try await index.write { connection in
      try connection.execute(
        """
        DELETE FROM objects WHERE hash NOT IN (SELECT hash FROM files);
        DELETE FROM chunks WHERE object NOT IN (SELECT hash FROM objects);
        DELETE FROM partials WHERE hash NOT IN (SELECT hash FROM files)
          AND lower(hex(hash)) NOT IN (SELECT manifest FROM missions);
        """)
      var needed = NeededFiles()
      try connection.forEach("SELECT DISTINCT hash FROM files") { row in
        needed.objects.insert(try row.contentHash(0))
      }
      // A manifest is fetched like an item, in the same folder.
      needed.partials = needed.objects
      try connection.forEach("SELECT mission, version, manifest FROM missions") { row in
        needed.bundles.insert(try row.missionVersion(0, 1))
        if let hash = ContentHash(row.text(2)) { needed.partials.insert(hash) }
      }
      return needed
    }
  }

  // MARK: Trust and settings

  public func signers() async throws(MissionError) -> [[UInt8]] {
    try await index.read { connection in
      try Self.signers(on: connection)
    }
  }

  private static func signers(on connection: SQLiteConnection) throws -> [[UInt8]] {
    try connection.rows("SELECT signer FROM signers ORDER BY at, signer") { $0.blob(0) }
  }

  public func trust(_ signer: [UInt8], at: Int64) async throws(MissionError) {
    try await index.write { connection in
      try connection.run("DELETE FROM signers")
      try Self.insert(signer: signer, at: at, on: connection)
    }
  }

  public func trustFirst(
    _ signer: [UInt8], at: Int64
  ) async throws(MissionError) -> [[UInt8]] {
    try await index.write { connection in
      let trusted = try Self.signers(on: connection)
      if !trusted.isEmpty { return trusted }
      try Self.insert(signer: signer, at: at, on: connection)
      return [signer]
    }
  }

  private static func insert(
    signer: [UInt8], at: Int64, on connection: SQLiteConnection
  ) throws {
    try connection.run("INSERT INTO signers(signer, at) VALUES (?, ?)", signer, at)
  }

  public func setting(_ name: String) async throws(MissionError) -> [UInt8]? {
    try await index.read { try Self.setting(name, on: $0) }
  }

  public func makeSetting(
    _ name: String, _ value: [UInt8]
  ) async throws(MissionError) -> [UInt8] {
    try await index.write { connection in
      if let made = try Self.setting(name, on: connection) { return made }
      try connection.run("INSERT INTO settings(name, value) VALUES (?, ?)", name, value)
      return value
    }
  }

  public func remakeSetting(
    _ name: String, _ value: [UInt8]
  ) async throws(MissionError) -> Bool {
    try await index.write { connection in
      let hasContent = try connection.exists(
        """
        SELECT 1 FROM missions UNION ALL SELECT 1 FROM objects UNION ALL SELECT 1 FROM partials
        """)
      if hasContent { return false }
      try connection.run("INSERT OR REPLACE INTO settings(name, value) VALUES (?, ?)", name, value)
      return true
    }
  }

  private static func setting(_ name: String, on connection: SQLiteConnection) throws -> [UInt8]? {
    try connection.first("SELECT value FROM settings WHERE name = ?", name) { $0.blob(0) }
  }
}
