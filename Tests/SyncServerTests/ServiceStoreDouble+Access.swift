import FerryProtocol

@testable import FerrySyncServer

extension ServiceStoreDouble {
  func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?, quota: Int64
  ) async throws(StoreError) -> Bool {
    let isAdded = state.withLock { state in
      let others = state.tokens.filter { $0.token.account == token.account }
      guard token.account == nil || others.count < quota else { return false }
      state.tokens.append((token, hash, nil))
      state.hadTokens = true
      return true
    }
    if isAdded, let mark { try await append(mark.entry(.tokenCreated)) }
    return isAdded
  }

  func token(hash: [UInt8]) async throws(StoreError) -> KnownToken? {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      state.tokenLookUps += 1
      return state.tokens.first { $0.hash == hash }.map {
        KnownToken($0.token, secretExpiresAt: $0.end)
      }
    }
  }

  func secretHashes() async throws(StoreError) -> [[UInt8]] {
    state.withLock { state in
      state.hashReads += 1
      return state.tokens.map(\.hash)
    }
  }

  func token(_ id: TokenID) async throws(StoreError) -> StoredToken? {
    state.withLock { $0.tokens.first { $0.token.id == id }?.token }
  }

  func tokens(
    after place: StoredToken.Place?, limit: Int
  ) async throws(StoreError) -> [StoredToken] {
    let all = state.withLock { state in
      state.tokens.reduce(into: [StoredToken]()) { list, entry in
        if !list.contains(where: { $0.id == entry.token.id }) { list.append(entry.token) }
      }
    }
    let start = place.flatMap { place in all.firstIndex { $0.place == place } }.map { $0 + 1 } ?? 0
    return Array(all.dropFirst(start).prefix(limit))
  }

  func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool {
    let wasThere = state.withLock { state in
      let count = state.tokens.count
      state.tokens.removeAll { $0.token.id == id }
      return state.tokens.count < count
    }
    if wasThere, let mark { try await append(mark.entry(.tokenRevoked)) }
    return wasThere
  }

  func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    let wasThere = state.withLock { state in
      guard let token = state.tokens.first(where: { $0.token.id == id })?.token else {
        return false
      }
      for index in state.tokens.indices where state.tokens[index].token.id == id {
        state.tokens[index].end = min(graceEnd, state.tokens[index].end ?? graceEnd)
      }
      state.tokens.append((token, hash, nil))
      return true
    }
    if wasThere, let mark { try await append(mark.entry(.tokenRotated)) }
    return wasThere
  }

  func storeTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError) {
    state.withLock { state in
      for index in state.tokens.indices {
        if let use = uses[state.tokens[index].token.id] {
          state.tokens[index].token.lastUsedAt = use
        }
      }
    }
  }

  func hasEverHadTokens() async throws(StoreError) -> Bool {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      state.openLookUps += 1
      return state.hadTokens
    }
  }

  func append(_ entry: AuditEntry) async throws(StoreError) {
    state.withLock { state in
      var entry = entry
      entry.number = Int64(state.audit.count + 1)
      state.audit.append(entry)
    }
  }

  func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry] {
    state.withLock { state in
      Array(
        state.audit.filter { entry in
          entry.number > query.after && entry.at >= query.since
            && (query.space == nil || entry.space == query.space)
        }.prefix(query.limit))
    }
  }

  func endAudit(before moment: Int64) async throws(StoreError) -> Int {
    state.withLock { state in
      let count = state.audit.count
      state.audit.removeAll { $0.at < moment }
      return count - state.audit.count
    }
  }
}
