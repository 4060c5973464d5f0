import FerryHTTPServer
import FerryProtocol

// The requests about tokens and the audit log, which are about no single space.
extension SyncService {
  /// Returns the caller of a route without a single space.
  func caller(_ context: inout RequestContext) async throws(Problem) -> Identity {
    let identity = try await identify(context.request, context.match.route)
    context.principal = identity.principal
    try count(&context)
    return identity
  }

  /// Returns the sender of a request without a single space.
  ///
  /// Throws `forbidden` if the sender administers no space.
  func identify(_ request: HTTPRequest, _ route: Route) async throws(Problem) -> Identity {
    let visitor = Self.visitor(request, route)
    let gate = parts.gate
    let identity = try await ask { () async throws(StoreError) in
      try await gate.identify(visitor)
    }.get()
    guard identity.grants.administersAny else {
      throw Problem(.forbidden, "this needs the role admin")
    }
    return identity
  }

  /// Lists the tokens that the caller manages.
  func tokens(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let (tokens, next) = try await managedTokens(context.request.query, caller)
    var json = JSONWriter(capacity: 256 + tokens.count * 256)
    json.object { json in
      json.key("tokens")
      json.array(of: tokens) { json, token in
        json.object { token.writeMembers(to: &$0) }
      }
      json.member("next", next?.text)
    }
    return .json(json.finish())
  }

  /// Tokens read at once: each may have a hundred patterns.
  private static let tokensRead = 100
  /// Patterns of a page of tokens, after which it ends.
  private static let patternsMax = 5_000

  /// Returns the next tokens managed by the caller, and the place at which the list continues.
  /// Reads a page of all tokens at a time.
  private func managedTokens(
    _ query: [String: String], _ caller: Identity
  ) async throws(Problem) -> ([StoredToken], next: StoredToken.Place?) {
    let most = StoredToken.pageMax
    let limit =
      if let text = query["limit"] {
        Int(clamping: try InspectionQuery.number(text, "limit", in: 1...Int64(most)))
      } else { most }
    var place: StoredToken.Place?
    if let text = query["after"] {
      place = StoredToken.Place(text)
      guard place != nil else { throw Problem(.malformedMessage, "after is a list's next place") }
    }
    let (store, step) = (parts.store, Self.tokensRead)
    var found: [StoredToken] = []
    var patterns = 0
    while true {
      let start = place
      let page = try await ask { () async throws(StoreError) in
        try await store.tokens(after: start, limit: step)
      }
      for token in page where TokenRule.manages(token, caller) {
        if found.count == limit || patterns > Self.patternsMax {
          return (found, found.last?.place)
        }
        found.append(token)
        patterns += token.grants.roles.count
      }
      guard page.count == step, let last = page.last else { return (found, nil) }
      place = last.place
    }
  }

  func createToken(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let request = try read(context.request.body) { (body, _) throws(MalformedMessage) in
      try TokenRequest(decoding: body)
    }
    if let fault = TokenRule.fault(creating: request, by: caller) { throw fault }
    var random = SystemRandomNumberGenerator()
    let (token, secret) = request.make(
      now: parts.clock.wall(), account: TokenRule.account(of: request, madeBy: caller),
      random: &random)
    let (store, quota, mark) = (parts.store, parts.quotas.tokens, mark(caller.principal))
    for (pattern, _) in token.grants.list {
      guard let space = pattern.space else { continue }
      _ = try await makeSpace(space, by: caller.principal)
    }
    let isAdded = try await ask { () async throws(StoreError) in
      try await store.addToken(token, hash: secret.hash, by: mark, quota: quota)
    }
    guard isAdded else {
      throw Problem(
        .storageQuota,
        "you have made \(quota) tokens, the limit of one user. Revoke some, or ask the server's "
          + "administrator")
    }
    return .json(Self.secret(secret, of: token), status: 201)
  }

