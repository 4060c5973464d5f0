import FerryProtocol
import FerrySyncServer

// Tokens and the audit log.
extension StandStillStore {
  func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?, quota: Int64
  ) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.addToken(token, hash: hash, by: mark, quota: quota)
    }
  }

  func token(hash: [UInt8]) async throws(StoreError) -> KnownToken? {
    try await still { store async throws(StoreError) in try await store.token(hash: hash) }
  }

  func secretHashes() async throws(StoreError) -> [[UInt8]] {
    try await still { store async throws(StoreError) in try await store.secretHashes() }
  }

  func token(_ id: TokenID) async throws(StoreError) -> StoredToken? {
    try await still { store async throws(StoreError) in try await store.token(id) }
  }

  func tokens(
    after place: StoredToken.Place?, limit: Int
  ) async throws(StoreError) -> [StoredToken] {
    try await still { store async throws(StoreError) in
      try await store.tokens(after: place, limit: limit)
    }
  }

  func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.removeToken(id, by: mark)
    }
  }

  func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.rotateToken(id, hash: hash, graceEnd: graceEnd, by: mark)
    }
  }

  func storeTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError) {
    try await still { store async throws(StoreError) in try await store.storeTokenUses(uses) }
  }

  func hasEverHadTokens() async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in try await store.hasEverHadTokens() }
  }

  func append(_ entry: AuditEntry) async throws(StoreError) {
    try await still { store async throws(StoreError) in try await store.append(entry) }
  }

  func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry] {
    try await still { store async throws(StoreError) in try await store.audit(query) }
  }

  func endAudit(before moment: Int64) async throws(StoreError) -> Int {
    try await still { store async throws(StoreError) in try await store.endAudit(before: moment) }
  }
}
