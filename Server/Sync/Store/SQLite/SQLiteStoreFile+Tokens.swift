import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  private static let columns =
    "t.id, t.name, t.owner, t.grants, t.created_at, t.expires_at, t.used_at"

  func addToken(
    _ token: StoredToken, hash: [UInt8], epoch: () -> Epoch, by mark: AuditMark?
  ) throws {
    try connection.transaction {
      for (pattern, _) in token.grants.list {
        guard let space = pattern.space else { continue }
        try insertSpace(space, epoch: epoch(), by: mark)
      }
      try connection.run(
        """
        INSERT INTO access_tokens(id, name, owner, grants, created_at, expires_at)
        VALUES (?, ?, ?, ?, ?, ?)
        """, token.id.text, token.name, token.owner, SQLiteText(token.grants.encoded()),
        token.createdAt, token.expiresAt)
      try addSecret(hash, of: token.id)
      try connection.execute(
        "INSERT INTO meta(key, value) VALUES ('had_tokens', '1') ON CONFLICT DO NOTHING")
      try append(token.entry(.tokenCreated, by: mark))
    }
  }

  private func addSecret(_ hash: [UInt8], of id: TokenID) throws {
    try connection.run("INSERT INTO token_secrets(hash, token) VALUES (?, ?)", hash, id.text)
  }

  func token(hash: [UInt8]) throws -> KnownToken? {
    let found = try connection.first(
      """
      SELECT \(Self.columns), s.expires_at FROM token_secrets AS s
      JOIN access_tokens AS t ON t.id = s.token WHERE s.hash = ?
      """, hash
    ) { row in
      token(row).map { KnownToken($0, secretExpiresAt: row.optionalInt64(7)) }
    }
    return found ?? nil
  }

  func secretHashes() throws -> [[UInt8]] {
    try connection.rows("SELECT hash FROM token_secrets") { $0.blob(0) }
  }

  func tokens() throws -> [StoredToken] {
    try connection.rows(
      "SELECT \(Self.columns) FROM access_tokens AS t ORDER BY t.created_at, t.id"
    ) { token($0) }.compactMap { $0 }
  }

  private func token(id: TokenID) throws -> StoredToken? {
    try connection.first("SELECT \(Self.columns) FROM access_tokens AS t WHERE t.id = ?", id.text) {
      token($0)
    } ?? nil
  }

  private func token(_ row: SQLiteStatement) -> StoredToken? {
    guard let id = TokenID(row.text(0)), let grants = AccessGrants(stored: row.text(3)) else {
      return nil
    }
    return StoredToken(
      id: id, name: row.text(1), owner: row.optionalText(2), grants: grants,
      createdAt: row.int64(4), expiresAt: row.optionalInt64(5), lastUsedAt: row.optionalInt64(6))
  }

  func removeToken(_ id: TokenID, by mark: AuditMark?) throws -> Bool {
    try connection.transaction {
      guard let token = try token(id: id) else { return false }
      for sql in [
        "DELETE FROM token_secrets WHERE token = ?", "DELETE FROM access_tokens WHERE id = ?",
      ] {
        try connection.run(sql, id.text)
      }
      try append(token.entry(.tokenRevoked, by: mark))
      return true
    }
  }

  func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) throws -> Bool {
    try connection.transaction {
      guard let token = try token(id: id) else { return false }
      try connection.run(
        """
        UPDATE token_secrets SET expires_at = min(coalesce(expires_at, ?1), ?1) WHERE token = ?2
        """, graceEnd, id.text)
      try addSecret(hash, of: id)
      try append(token.entry(.tokenRotated, by: mark))
      return true
    }
  }

  func noteTokenUses(_ uses: [TokenID: Int64]) throws {
    try connection.transaction {
      let note = try connection.statement(
        "UPDATE access_tokens SET used_at = max(coalesce(used_at, 0), ?) WHERE id = ?")
      for id in uses.keys.sorted() { try note.run(uses[id] ?? 0, id.text) }
    }
  }

  func hasEverHadTokens() throws -> Bool {
    try connection.exists("SELECT 1 FROM meta WHERE key = 'had_tokens'")
  }

  func check() throws { try connection.execute("SELECT 1 FROM spaces LIMIT 1") }
}
