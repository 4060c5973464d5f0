import FerryProtocol

// Tokens in both stores.
extension SyncStore {
  /// Stores a token and the hash of its secret. Creates the spaces it names if absent.
  ///
  /// - Parameter quota: Maximum number of tokens of the token's account.
  /// - Returns: `false` if the account already has this many tokens.
  @discardableResult
  package func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?, quota: Int64 = .max
  ) async throws(StoreError) -> Bool {
    let makeEpoch = makeEpoch
    return try await plain(.writing) { connection in
      try connection.together {
        if let account = token.account {
          let count = try connection.rows(AccessQueries.count, [.text(account.id)]) {
            try $0.integer(0)
          }.first
          if count ?? 0 >= quota { return false }
        }
        for (pattern, _) in token.grants.list {
          guard let space = pattern.space else { continue }
          try connection.insertSpace(space, epoch: makeEpoch(), by: mark)
        }
        let grants = String(decoding: token.grants.encoded(), as: UTF8.self)
        try connection.run(
          AccessQueries.add,
          [
            .text(token.id.text), .text(token.name), .text(token.owner), .text(grants),
            .integer(token.createdAt), .integer(token.expiresAt), .text(token.account?.id),
          ])
        try connection.run(AccessQueries.addSecret, [.bytes(hash), .text(token.id.text)])
        try connection.run(AccessQueries.noteFirst, [])
        try connection.append(token.entry(.tokenCreated, by: mark))
        return true
      }
    }
  }

  /// Returns the token with this secret hash, even if expired; `nil` if there is none.
  package func token(hash: [UInt8]) async throws(StoreError) -> KnownToken? {
    try await plain(.authenticating) { connection in
      try connection.rows(AccessQueries.find, [.bytes(hash)]) { row in
        let end = try row.optionalInteger(8)
        return try StoredToken(row).map { KnownToken($0, secretExpiresAt: end) }
      }.first ?? nil
    }
  }

  /// Returns the hashes of all stored secrets, in any order.
  package func secretHashes() async throws(StoreError) -> [[UInt8]] {
    try await plain(.authenticating) { connection in
      try connection.rows(AccessQueries.hashes, []) { try $0.bytes(0) }
    }
  }

  /// Returns a token, even if it is expired; `nil` if there is none.
  package func token(_ id: TokenID) async throws(StoreError) -> StoredToken? {
    try await plain(.reading) { connection in
      try connection.rows(AccessQueries.named, [.text(id.text)]) { try StoredToken($0) }.first
        ?? nil
    }
  }

  /// Returns the next tokens, oldest first.
  ///
  /// - Parameters:
  ///   - place: the place of the token after which the list continues.
  ///   - limit: the most tokens.
  package func tokens(
    after place: StoredToken.Place?, limit: Int
  ) async throws(StoreError) -> [StoredToken] {
    let parameters: [PlainValue] = [
      .integer(place?.createdAt ?? .min), .text(place?.id.text ?? ""), .integer(Int64(limit)),
    ]
    return try await plain(.reading) { connection in
      try connection.rows(AccessQueries.list, parameters) { try StoredToken($0) }.compactMap { $0 }
    }
  }

  /// Deletes a token and the token's secrets. Returns `true` if it existed.
  package func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool {
    try await plain(.writing) { connection in
      try connection.together {
        guard let token = try connection.lockToken(id) else { return false }
        try connection.run(AccessQueries.removeSecrets, [.text(id.text)])
        try connection.run(AccessQueries.remove, [.text(id.text)])
        try connection.append(token.entry(.tokenRevoked, by: mark))
        return true
      }
    }
  }

  /// Replaces the secret of a token. The former secrets end at `graceEnd` or earlier, and those
  /// above ``StoredToken/secretsMax`` at once. Returns `true` if the token exists.
  package func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await plain(.writing) { connection in
      try connection.together {
        guard let token = try connection.lockToken(id) else { return false }
        try connection.run(AccessQueries.endSecrets, [.integer(graceEnd), .text(id.text)])
        try connection.run(AccessQueries.addSecret, [.bytes(hash), .text(id.text)])
        try connection.run(
          AccessQueries.boundSecrets, [.text(id.text), .integer(Int64(StoredToken.secretsMax))])
        try connection.append(token.entry(.tokenRotated, by: mark))
        return true
      }
    }
  }

  /// Stores the last use of tokens, in milliseconds since 1970.
  package func storeTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError) {
    try await plain(.writing) { connection in
      // In order: nodes that record the same tokens never wait for each other in a circle.
      try connection.perform(
        uses.sorted { $0.key < $1.key }.map {
          .one(AccessQueries.use, [.integer($1), .text($0.text)])
        })
    }
  }

  /// Returns whether a token was ever made, even if it was removed since. The answer is never
  /// outdated: it includes each token whose creation has returned, in any process.
  package func hasEverHadTokens() async throws(StoreError) -> Bool {
    try await plain(.authenticating) { try $0.hasEverHadTokens() }
  }

  // MARK: The audit log

  /// Appends an entry about something outside of the store.
  package func append(_ entry: AuditEntry) async throws(StoreError) {
    try await plain(.writing) { try $0.append(entry) }
  }

  /// Returns entries of the audit log, by their numbers.
  package func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry] {
    let part: [PlainValue] = [
      .integer(query.after), .integer(query.since), .integer(Int64(query.limit)),
    ]
    return try await plain(.reading) { connection in
      guard let space = query.space else {
        return try connection.rows(AuditEntry.read, part) { try AuditEntry($0) }
      }
      return try connection.rows(AuditEntry.readSpace, [.text(space.value)] + part) {
        try AuditEntry($0)
      }
    }
  }

  /// Deletes the entries and replaced secrets that ended before a moment. Returns the number of
  /// entries.
  package func endAudit(before moment: Int64) async throws(StoreError) -> Int {
    try await plain(.writing) { connection in
      try connection.run(AccessQueries.endOldSecrets, [.integer(moment)])
      return try connection.run(AuditEntry.end, [.integer(moment)])
    }
  }
}

