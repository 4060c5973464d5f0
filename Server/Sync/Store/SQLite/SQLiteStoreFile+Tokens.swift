import FerryProtocol
import SQLite

extension SQLiteStoreFile {
  func addToken(_ token: StoredToken, epoch: Epoch) throws {
    _ = try createSpace(token.space, epoch: epoch)
    try connection.transaction {
      let insert = try connection.statement(
        "INSERT INTO tokens(hash, space, role, created_at) VALUES (?, ?, ?, ?)")
      insert.bind(1, blob: token.hash)
      insert.bind(2, token.space.value)
      insert.bind(3, token.role.rawValue)
      insert.bind(4, token.createdAt)
      try insert.run()
      try connection.execute(
        "INSERT INTO meta(key, value) VALUES ('had_tokens', '1') ON CONFLICT DO NOTHING")
    }
  }

  func token(hash: [UInt8]) throws -> StoredToken? {
    let find = try connection.statement(
      "SELECT hash, space, role, created_at FROM tokens WHERE hash = ?")
    find.bind(1, blob: hash)
    return try find.first { token($0) } ?? nil
  }

  func tokens() throws -> [StoredToken] {
    try connection.statement(
      "SELECT hash, space, role, created_at FROM tokens ORDER BY created_at, hash"
    ).map { token($0) }.compactMap { $0 }
  }

  private func token(_ row: SQLiteStatement) -> StoredToken? {
    guard let space = SpaceName(row.text(1)), let role = Role(rawValue: row.text(2)) else {
      return nil
    }
    return StoredToken(hash: row.blob(0), space: space, role: role, createdAt: row.int64(3))
  }

  func removeToken(hash: [UInt8]) throws -> Bool {
    let remove = try connection.statement("DELETE FROM tokens WHERE hash = ?")
    remove.bind(1, blob: hash)
    try remove.run()
    return connection.changes > 0
  }

  func hasEverHadTokens() throws -> Bool {
    try connection.statement("SELECT 1 FROM meta WHERE key = 'had_tokens'").first { _ in true }
      ?? false
  }

  func check() throws { try connection.execute("SELECT 1 FROM spaces LIMIT 1") }
}
