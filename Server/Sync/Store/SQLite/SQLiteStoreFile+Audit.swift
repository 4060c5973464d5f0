import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  /// Appends an entry to the audit log, within the transaction under way.
  func append(_ entry: AuditEntry?) throws {
    guard let entry else { return }
    try connection.run(
      "INSERT INTO audit(at, principal, action, space, detail) VALUES (?, ?, ?, ?, ?)", entry.at,
      entry.principal, entry.action, entry.space?.value, entry.detail)
  }

  /// Appends an entry about a space that is known by its number.
  func append(
    _ mark: AuditMark?, _ action: AuditAction, of space: Int64, _ detail: String
  ) throws {
    guard let mark else { return }
    let name =
      try connection.first("SELECT name FROM spaces WHERE id = ?", space) {
        SpaceName($0.text(0))
      } ?? nil
    try append(mark.entry(action, space: name, detail))
  }

  func note(_ entry: AuditEntry) throws { try connection.transaction { try append(entry) } }

  func audit(_ query: AuditQuery) throws -> [AuditEntry] {
    try connection.rows(
      query.space == nil
        ? """
        SELECT number, at, principal, action, space, detail FROM audit
        WHERE number > ?1 AND at >= ?2 ORDER BY number LIMIT ?3
        """
        : """
        SELECT number, at, principal, action, space, detail FROM audit
        WHERE space = ?4 AND number > ?1 AND at >= ?2 ORDER BY number LIMIT ?3
        """, query.after, query.since, query.limit,
      SQLiteList([query.space?.value].compactMap(\.self))
    ) { row in
      AuditEntry(
        number: row.int64(0), at: row.int64(1), principal: row.text(2), action: row.text(3),
        space: row.optionalText(4).flatMap { SpaceName($0) }, detail: row.text(5))
    }
  }

  func endAudit(before moment: Int64) throws -> Int {
    try connection.transaction {
      try connection.run("DELETE FROM token_secrets WHERE expires_at < ?", moment)
      return try connection.run("DELETE FROM audit WHERE at < ?", moment)
    }
  }
}