extension SyncStore {
  /// Passes all tokens to `body`, oldest first, ``StoredToken/pageMax`` at most at a time.
  package func forEachPage(_ body: ([StoredToken]) async throws -> Void) async throws {
    var place: StoredToken.Place?
    while true {
      let page = try await tokens(after: place, limit: StoredToken.pageMax)
      try await body(page)
      guard page.count == StoredToken.pageMax, let last = page.last else { return }
      place = last.place
    }
  }
}

extension PlainConnection {
  func hasEverHadTokens() throws -> Bool {
    try !rows(AccessQueries.hadTokens, []) { _ in true }.isEmpty
  }

  /// Returns a token, and lets no other transaction change it before this one has ended.
  fileprivate func lockToken(_ id: TokenID) throws -> StoredToken? {
    try rows(AccessQueries.lock, [.text(id.text)]) { try StoredToken($0) }.first ?? nil
  }

  /// Appends an entry to the audit log, within the transaction under way.
  func append(_ entry: AuditEntry?) throws {
    if let entry { try run(AuditEntry.append, entry.values) }
  }

  /// Appends an entry about a space known by number.
  func append(
    _ mark: AuditMark?, _ action: AuditAction, of space: Int64, _ detail: String
  ) throws {
    if let mark { try perform(mark.writes(action, of: space, detail)) }
  }
}

enum AccessQueries {
  private static let columns = """
    id, name, owner, grants, created_at, expires_at, used_at, account
    """

