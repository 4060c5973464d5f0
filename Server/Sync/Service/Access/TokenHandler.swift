import FerryHTTPServer
import FerryProtocol

/// Answers requests about tokens, which are about no single space.
struct TokenHandler: Sendable {
  let core: ServiceCore

  /// Lists the tokens that the caller manages.
  func list(
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
    let step = Self.tokensRead
    var found: [StoredToken] = []
    var patterns = 0
    while true {
      let start = place
      let page = try await core.ask { (store) async throws(StoreError) in
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

  func create(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let request = try core.read(context.request.body) { (body, _) throws(MalformedMessage) in
      try TokenRequest(decoding: body)
    }
    if let fault = TokenRule.fault(creating: request, by: caller) { throw fault }
    var random = SystemRandomNumberGenerator()
    let (token, secret) = request.make(
      now: core.clock.wall(), account: TokenRule.account(of: request, madeBy: caller),
      random: &random)
    let (quota, mark) = (core.quotas.tokens, core.mark(caller.principal))
    for (pattern, _) in token.grants.list {
      guard let space = pattern.space else { continue }
      _ = try await core.makeSpace(space, by: caller.principal)
    }
    let isAdded = try await core.ask { (store) async throws(StoreError) in
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
  func revoke(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let token = try await managedToken(context, caller)
    let mark = core.mark(caller.principal)
    let wasThere = try await core.ask { (store) async throws(StoreError) in
      try await store.removeToken(token.id, by: mark)
    }
    guard wasThere else { throw .unknownToken }
    return HTTPResponse(status: 204, headers: ["Cache-Control": "no-store"])
  }

  /// Replaces the secret of a token.
  func rotate(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let token = try await managedToken(context, caller)
    if let fault = TokenRule.fault(rotating: token, by: caller) { throw fault }
    let grace = try core.read(context.request.body) { (body, _) throws(MalformedMessage) in
      body.isEmpty ? 0 : try TokenRotation(decoding: body).grace
    }
    var random = SystemRandomNumberGenerator()
    let secret = AccessToken(random: &random)
    let mark = core.mark(caller.principal)
    let graceEnd = core.clock.wall() + grace * 1_000
    let wasThere = try await core.ask { (store) async throws(StoreError) in
      try await store.rotateToken(token.id, hash: secret.hash, graceEnd: graceEnd, by: mark)
    }
    guard wasThere else { throw .unknownToken }
    return .json(Self.secret(secret, of: token))
  }

  private func managedToken(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> StoredToken {
    guard let id = TokenID(context.match.itemText ?? "") else { throw .unknownToken }
    let found = try await core.ask { (store) async throws(StoreError) in try await store.token(id) }
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

extension Problem {
  fileprivate static let unknownToken = Problem(.notFound, "there is no such token")
}
