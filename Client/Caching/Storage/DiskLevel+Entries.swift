import FerryCryptography
import FerryNetworking
import FerryPlatform
import FerrySQLite

extension DiskLevel {
  /// Returns all answers under a key.
  func heads(of key: CacheKey) throws -> [CachedHead] {
    try connection.rows(
      """
      SELECT id, status, fields, requested, received, vary, variant FROM entries
      WHERE key = ? ORDER BY id
      """, key.digest
    ) { row in
      let names = row.text(5).words(at: ",").map(String.init)
      return CachedHead(
        id: row.int64(0), status: Int(row.int64(1)), headers: FieldText.headers(row.text(2)),
        requested: row.int64(3), received: row.int64(4),
        variant: Variant(names: names, digest: row.blob(6)))
    }
  }

  /// Returns an answer's body. If it is gone or differs from the stored one, removes the answer and
  /// returns `nil`.
  func body(of id: Int64) throws -> [UInt8]? {
    let kept = try connection.first(
      "SELECT hash, length, isFile, body FROM entries WHERE id = ?", id
    ) { row -> [UInt8]? in
      let (hash, length) = (row.blob(0), Int(row.int64(1)))
      if row.int64(2) == 1 { return files?.body(hash: hash, length: length) }
      let body = row.blob(3)
      return body.count == length && SHA256.digest(of: body) == hash ? body : nil
    }
    if let body = kept ?? nil { return body }
    try remove([id])
    return nil
  }

  /// Stores an answer instead of the one for the same requests. Returns the new id.
  func store(_ body: [UInt8], as head: CachedHead, under key: CacheKey) throws -> Int64 {
    let hash = SHA256.digest(of: body)
    let prepared = body.count > Self.inlineMax ? try files?.prepare(body) : nil
    do {
      return try connection.transaction {
        try removeVariant(head.variant, of: key)
        if let prepared { try files?.finish(prepared, hash: hash) }
        let id = try insert(body, hash: hash, isFile: prepared != nil, head, key)
        try removeOldVariants(of: key)
        return id
      }
    } catch {
      if let prepared { files?.discard(prepared) }
      throw error
    }
  }

  /// Writes an answer's renewed fields and times.
  func update(_ head: CachedHead) throws {
    try connection.run(
      """
      UPDATE entries SET fields = ?2, requested = ?3, received = ?4,
        size = size - length(CAST(fields AS BLOB)) + length(CAST(?2 AS BLOB)), used = ?5
      WHERE id = ?1
      """, head.id, FieldText.text(head.headers), head.requested, head.received, nextUse())
  }

  /// Records the use of these answers, in this order.
  func touch(_ ids: [Int64]) throws {
    guard !ids.isEmpty else { return }
    try connection.transaction {
      for id in ids {
        let use = try nextUse()
        try connection.run("UPDATE entries SET used = ? WHERE id = ?", use, id)
      }
    }
  }

  /// Counts a use: the order of uses needs no clock.
  private func nextUse() throws -> Int64 {
    try connection.integer("UPDATE state SET uses = uses + 1 RETURNING uses")
  }

  private func insert(
    _ body: [UInt8], hash: [UInt8], isFile: Bool, _ head: CachedHead, _ key: CacheKey
  ) throws -> Int64 {
    let use = try nextUse()
    let fields = FieldText.text(head.headers)
    var id: Int64 = 0
    try connection.forEach(
      """
      INSERT INTO entries(key, variant, vary, partition, endpoint, status, requested, received,
        used, size, hash, length, isFile, fields, body)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
      """, key.digest, head.variant.digest, head.variant.names.joined(separator: ","),
      key.partition, key.endpoint, head.status, head.requested, head.received, use,
      body.count + fields.utf8.count + Self.rowBytes, hash, body.count, isFile, fields,
      isFile ? nil : body
    ) { id = $0.int64(0) }
    return id
  }

  private func removeVariant(_ variant: Variant, of key: CacheKey) throws {
    try connection.run(
      "DELETE FROM entries WHERE key = ? AND variant = ?", key.digest, variant.digest)
  }

  private func removeOldVariants(of key: CacheKey) throws {
    try connection.run(
      """
      DELETE FROM entries WHERE key = ?1 AND id NOT IN
        (SELECT id FROM entries WHERE key = ?1 ORDER BY id DESC LIMIT ?2)
      """, key.digest, Self.variantsMax)
  }
}

/// Header fields as one text, a line each.
enum FieldText {
  /// Returns the fields as a text; omits fields with a line break or U+0000: no server can send
  /// them.
  static func text(_ headers: TransportHeaders) -> String {
    headers.fields.lazy
      .filter { field in
        !(field.name + field.value).utf8.contains { $0 == 0x0A || $0 == 0 }
          && !field.name.utf8.contains(UInt8(ascii: ":"))
      }
      .map { $0.name + ":" + $0.value + "\n" }.joined()
  }

  static func headers(_ text: String) -> TransportHeaders {
    var headers = TransportHeaders()
    for line in text.utf8.split(separator: 0x0A) {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
      headers.add(
        String(Substring(line[..<colon])), String(Substring(line[line.index(after: colon)...])))
    }
    return headers
  }
}
