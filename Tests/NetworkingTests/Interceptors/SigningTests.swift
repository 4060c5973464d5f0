import FerryCryptography
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryNetworking

/// A server that accepts each request once, and only with a code of the method, the target, the
/// number and the body.
private final class SigningServer: Sendable {
  private struct State {
    var key: [UInt8]
    var numbers: Set<String> = []
    var taken: [String] = []
    /// The number of next requests to answer with 503, although their signatures are right.
    var busy = 0
  }

  private let state: Mutex<State>
  private let server = Mutex<RawServer?>(nil)

  init(key: [UInt8], busy: Int = 0) {
    state = Mutex(State(key: key, busy: busy))
    let server = RawServer { [self] exchange in answer(exchange) }
    self.server.withLock { $0 = server }
  }

  /// Methods, targets and bodies of the accepted requests.
  var taken: [String] { state.withLock { $0.taken } }
  /// The number of different request numbers received.
  var numbers: Int { state.withLock { $0.numbers.count } }

  func stop() { server.withLock { $0?.stop() } }

  var base: BaseURL { BaseURL(server.withLock { $0?.url("") ?? "" }) }

  func count(_ path: String) -> Int { server.withLock { $0?.count(.requested(path)) ?? 0 } }

  private func answer(_ exchange: Exchange) -> Bool {
    let number = exchange.headers["x-number"] ?? ""
    let code = Data(base64Encoded: exchange.headers["x-signature"] ?? "").map(Array.init) ?? []
    let message = SignedMessage.bytes(exchange.method, exchange.path, number, exchange.body)
    let status = state.withLock { state in
      let isNew = state.numbers.insert(number).inserted
      guard isNew, HMACSHA256.isValid(code, for: message, key: state.key) else {
        return "401 Unauthorized"
      }
      if state.busy > 0 {
        state.busy -= 1
        return "503 Service Unavailable"
      }
      let body = String(decoding: exchange.body, as: UTF8.self)
      state.taken.append("\(exchange.method) \(exchange.path) \(body)")
      return "200 OK"
    }
    return exchange.answer(status)
  }
}

private enum SignedMessage {
  static func bytes(
    _ method: String, _ target: String, _ number: String, _ body: [UInt8]
  ) -> [UInt8] {
    Array("\(method)\n\(target)\n\(number)\n".utf8) + body
  }
}

/// Signs each attempt. A rejected one is signed again with the next key.
private final class Signature: RequestInterceptor {
  let user: String? = "ada"
  private let keys: Mutex<[[UInt8]]>

  init(_ keys: [UInt8]...) { self.keys = Mutex(keys) }

  func prepare(
    _ request: inout TransportRequest, for original: NetworkRequest
  ) async throws(NetworkError) {
    let (key, number) = (keys.withLock { $0[0] }, UUID().uuidString)
    guard let url = URLComponents(string: request.url) else { return }
    let target = url.percentEncodedPath + (url.percentEncodedQuery.map { "?\($0)" } ?? "")
    let message = SignedMessage.bytes(
      request.method.rawValue, target, number, request.body ?? [])
    request.headers["X-Number"] = number
    request.headers["X-Signature"] =
      Data(HMACSHA256.code(for: message, key: key)).base64EncodedString()
  }

  func review(_ answered: AnsweredRequest) async throws(NetworkError) -> AnswerReview {
    guard answered.response.status == 401 else { return .accept }
    return keys.withLock { keys in
      guard keys.count > 1 else { return .accept }
      keys.removeFirst()
      return .sendAgain
    }
  }
}

/// Changes a request after the signature, like an attacker on the way.
private struct Tampering: RequestInterceptor {
  let user: String? = nil
  let change: @Sendable (inout TransportRequest) -> Void

  func prepare(
    _ request: inout TransportRequest, for original: NetworkRequest
  ) async throws(NetworkError) { change(&request) }
}

/// Signatures of whole requests, checked by a server.
@Suite("Signed requests at a server", .hangLimit)
struct SigningTests {
  private static let key = [UInt8](repeating: 7, count: 32)
  private static let old = [UInt8](repeating: 1, count: 32)

  private func client(
    _ server: SigningServer, _ interceptors: any RequestInterceptor..., attempts: Int = 1
  ) -> NetworkClient {
    var configuration = NetworkConfiguration(server.base)
    configuration.interceptors = interceptors
    configuration.retry = RetryPolicy(attemptsMax: attempts)
    return NetworkClient(
      configuration, transport: CurlTransport(), connectivity: AssumedConnectivity(),
      surroundings: StillSurroundings().surroundings)
  }

  private let note = NetworkRequest(
    "/notes", method: .post, query: [QueryItem("for", "Zoë & all")],
    body: .bytes(Array(#"{"text":"Grüße"}"#.utf8), contentType: "application/json"))

  @Test("the signature of the prepared request is that of the request which the server receives")
  func received() async throws {
    let server = SigningServer(key: Self.key)
    defer { server.stop() }
    let client = client(server, Signature(Self.key))
    _ = try await client.send(note)
    _ = try await client.send(NetworkRequest(segments: ["a b", "ü/?"]))
    _ = try await client.send(
      NetworkRequest("/file", method: .put, body: .bytes(Array("\u{0}\r\n".utf8))))
    _ = try await client.send(NetworkRequest("/file", method: .delete))
    #expect(
      server.taken == [
        #"POST /notes?for=Zo%C3%AB%20%26%20all {"text":"Grüße"}"#, "GET /a%20b/%C3%BC%2F%3F ",
        "PUT /file \u{0}\r\n", "DELETE /file ",
      ])
  }

  @Test("a request that is changed after its signature is rejected", arguments: 0..<4)
  func changed(part: Int) async throws {
    let server = SigningServer(key: Self.key)
    defer { server.stop() }
    let tampering = Tampering { request in
      switch part {
      case 0: request.method = .put
      case 1: request.url += "x"
      case 2: request.body = request.body.map { $0 + [0] }
      default: request.headers["X-Number"] = "2"
      }
    }
    let error = await #expect(throws: NetworkError.self) {
      try await client(server, Signature(Self.key), tampering).send(note)
    }
    #expect(error?.kind == .rejected(status: 401, reason: "HTTP 401"))
    #expect(server.taken.isEmpty && server.numbers == 1)
  }

  @Test("a rejected request is signed again once with the next key, and its body is sent again")
  func nextKey() async throws {
    let server = SigningServer(key: Self.key)
    defer { server.stop() }
    let client = client(server, Signature(Self.old, Self.key))
    for _ in 1...2 { _ = try await client.send(note) }
    let taken = #"POST /notes?for=Zo%C3%AB%20%26%20all {"text":"Grüße"}"#
    #expect(server.taken == [taken, taken])
    #expect(server.numbers == 3)
    let wrong = self.client(server, Signature(Self.old, Self.old, Self.old))
    let error = await #expect(throws: NetworkError.self) { try await wrong.send(note) }
    #expect(error?.kind == .rejected(status: 401, reason: "HTTP 401"))
    #expect(server.taken.count == 2)
  }

  @Test("each attempt has a signature of its own, which the server takes only once")
  func attempts() async throws {
    let server = SigningServer(key: Self.key, busy: 2)
    defer { server.stop() }
    _ = try await client(server, Signature(Self.key), attempts: 3).send(
      NetworkRequest("/file", method: .put, body: .bytes([65])))
    #expect(server.taken == ["PUT /file A"])
    #expect(server.numbers == 3 && server.count("/file") == 3)
  }
}