  static let add = PlainStatement(
    "token_add",
    """
    INSERT INTO access_tokens(id, name, owner, grants, created_at, expires_at, account)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    """)
  static let count = PlainStatement(
    "token_count", "SELECT count(*) FROM access_tokens WHERE account = $1")
  static let addSecret = PlainStatement(
    "token_secret_add", "INSERT INTO token_secrets(hash, token) VALUES ($1, $2)")
  static let noteFirst = PlainStatement(
    "token_noted",
    "INSERT INTO meta(key, value) VALUES ('had_tokens', '1') ON CONFLICT DO NOTHING")
  static let hadTokens = PlainStatement(
    "had_tokens", "SELECT 1 FROM meta WHERE key = 'had_tokens'")
  static let find = PlainStatement(
    "token_find",
    """
    SELECT t.id, t.name, t.owner, t.grants, t.created_at, t.expires_at, t.used_at, t.account,
      s.expires_at
    FROM token_secrets AS s JOIN access_tokens AS t ON t.id = s.token WHERE s.hash = $1
    """)
  static let hashes = PlainStatement("token_hashes", "SELECT hash FROM token_secrets")
  static let named = PlainStatement(
    "token_named", "SELECT \(columns) FROM access_tokens WHERE id = $1")
  static let list = PlainStatement(
    "tokens_list",
    """
    SELECT \(columns) FROM access_tokens WHERE (created_at, id) > ($1, $2)
    ORDER BY created_at, id LIMIT $3
    """)
  /// SQLite has no `FOR UPDATE`.
  static let lock = PlainStatement(
    "token_lock", "UPDATE access_tokens SET id = id WHERE id = $1 RETURNING \(columns)")
  static let removeSecrets = PlainStatement(
    "token_secrets_remove", "DELETE FROM token_secrets WHERE token = $1")
  static let remove = PlainStatement("token_remove", "DELETE FROM access_tokens WHERE id = $1")
  static let endSecrets = PlainStatement(
    "token_secrets_end",
    """
    UPDATE token_secrets SET expires_at = CASE WHEN expires_at < $1 THEN expires_at ELSE $1 END
    WHERE token = $2
    """)
  /// Secrets with the earliest end go first; the newest one has no end.
  static let boundSecrets = PlainStatement(
    "token_secrets_bound",
    """
    DELETE FROM token_secrets WHERE token = $1 AND hash NOT IN (
      SELECT hash FROM token_secrets WHERE token = $1
      ORDER BY CASE WHEN expires_at IS NULL THEN 0 ELSE 1 END, expires_at DESC, hash LIMIT $2)
    """)
  static let endOldSecrets = PlainStatement(
    "token_secrets_forget", "DELETE FROM token_secrets WHERE expires_at < $1")
  static let use = PlainStatement(
    "token_use",
    """
    UPDATE access_tokens SET used_at = CASE WHEN used_at > $1 THEN used_at ELSE $1 END
    WHERE id = $2
    """)
}

extension StoredToken {
  fileprivate init?(_ row: any PlainRow) throws {
    guard let id = TokenID(try row.text(0)), let grants = AccessGrants(stored: try row.text(3))
    else { return nil }
    self.init(
      id: id, name: try row.text(1), owner: try row.optionalText(2),
      account: try row.optionalText(7).flatMap { Principal($0) }, grants: grants,
      createdAt: try row.integer(4), expiresAt: try row.optionalInteger(5),
      lastUsedAt: try row.optionalInteger(6))
  }
}

extension AuditEntry {
  fileprivate static let append = PlainStatement(
    "audit_append",
    "INSERT INTO audit(at, principal, action, space, detail) VALUES ($1, $2, $3, $4, $5)")
  fileprivate static let appendOfSpace = PlainStatement(
    "audit_append_space",
    """
    INSERT INTO audit(at, principal, action, space, detail)
    SELECT $1, $2, $3, name, $4 FROM space_names WHERE id = $5
    """)
  fileprivate static let read = PlainStatement(
    "audit_read",
    """
    SELECT number, at, principal, action, space, detail FROM audit
    WHERE number > $1 AND at >= $2 ORDER BY number LIMIT $3
    """)
  fileprivate static let readSpace = PlainStatement(
    "audit_read_space",
    """
    SELECT number, at, principal, action, space, detail FROM audit
    WHERE space = $1 AND number > $2 AND at >= $3 ORDER BY number LIMIT $4
    """)
  fileprivate static let end = PlainStatement("audit_end", "DELETE FROM audit WHERE at < $1")

  /// The parameters of ``append``.
  var values: [PlainValue] {
    [.integer(at), .text(principal), .text(action), .text(space?.value), .text(detail)]
  }

  fileprivate init(_ row: any PlainRow) throws {
    self.init(
      number: try row.integer(0), at: try row.integer(1), principal: try row.text(2),
      action: try row.text(3), space: try row.optionalText(4).flatMap { SpaceName($0) },
      detail: try row.text(5))
  }
}

extension AuditMark {
  /// Returns the writes of an entry about a space.
  func writes(_ action: AuditAction, of space: Int64, _ detail: String) -> [PlainStep] {
    [
      .one(
        AuditEntry.appendOfSpace,
        [
          .integer(at), .text(principal.id), .text(action.rawValue), .text(detail),
          .integer(space),
        ])
    ]
  }
}
