import FerryProtocol
import SQLite

extension SQLiteStoreFile {
  /// Appends an entry to the audit log, within the transaction under way.
  func append(_ entry: AuditEntry) throws {
    let insert = try connection.statement(
      "INSERT INTO audit(at, principal, action, space, detail) VALUES (?, ?, ?, ?, ?)")
    insert.bind(1, entry.at)
    insert.bind(2, entry.principal)
    insert.bind(3, entry.action)
    insert.bind(4, entry.space?.value)
    insert.bind(5, entry.detail)
    try insert.run()
  }

  /// Appends an entry about a space that is known by its number.
  func append(
    _ mark: AuditMark?, _ action: AuditAction, of space: Int64, _ detail: String
  ) throws {
    guard let mark else { return }
    let find = try connection.statement("SELECT name FROM spaces WHERE id = ?")
    find.bind(1, space)
    let name = try find.first { SpaceName($0.text(0)) } ?? nil
    try append(mark.entry(action, space: name, detail))
  }

  func note(_ entry: AuditEntry) throws { try connection.transaction { try append(entry) } }

  func audit(_ query: AuditQuery) throws -> [AuditEntry] {
    let find = try connection.statement(
      query.space == nil
        ? """
        SELECT number, at, principal, action, space, detail FROM audit
        WHERE number > ?1 AND at >= ?2 ORDER BY number LIMIT ?3
        """
        : """
        SELECT number, at, principal, action, space, detail FROM audit
        WHERE space = ?4 AND number > ?1 AND at >= ?2 ORDER BY number LIMIT ?3
        """)
    find.bind(1, query.after)
    find.bind(2, query.since)
    find.bind(3, query.limit)
    if let space = query.space { find.bind(4, space.value) }
    return try find.map { row in
      AuditEntry(
        number: row.int64(0), at: row.int64(1), principal: row.text(2), action: row.text(3),
        space: row.optionalText(4).flatMap { SpaceName($0) }, detail: row.text(5))
    }
  }

  func endAudit(before moment: Int64) throws -> Int {
    try connection.transaction {
      let secrets = try connection.statement("DELETE FROM token_secrets WHERE expires_at < ?")
      secrets.bind(1, moment)
      try secrets.run()
      let entries = try connection.statement("DELETE FROM audit WHERE at < ?")
      entries.bind(1, moment)
      try entries.run()
      return connection.changes
    }
  }
}