  /// Revokes a token.
  func revokeToken(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let token = try await managedToken(context, caller)
    let (store, mark) = (parts.store, mark(caller.principal))
    let wasThere = try await ask { () async throws(StoreError) in
      try await store.removeToken(token.id, by: mark)
    }
    guard wasThere else { throw .unknownToken }
    return HTTPResponse(status: 204, headers: ["Cache-Control": "no-store"])
  }

  /// Replaces the secret of a token.
  func rotateToken(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let token = try await managedToken(context, caller)
    if let fault = TokenRule.fault(rotating: token, by: caller) { throw fault }
    let grace = try read(context.request.body) { (body, _) throws(MalformedMessage) in
      body.isEmpty ? 0 : try TokenRotation(decoding: body).grace
    }
    var random = SystemRandomNumberGenerator()
    let secret = AccessToken(random: &random)
    let (store, mark) = (parts.store, mark(caller.principal))
    let graceEnd = parts.clock.wall() + grace * 1_000
    let wasThere = try await ask { () async throws(StoreError) in
      try await store.rotateToken(token.id, hash: secret.hash, graceEnd: graceEnd, by: mark)
    }
    guard wasThere else { throw .unknownToken }
    return .json(Self.secret(secret, of: token))
  }

  private func managedToken(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> StoredToken {
    guard let id = TokenID(context.match.itemText ?? "") else { throw .unknownToken }
    let store = parts.store
    let found = try await ask { () async throws(StoreError) in try await store.token(id) }
    // A token not managed by the caller is as unknown as a missing one.
    guard let token = found, TokenRule.manages(token, caller) else { throw .unknownToken }
    return token
  }

  private static func secret(_ secret: AccessToken, of token: StoredToken) -> [UInt8] {
    var json = JSONWriter(capacity: 512)
    json.object { json in
      json.member("token", secret.text)
      token.writeMembers(to: &json)
    }
    return json.finish()
  }

  /// Returns the author of a change, for the audit log.
  func mark(_ principal: Principal) -> AuditMark { AuditMark(principal, at: parts.clock.wall()) }

  // MARK: The audit log

  func audit(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    guard caller.grants.isServerAdmin else {
      throw Problem(.forbidden, "the audit log is for admins of all spaces")
    }
    let query = try Self.auditQuery(context.request.query)
    let store = parts.store
    let entries = try await ask { () async throws(StoreError) in try await store.audit(query) }
    var json = JSONWriter(capacity: 256 + entries.count * 256)
    json.object { json in
      json.key("entries")
      json.array(of: entries)
    }
    return .json(json.finish())
  }

  private static func auditQuery(_ query: [String: String]) throws(Problem) -> AuditQuery {
    func number(
      _ name: String, in range: ClosedRange<Int64> = 0...Int64.max
    ) throws(Problem) -> Int64? {
      guard let text = query[name] else { return nil }
      return try InspectionQuery.number(text, name, in: range)
    }
    var space: SpaceName?
    if let text = query["space"] {
      space = SpaceName(text)
      guard space != nil else { throw Problem(.malformedMessage, "space is a space's name") }
    }
    return AuditQuery(
      space: space, since: try number("since") ?? 0, after: try number("after") ?? 0,
      limit: Int(
        clamping: try number("limit", in: 1...Int64(AuditQuery.countMax))
          ?? Int64(AuditQuery.countMax)))
  }
}

extension StoredToken {
  /// Writes a token without the secret.
  fileprivate func writeMembers(to json: inout JSONWriter) {
    json.member("id", id.text)
    json.member("name", name)
    json.member("owner", owner)
    json.member("account", Principal(self).account.id)
    json.member("spaces", grants)
    json.member("createdAt", createdAt)
    json.member("expiresAt", expiresAt)
    json.member("lastUsedAt", lastUsedAt)
  }
}

extension AuditEntry: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("number", number)
      json.member("time", at)
      json.member("principal", principal)
      json.member("action", action)
      json.member("space", space?.value)
      json.member("detail", detail)
    }
  }
}

extension Problem {
  fileprivate static let unknownToken = Problem(.notFound, "there is no such token")
}
