import FerryPlatform
import Synchronization

/// Adds a token to requests, and gets another one when the server rejects it.
///
/// After the first response 401 it calls the closure, once for all waiting requests. Then it sends
/// each rejected request again, once. The closure may send requests through the same client: they
/// are sent without a token.
///
/// ```swift
/// let session = TokenInterceptor(user: "ada") { rejected in
///   guard let rejected else { return keychain.token }
///   return try await refresh(rejected)
/// }
/// configuration.interceptors = [session]
/// ```
public final class TokenInterceptor: RequestInterceptor {
  /// Returns a token.
  ///
  /// `rejected` is `nil` at the first call, and later the token rejected by the server. A result
  /// `nil` means that there is no other: requests end with the server's 401. An error ends the
  /// waiting requests, and the next rejection calls the closure again.
  public typealias Fetch = @Sendable (_ rejected: String?) async throws -> String?

  /// True if the current task runs a fetch: the fetch's own requests must not wait for it.
  @TaskLocal private static var isFetching = false

  public let user: String?
  private let scheme: String
  private let statuses: Set<Int>
  private let fetch: Fetch
  private let state = Mutex(TokenState())
  // A refresh under way may use up a refresh token: it runs to the end.
  private let flights = SingleFlight<Int, String?>(endsWithLastCaller: false)

  /// Creates an interceptor.
  ///
  /// - Parameters:
  ///   - user: the token's user; a cache keeps users apart. It may be any name that stays the same.
  ///   - scheme: of the field `Authorization`.
  ///   - statuses: the rejections after which another token may help.
  public init(
    user: String, scheme: String = "Bearer", statuses: Set<Int> = [401], fetch: @escaping Fetch
  ) {
    self.user = user
    self.scheme = scheme
    self.statuses = statuses
    self.fetch = fetch
  }

  /// Sets the token, such as after signing in; `nil` after signing out. A refresh under way does
  /// not change it any more.
  public func set(_ token: String?) { state.withLock { $0.set(token) } }

  public func prepare(
    _ request: inout TransportRequest, for original: NetworkRequest
  ) async throws(NetworkError) {
    if Self.isFetching { return }
    let step = state.withLock { $0.beforeSending }
    guard let token = try await token(by: step) else { return }
    request.headers["Authorization"] = "\(scheme) \(token)"
  }

  public func review(_ answered: AnsweredRequest) async throws(NetworkError) -> AnswerReview {
    guard !Self.isFetching, answered.maySendAgain, statuses.contains(answered.response.status)
    else { return .accept }
    let sent = token(of: answered.sent)
    let step = state.withLock { $0.afterRejection(of: sent) }
    if step == .giveUp { return .accept }
    let token = try await token(by: step)
    return token == nil || token == sent ? .accept : .sendAgain
  }

  private func token(of request: TransportRequest) -> String? {
    let prefix = scheme + " "
    guard let value = request.headers["Authorization"], value.begins(with: prefix) else {
      return nil
    }
    return String(value.dropFirst(prefix.count))
  }

  /// Returns the token of a step; fetches it once for all callers.
  private func token(by step: TokenState.Step) async throws(NetworkError) -> String? {
    guard case .fetch(let rejected) = step else {
      if case .use(let token) = step { return token }
      return nil
    }
    let session = state.withLock { $0.session }
    return try await flights.run(session) { [self] () async throws(NetworkError) -> String? in
      let step = state.withLock { $0.beginFetch(rejected: rejected) }
      guard case .fetch = step else {
        if case .use(let token) = step { return token }
        return nil
      }
      let new = try await run(rejected, in: session)
      return state.withLock { state in
        state.fetched(new, insteadOf: rejected, in: session)
        return session == state.session ? new : nil
      }
    }
  }

  private func run(
    _ rejected: String?, in session: Int
  ) async throws(NetworkError) -> String? {
    do {
      return try await Self.$isFetching.withValue(true) { try await fetch(rejected) }
    } catch {
      state.withLock { $0.failed(in: session) }
      throw error as? NetworkError ?? NetworkError(.other, "no token: \(error)")
    }
  }
}
