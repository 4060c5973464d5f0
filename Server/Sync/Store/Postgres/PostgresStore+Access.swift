import FerryPostgres
import FerryProtocol

extension PostgresStore {
  package func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?
  ) async throws(StoreError) {
    let makeEpoch = makeEpoch
    try await run {
      try PostgresAccess.add(token, hash: hash, epoch: makeEpoch, by: mark, on: $0)
    }
  }

  package func token(hash: [UInt8]) async throws(StoreError) -> KnownToken? {
    try await run(in: .authentication) { try PostgresAccess.token(hash: hash, on: $0) }
  }

  package func secretHashes() async throws(StoreError) -> [[UInt8]] {
    try await run(in: .authentication) { try PostgresAccess.secretHashes(on: $0) }
  }

  package func tokens() async throws(StoreError) -> [StoredToken] {
    try await run { try PostgresAccess.tokens(on: $0) }
  }

  package func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool {
    try await run { try PostgresAccess.remove(id, by: mark, on: $0) }
  }

  package func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await run {
      try PostgresAccess.rotate(id, hash: hash, graceEnd: graceEnd, by: mark, on: $0)
    }
  }

  package func noteTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError) {
    try await run { try PostgresAccess.note(uses, on: $0) }
  }

  package func hasEverHadTokens() async throws(StoreError) -> Bool {
    try await run(in: .authentication) { try PostgresAccess.hasEverHadTokens(on: $0) }
  }

  package func note(_ entry: AuditEntry) async throws(StoreError) {
    try await run { try PostgresAccess.note(entry, on: $0) }
  }

  package func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry] {
    try await run { try PostgresAccess.audit(query, on: $0) }
  }

  package func endAudit(before moment: Int64) async throws(StoreError) -> Int {
    try await run { try PostgresAccess.endAudit(before: moment, on: $0) }
  }
}
