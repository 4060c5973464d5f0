import FerryNetworking
import FerryProtocol
import Synchronization

/// Tokens fetched by an application, for one space.
struct TokenKeeper: Sendable {
  /// The only server and space that may receive the token.
  let address: ServerAddress
  /// The source, shared by the spaces of a file.
  let fetcher: TokenFetcher

  /// Returns a keeper of tokens from the same source for another space of the same server.
  func keeper(for other: ServerAddress) -> TokenKeeper? {
    other.url == address.url ? TokenKeeper(address: other, fetcher: fetcher) : nil
  }

  /// Returns the token; see ``TokenFetcher/token(otherThan:)``.
  func token(otherThan rejected: String? = nil) async throws -> String {
    try await fetcher.token(otherThan: rejected)
  }
}

/// Stores the token fetched by an application, and fetches it again when a server rejects it. All
/// requests of all spaces share one call at a time.
final class TokenFetcher: Sendable {
  typealias Fetch = @Sendable (_ rejected: String?) async throws -> String

  /// The most bytes of a token: a request's header fields must hold it.
  static let bytesMax = 16_384

  private let fetch: Fetch
  private let kept = Mutex<String?>(nil)
  // A call under way may use up a refresh token: it runs to the end, and later requests use the
  // result.
  private let calls = SingleFlight<Int, Result<String, any Error>>(endsWithLastCaller: false)

  init(fetch: @escaping Fetch) { self.fetch = fetch }

  /// Returns the token.
  ///
  /// - Parameter rejected: a token rejected by a server; another one is fetched if no other request
  ///   has done so.
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/tokenMissing(_:)``,
  ///   `CancellationError`.
  func token(otherThan rejected: String? = nil) async throws -> String {
    try Task.checkCancellation()
    if let token = kept(otherThan: rejected) { return token }
    let outcome: Result<String, any Error>
    do throws(NetworkError) {
      outcome = try await calls.run(0) { [self] in
        // Another call may have ended since the look above.
        if let token = kept(otherThan: rejected) { return .success(token) }
        do {
          let token = try Self.checked(try await fetch(rejected))
          kept.withLock { $0 = token }
          return .success(token)
        } catch {
          return .failure(Self.failure(error))
        }
      }
    } catch {
      // Only this request has left.
      throw CancellationError()
    }
    return try outcome.get()
  }

  private func kept(otherThan rejected: String?) -> String? {
    kept.withLock { $0 == rejected ? nil : $0 }
  }

  private static func checked(_ token: String) throws -> String {
    guard (1...bytesMax).contains(token.utf8.count),
      token.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
    else {
      throw ReplicaError.tokenMissing(
        "the app gave a token that is empty, too long or has characters other than visible ASCII")
    }
    return token
  }

  private static func failure(_ error: any Error) -> any Error {
    switch error {
    case is ReplicaError, is CancellationError: error
    case is NetworkError, is TransportError: ReplicaError(error)
    default: ReplicaError.tokenMissing("the app could not get a token: \(error)")
    }
  }
}
