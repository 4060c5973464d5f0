import FerryProtocol

/// The part of a store that knows tokens and keeps the audit log.
package protocol AccessStore: Sendable {
  /// Keeps a token and the hash of its secret. Spaces that it names are made when absent.
  ///
  /// - Parameter quota: Tokens that count to the token's account.
  /// - Returns: `false` if the account has as many as it may.
  func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?, quota: Int64
  ) async throws(StoreError) -> Bool

  /// Returns the token with this hash of its secret, even if it is expired; `nil` if there is none.
  func token(hash: [UInt8]) async throws(StoreError) -> KnownToken?

  /// Returns the hashes of all secrets that are kept, in any order.
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

  /// Deletes a token with its secrets. Returns whether it was there.
  func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool

  /// Gives a token another secret. The secrets before it end at `graceEnd`, or earlier if they
  /// would, and above ``StoredToken/secretsMax`` at once. Returns whether the token was there.
  func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool

  /// Notes when tokens were used last, milliseconds since 1970.
  func storeTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError)

  /// Returns whether a token was ever made, even if it was removed since. The answer is never
  /// outdated: it includes each token whose creation has returned, in any process.
  func hasEverHadTokens() async throws(StoreError) -> Bool

  /// Appends an entry about something that is not the store's.
  func append(_ entry: AuditEntry) async throws(StoreError)

  /// Returns entries of the audit log, by their numbers.
  func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry]

  /// Deletes entries and replaced secrets that ended before a moment. Returns how many entries.
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

  /// Keeps a token of the server's administrators, who have no quota.
  package func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?
  ) async throws(StoreError) {
    _ = try await addToken(token, hash: hash, by: mark, quota: .max)
  }
}
