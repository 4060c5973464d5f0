import FerryProtocol

/// The part of a store that knows tokens and keeps the audit log.
package protocol AccessStore: Sendable {
  /// Keeps a token and the hash of its secret. Spaces that it names are made when absent.
  func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?
  ) async throws(StoreError)

  /// The token whose secret has this hash; `nil` if there is none. Expired ones are returned.
  func token(hash: [UInt8]) async throws(StoreError) -> KnownToken?

  /// The hashes of all secrets that are kept, in any order.
  func secretHashes() async throws(StoreError) -> [[UInt8]]

  /// All tokens, oldest first.
  func tokens() async throws(StoreError) -> [StoredToken]

  /// Deletes a token with its secrets. Returns whether it was there.
  func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool

  /// Gives a token another secret. The secrets before it end at `graceEnd`, or earlier if they
  /// would. Returns whether the token was there.
  func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool

  /// Notes when tokens were used last, milliseconds since 1970.
  func noteTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError)

  /// Whether any token was ever made, also one removed since. Never an answer of the past: a token
  /// whose creation has returned, in whichever process, is seen.
  func hasEverHadTokens() async throws(StoreError) -> Bool

  /// Appends an entry about something that is not the store's.
  func note(_ entry: AuditEntry) async throws(StoreError)

  /// Entries of the audit log, by their numbers.
  func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry]

  /// Deletes entries and replaced secrets that ended before a moment. Returns how many entries.
  func endAudit(before moment: Int64) async throws(StoreError) -> Int
}
