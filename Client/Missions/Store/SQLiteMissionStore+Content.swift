import FerryProtocol
import SQLite

extension SQLiteMissionStore {
  // MARK: Files

  public func files(of version: MissionVersion) async throws(MissionError) -> [MissionFileRow] {
    try await read { connection in
      let find = try connection.statement(
        """
        SELECT \(MissionFileRow.columns) FROM files AS f WHERE mission = ? AND version = ?
        ORDER BY place
        """)
      find.bind(1, version)
      return try find.map { try MissionFileRow($0) }
    }
  }

  public func file(
    _ path: String, of version: MissionVersion
  ) async throws(MissionError) -> MissionFileRow? {
    try await read { connection in
      let find = try connection.statement(
        """
        SELECT \(MissionFileRow.columns) FROM files AS f
        WHERE mission = ? AND version = ? AND path = ?
        """)
      find.bind(1, version)
      find.bind(3, path)
      return try find.first { try MissionFileRow($0) }
    }
  }

  public func file(url: String) async throws(MissionError) -> MissionFileRow? {
    try await read { [canonical] connection in
      let find = try connection.statement(
        """
        SELECT \(MissionFileRow.columns) FROM files AS f
          JOIN missions AS m ON m.mission = f.mission AND m.version = f.version
        WHERE f.address = ? AND m.active = 1 ORDER BY m.activation DESC, f.place LIMIT 1
        """)
      find.bind(1, canonical(url))
      return try find.first { try MissionFileRow($0) }
    }
  }

  // MARK: Content that is being fetched

  public func chunkMap(
    of hash: ContentHash, chunkCount: Int
  ) async throws(MissionError) -> ChunkMap? {
    try await read { connection in
      let find = try connection.statement("SELECT map FROM partials WHERE hash = ?")
      find.bind(1, blob: hash.bytes)
      return try find.first { ChunkMap(encoded: $0.blob(0), chunkCount: chunkCount) } ?? nil
    }
  }

  public func setChunkMap(_ map: ChunkMap, of hash: ContentHash) async throws(MissionError) {
    try await write { connection in
      let save = try connection.statement(
        "INSERT OR REPLACE INTO partials(hash, map) VALUES (?, ?)")
      save.bind(1, blob: hash.bytes)
      save.bind(2, blob: map.encoded())
      try save.run()
    }
  }

  public func removeChunkMap(of hash: ContentHash) async throws(MissionError) {
    try await write { connection in
      let remove = try connection.statement("DELETE FROM partials WHERE hash = ?")
      remove.bind(1, blob: hash.bytes)
      try remove.run()
    }
  }

  // MARK: Complete content

  public func addObject(
    _ object: ObjectRow, chunkSize: Int64, chunks: [ContentHash], path: String?
  ) async throws(MissionError) {
    let hash = object.content.hash
    try await write { connection in
      try Self.forget(hash, on: connection)
      let insert = try connection.statement(
        "INSERT INTO objects(hash, size, durable, at) VALUES (?, ?, ?, ?)")
      insert.bind(1, blob: hash.bytes)
      insert.bind(2, object.content.size)
      insert.bind(3, object.isDurable ? 1 : 0)
      insert.bind(4, object.at)
      try insert.run()
      let add = try connection.statement(
        "INSERT OR IGNORE INTO chunks(hash, object, offset, length) VALUES (?, ?, ?, ?)")
      for (index, chunk) in chunks.enumerated() {
        let offset = Int64(index) * chunkSize
        add.bind(1, blob: chunk.bytes)
        add.bind(2, blob: hash.bytes)
        add.bind(3, offset)
        add.bind(4, min(chunkSize, object.content.size - offset))
        try add.run()
      }
      let note = try connection.statement(
        "UPDATE files SET local_path = ?, completed_at = ? WHERE hash = ?")
      note.bind(1, path)
      note.bind(2, object.at)
      note.bind(3, blob: hash.bytes)
      try note.run()
    }
  }

  public func object(_ hash: ContentHash) async throws(MissionError) -> ObjectRow? {
    try await read { connection in
      let find = try connection.statement("SELECT size, durable, at FROM objects WHERE hash = ?")
      find.bind(1, blob: hash.bytes)
      return try find.first { row in
        ObjectRow(
          content: StoredContent(hash: hash, size: row.int64(0)), isDurable: row.int64(1) == 1,
          at: row.int64(2))
      }
    }
  }

  public func removeObject(_ hash: ContentHash) async throws(MissionError) {
    try await write { connection in
      try Self.forget(hash, on: connection)
      let note = try connection.statement(
        "UPDATE files SET local_path = NULL, completed_at = NULL WHERE hash = ?")
      note.bind(1, blob: hash.bytes)
      try note.run()
    }
  }

  public func part(_ chunk: ContentHash) async throws(MissionError) -> StoredPart? {
    try await read { connection in
      let find = try connection.statement(
        """
        SELECT c.object, o.size, c.offset, c.length FROM chunks AS c
          JOIN objects AS o ON o.hash = c.object
        WHERE c.hash = ? ORDER BY c.object, c.offset LIMIT 1
        """)
      find.bind(1, blob: chunk.bytes)
      return try find.first { row in
        StoredPart(
          content: StoredContent(hash: try row.contentHash(0), size: row.int64(1)),
          offset: row.int64(2), length: Int(row.int64(3)), hash: chunk)
      }
    }
  }

