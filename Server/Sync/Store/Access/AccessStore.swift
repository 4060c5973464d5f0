import FerryProtocol

/// The tokens and the audit log of a store.
package protocol AccessStore: Sendable {
  /// Stores a token and the hash of its secret. Creates the spaces it names if absent.
  ///
  /// - Parameter quota: Maximum number of tokens of the token's account.
  /// - Returns: `false` if the account already has this many tokens.
  func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?, quota: Int64
  ) async throws(StoreError) -> Bool

  /// Returns the token with this secret hash, even if expired; `nil` if there is none.
  func token(hash: [UInt8]) async throws(StoreError) -> KnownToken?

  /// Returns the hashes of all stored secrets, in any order.
  func secretHashes() async throws(StoreError) -> [[UInt8]]

  /// Returns a token, even if it is expired; `nil` if there is none.
  func token(_ id: TokenID) async throws(StoreError) -> StoredToken?

  /// Returns the next tokens, oldest first.
  ///
  /// - Parameters:
  ///   - place: the place of the token after which the list continues.
  ///   - limit: the most tokens.
  func tokens(
    after place: StoredToken.Place?, limit: Int
  ) async throws(StoreError) -> [StoredToken]

  /// Deletes a token and the token's secrets. Returns `true` if it existed.
  func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool

  /// Replaces the secret of a token. The former secrets end at `graceEnd` or earlier, and those
  /// above ``StoredToken/secretsMax`` at once. Returns `true` if the token exists.
  func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool

  /// Stores the last use of tokens, in milliseconds since 1970.
  func storeTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError)

  /// Returns whether a token was ever made, even if it was removed since. The answer is never
  /// outdated: it includes each token whose creation has returned, in any process.
  func hasEverHadTokens() async throws(StoreError) -> Bool

  /// Appends an entry about something outside of the store.
  func append(_ entry: AuditEntry) async throws(StoreError)

  /// Returns entries of the audit log, by their numbers.
  func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry]

  /// Deletes the entries and replaced secrets that ended before a moment. Returns the number of
  /// entries.
  func endAudit(before moment: Int64) async throws(StoreError) -> Int
}

extension AccessStore {
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

  /// Stores a token of the server's administrators, without a quota.
  package func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?
  ) async throws(StoreError) {
    _ = try await addToken(token, hash: hash, by: mark, quota: .max)
  }
}
