import FerryPostgres
import FerryProtocol

/// Tokens and the audit log in PostgreSQL.
enum PostgresAccess {
  private static let columns =
    "t.id, t.name, t.owner, t.grants, t.created_at, t.expires_at, t.used_at"

  private static let add = PostgresStatement(
    "token_add",
    """
    INSERT INTO access_tokens(id, name, owner, grants, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    """)
  private static let addSecret = PostgresStatement(
    "token_secret_add", "INSERT INTO token_secrets(hash, token) VALUES ($1, $2)")
  private static let noteFirst = PostgresStatement(
    "token_noted", "INSERT INTO meta VALUES ('had_tokens', '1') ON CONFLICT DO NOTHING")

  static func add(
    _ token: StoredToken, hash: [UInt8], epoch: () -> Epoch, by mark: AuditMark?,
    on connection: PostgresConnection
  ) throws {
    try connection.transaction { connection in
      for (pattern, _) in token.grants.list {
        guard let space = pattern.space else { continue }
        try PostgresStore.insertSpace(space, epoch: epoch(), by: mark, on: connection)
      }
      var parameters: PostgresParameters = [
        .text(token.id.text), .text(token.name), .text(token.owner),
      ]
      parameters.append(utf8: token.grants.encoded())
      parameters.append(token.createdAt)
      parameters.append(token.expiresAt)
      _ = try connection.pipeline { pipeline in
        pipeline.add(add, parameters)
        pipeline.add(addSecret, [.bytea(hash), .text(token.id.text)])
        pipeline.add(noteFirst)
        append(token.entry(.tokenCreated, by: mark), to: &pipeline)
        pipeline.commit()
      }
    }
  }

  private static let find = PostgresStatement(
    "token_find",
    """
    SELECT \(columns), s.expires_at FROM token_secrets AS s
    JOIN access_tokens AS t ON t.id = s.token WHERE s.hash = $1
    """)

  static func token(hash: [UInt8], on connection: PostgresConnection) throws -> KnownToken? {
    guard let row = try connection.query(find, [.bytea(hash)]).first,
      let token = try StoredToken(row)
    else { return nil }
    return KnownToken(token, secretExpiresAt: try row.ifPresent(7))
  }

  private static let hashes = PostgresStatement("token_hashes", "SELECT hash FROM token_secrets")

  static func secretHashes(on connection: PostgresConnection) throws -> [[UInt8]] {
    try connection.query(hashes).map { try $0.value(0) }
  }

  private static let all = PostgresStatement(
    "tokens_all", "SELECT \(columns) FROM access_tokens AS t ORDER BY t.created_at, t.id")

  static func tokens(on connection: PostgresConnection) throws -> [StoredToken] {
    try connection.query(all).compactMap { try StoredToken($0) }
  }

  private static let one = PostgresStatement(
    "token_one", "SELECT \(columns) FROM access_tokens AS t WHERE t.id = $1 FOR UPDATE")

  private static func token(
    id: TokenID, on connection: PostgresConnection
  ) throws -> StoredToken? {
    try connection.query(one, [.text(id.text)]).first.flatMap { try StoredToken($0) }
  }

  private static let removeSecrets = PostgresStatement(
    "token_secrets_remove", "DELETE FROM token_secrets WHERE token = $1")
  private static let remove = PostgresStatement(
    "token_remove", "DELETE FROM access_tokens WHERE id = $1")

  static func remove(
    _ id: TokenID, by mark: AuditMark?, on connection: PostgresConnection
  ) throws -> Bool {
    try connection.transaction { connection in
      let token = try token(id: id, on: connection)
      _ = try connection.pipeline { pipeline in
        if let token {
          pipeline.add(removeSecrets, [.text(id.text)])
          pipeline.add(remove, [.text(id.text)])
          append(token.entry(.tokenRevoked, by: mark), to: &pipeline)
        }
        pipeline.commit()
      }
      return token != nil
    }
  }

  private static let endSecrets = PostgresStatement(
    "token_secrets_end",
    "UPDATE token_secrets SET expires_at = least(coalesce(expires_at, $1), $1) WHERE token = $2")

  static func rotate(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?,
    on connection: PostgresConnection
  ) throws -> Bool {
    try connection.transaction { connection in
      let token = try token(id: id, on: connection)
      _ = try connection.pipeline { pipeline in
        if let token {
          pipeline.add(endSecrets, [.int8(graceEnd), .text(id.text)])
          pipeline.add(addSecret, [.bytea(hash), .text(id.text)])
          append(token.entry(.tokenRotated, by: mark), to: &pipeline)
        }
        pipeline.commit()
      }
      return token != nil
    }
  }