  public func chunks(
    of hash: ContentHash
  ) async throws(MissionError) -> (size: Int64, [ContentHash]) {
    try await read { connection in
      let find = try connection.statement(
        "SELECT hash, length FROM chunks WHERE object = ? ORDER BY offset")
      find.bind(1, blob: hash.bytes)
      var size: Int64 = 0
      let hashes = try find.map { row in
        size = max(size, row.int64(1))
        return try row.contentHash(0)
      }
      return (size, hashes)
    }
  }

  public func contents(of version: MissionVersion) async throws(MissionError) -> [ContentRow] {
    try await read { connection in
      let find = try connection.statement(
        """
        SELECT DISTINCT f.hash, f.size, o.durable, o.at FROM files AS f
          LEFT JOIN objects AS o ON o.hash = f.hash
        WHERE f.mission = ? AND f.version = ? ORDER BY f.hash
        """)
      find.bind(1, version)
      return try find.map { row in
        let content = StoredContent(hash: try row.contentHash(0), size: row.int64(1))
        guard let at = row.optionalInt64(3) else { return ContentRow(content: content) }
        return ContentRow(
          content: content,
          object: ObjectRow(content: content, isDurable: row.int64(2) == 1, at: at))
      }
    }
  }

  public func needed() async throws(MissionError) -> NeededFiles {
    try await write { connection in
      try connection.execute(
        """
        DELETE FROM objects WHERE hash NOT IN (SELECT hash FROM files);
        DELETE FROM chunks WHERE object NOT IN (SELECT hash FROM objects);
        DELETE FROM partials WHERE hash NOT IN (SELECT hash FROM files)
          AND lower(hex(hash)) NOT IN (SELECT manifest FROM missions);
        """)
      var needed = NeededFiles()
      try connection.statement("SELECT DISTINCT hash FROM files").forEach { row in
        needed.objects.insert(try row.contentHash(0))
      }
      // A manifest is fetched like an item, in the same folder.
      needed.partials = needed.objects
      try connection.statement("SELECT mission, version, manifest FROM missions").forEach { row in
        needed.bundles.insert(try row.missionVersion(0, 1))
        if let hash = ContentHash(row.text(2)) { needed.partials.insert(hash) }
      }
      return needed
    }
  }

  // MARK: Trust and settings

  public func signers() async throws(MissionError) -> [[UInt8]] {
    try await read { connection in
      try Self.signers(on: connection)
    }
  }

  private static func signers(on connection: SQLiteConnection) throws -> [[UInt8]] {
    try connection.statement("SELECT signer FROM signers ORDER BY at, signer").map { $0.blob(0) }
  }

  public func trust(_ signer: [UInt8], at: Int64) async throws(MissionError) {
    try await write { connection in
      try connection.statement("DELETE FROM signers").run()
      try Self.insert(signer: signer, at: at, on: connection)
    }
  }

  public func trustFirst(
    _ signer: [UInt8], at: Int64
  ) async throws(MissionError) -> [[UInt8]] {
    try await write { connection in
      let trusted = try Self.signers(on: connection)
      if !trusted.isEmpty { return trusted }
      try Self.insert(signer: signer, at: at, on: connection)
      return [signer]
    }
  }

  private static func insert(
    signer: [UInt8], at: Int64, on connection: SQLiteConnection
  ) throws {
    let insert = try connection.statement("INSERT INTO signers(signer, at) VALUES (?, ?)")
    insert.bind(1, blob: signer)
    insert.bind(2, at)
    try insert.run()
  }

  public func setting(_ name: String) async throws(MissionError) -> [UInt8]? {
    try await read { try Self.setting(name, on: $0) }
  }

  public func makeSetting(
    _ name: String, _ value: [UInt8]
  ) async throws(MissionError) -> [UInt8] {
    try await write { connection in
      if let made = try Self.setting(name, on: connection) { return made }
      let insert = try connection.statement("INSERT INTO settings(name, value) VALUES (?, ?)")
      insert.bind(1, name)
      insert.bind(2, blob: value)
      try insert.run()
      return value
    }
  }

  public func remakeSetting(
    _ name: String, _ value: [UInt8]
  ) async throws(MissionError) -> Bool {
    try await write { connection in
      let kept = try connection.statement(
        """
        SELECT EXISTS(SELECT 1 FROM missions) OR EXISTS(SELECT 1 FROM objects)
          OR EXISTS(SELECT 1 FROM partials)
        """)
      guard try kept.first({ $0.int64(0) }) == 0 else { return false }
      let replace = try connection.statement(
        "INSERT OR REPLACE INTO settings(name, value) VALUES (?, ?)")
      replace.bind(1, name)
      replace.bind(2, blob: value)
      try replace.run()
      return true
    }
  }

  private static func setting(_ name: String, on connection: SQLiteConnection) throws -> [UInt8]? {
    let find = try connection.statement("SELECT value FROM settings WHERE name = ?")
    find.bind(1, name)
    return try find.first { $0.blob(0) }
  }
}
