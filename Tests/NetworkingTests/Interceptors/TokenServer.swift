import FerryNetworking
import Synchronization

/// A server that accepts one token at a time, and issues the next one for a refresh.
final class TokenServer: Sendable {
  private struct State {
    var valid = "t1"
    var refreshes = 0
    var bodies: [String: [[UInt8]]] = [:]
    var answersRefresh = true
  }

  private let state = Mutex(State())
  private let server = Mutex<RawServer?>(nil)

  init() {
    let server = RawServer { [self] exchange in answer(exchange) }
    self.server.withLock { $0 = server }
  }

  var refreshes: Int { state.withLock { $0.refreshes } }

  /// The bodies received with a valid token, by path.
  func bodies(_ path: String) -> [[UInt8]] { state.withLock { $0.bodies[path] ?? [] } }

  /// Makes the current token invalid.
  func expire(_ next: String) { state.withLock { $0.valid = next } }

  /// Rejects all refreshes from now on.
  func refuseRefreshes() { state.withLock { $0.answersRefresh = false } }

  func url(_ path: String) -> String { server.withLock { $0?.url(path) ?? "" } }

  func stop() { server.withLock { $0?.stop() } }

  func count(_ path: String) -> Int { server.withLock { $0?.count(.requested(path)) ?? 0 } }

  private func answer(_ exchange: Exchange) -> Bool {
    if exchange.path == "/refresh" {
      let token: String? = state.withLock { state in
        state.refreshes += 1
        return state.answersRefresh ? state.valid : nil
      }
      guard let token else { return exchange.answer("400 Bad Request") }
      return exchange.answer("200 OK", [], Array(token.utf8))
    }
    let isValid = state.withLock { state in
      let isValid = exchange.headers["authorization"] == "Bearer \(state.valid)"
      if isValid { state.bodies[exchange.path, default: []].append(exchange.body) }
      return isValid
    }
    if !isValid { return exchange.answer("401 Unauthorized", [], Array("who?".utf8)) }
    return exchange.answer("200 OK", ["Method: \(exchange.method)"], Array("content".utf8))
  }

  /// Returns a client whose token is `t0` at first, and refreshed at this server.
  func client(_ interceptor: TokenInterceptor) -> NetworkClient {
    var configuration = NetworkConfiguration(BaseURL(url("")))
    configuration.retry = .never
    configuration.interceptors = [interceptor]
    return NetworkClient(configuration)
  }

  /// Returns an interceptor that begins with an expired token.
  func interceptor(_ fetch: (@Sendable (String) -> Void)? = nil) -> TokenInterceptor {
    let plain = NetworkClient(NetworkConfiguration(BaseURL(url(""))))
    return TokenInterceptor(user: "ada") { rejected async throws(NetworkError) in
      guard let rejected else { return "t0" }
      fetch?(rejected)
      do throws(NetworkError) {
        let answer = try await plain.send(NetworkRequest("/refresh", method: .post))
        return String(decoding: answer.body, as: UTF8.self)
      } catch {
        if case .rejected = error.kind { return nil }
        throw error
      }
    }
  }
}
