import FerryProtocol

extension SQLiteStore {
  package func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?
  ) async throws(StoreError) {
    let makeEpoch = makeEpoch
    try await write { try $0.addToken(token, hash: hash, epoch: makeEpoch, by: mark) }
  }

  package func token(hash: [UInt8]) async throws(StoreError) -> KnownToken? {
    try await read { try $0.token(hash: hash) }
  }

  package func secretHashes() async throws(StoreError) -> [[UInt8]] {
    try await read { try $0.secretHashes() }
  }

  package func tokens() async throws(StoreError) -> [StoredToken] {
    try await read { try $0.tokens() }
  }

  package func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool {
    try await write { try $0.removeToken(id, by: mark) }
  }

  package func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await write { try $0.rotateToken(id, hash: hash, graceEnd: graceEnd, by: mark) }
  }

  package func noteTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError) {
    try await write { try $0.noteTokenUses(uses) }
  }

  package func hasEverHadTokens() async throws(StoreError) -> Bool {
    try await read { try $0.hasEverHadTokens() }
  }

  package func note(_ entry: AuditEntry) async throws(StoreError) {
    try await write { try $0.note(entry) }
  }

  package func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry] {
    try await read { try $0.audit(query) }
  }

  package func endAudit(before moment: Int64) async throws(StoreError) -> Int {
    try await write { try $0.endAudit(before: moment) }
  }
}