  private static let use = PostgresStatement(
    "token_use",
    """
    UPDATE access_tokens SET used_at = greatest(coalesce(used_at, 0), $2) WHERE id = $1
    """)

  static func note(_ uses: [TokenID: Int64], on connection: PostgresConnection) throws {
    _ = try connection.pipeline { pipeline in
      // In order: nodes that note the same tokens never wait for each other in a circle.
      for id in uses.keys.sorted() { pipeline.add(use, [.text(id.text), .int8(uses[id])]) }
    }
  }

  private static let hadTokens = PostgresStatement(
    "had_tokens", "SELECT 1 FROM meta WHERE key = 'had_tokens'")

  static func hasEverHadTokens(on connection: PostgresConnection) throws -> Bool {
    try connection.query(hadTokens).first != nil
  }

  // MARK: The audit log

  private static let append = PostgresStatement(
    "audit_append",
    "INSERT INTO audit(at, principal, action, space, detail) VALUES ($1, $2, $3, $4, $5)")
  private static let appendOfSpace = PostgresStatement(
    "audit_append_space",
    """
    INSERT INTO audit(at, principal, action, space, detail)
    SELECT $1, $2, $3, name, $5 FROM spaces WHERE id = $4
    """)

  static func append(_ entry: AuditEntry?, to pipeline: inout PostgresPipeline) {
    guard let entry else { return }
    pipeline.add(
      append,
      [
        .int8(entry.at), .text(entry.principal), .text(entry.action), .text(entry.space?.value),
        .text(entry.detail),
      ])
  }

  /// Appends an entry about a space that is known by its number.
  static func append(
    _ mark: AuditMark?, _ action: AuditAction, of space: Int64, _ detail: String,
    to pipeline: inout PostgresPipeline
  ) {
    guard let mark else { return }
    pipeline.add(
      appendOfSpace,
      [
        .int8(mark.at), .text(mark.principal.id), .text(action.rawValue), .int8(space),
        .text(detail),
      ])
  }

  static func note(_ entry: AuditEntry, on connection: PostgresConnection) throws {
    _ = try connection.pipeline { append(entry, to: &$0) }
  }

  private static let read = PostgresStatement(
    "audit_read",
    """
    SELECT number, at, principal, action, space, detail FROM audit
    WHERE number > $1 AND at >= $2 ORDER BY number LIMIT $3
    """)
  private static let readSpace = PostgresStatement(
    "audit_read_space",
    """
    SELECT number, at, principal, action, space, detail FROM audit
    WHERE space = $4 AND number > $1 AND at >= $2 ORDER BY number LIMIT $3
    """)

  static func audit(
    _ query: AuditQuery, on connection: PostgresConnection
  ) throws -> [AuditEntry] {
    var parameters: PostgresParameters = [
      .int8(query.after), .int8(query.since), .int8(Int64(query.limit)),
    ]
    if let space = query.space { parameters.append(.text(space.value)) }
    return try connection.query(query.space == nil ? read : readSpace, parameters).map { row in
      let space: String? = try row.ifPresent(4)
      return AuditEntry(
        number: try row.int8(0), at: try row.int8(1), principal: try row.text(2),
        action: try row.text(3), space: space.flatMap { SpaceName($0) }, detail: try row.text(5))
    }
  }

  private static let endAudit = PostgresStatement(
    "audit_end", "DELETE FROM audit WHERE at < $1")
  private static let endOldSecrets = PostgresStatement(
    "token_secrets_forget", "DELETE FROM token_secrets WHERE expires_at < $1")

  static func endAudit(before moment: Int64, on connection: PostgresConnection) throws -> Int {
    _ = try connection.query(endOldSecrets, [.int8(moment)])
    return try connection.query(endAudit, [.int8(moment)]).affected
  }
}

extension StoredToken {
  fileprivate init?(_ row: PostgresRow) throws {
    guard let id = TokenID(try row.text(0)), let grants = AccessGrants(stored: try row.text(3))
    else { return nil }
    self.init(
      id: id, name: try row.text(1), owner: try row.ifPresent(2), grants: grants,
      createdAt: try row.int8(4), expiresAt: try row.ifPresent(5),
      lastUsedAt: try row.ifPresent(6))
  }
}
