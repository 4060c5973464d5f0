import FerryTestSupport
import Synchronization
import Testing

@testable import FerryNetworking

/// Signs requests, and wants certain responses to be sent again.
private struct Signing: RequestInterceptor {
  let user: String? = nil
  var name = "X-Signature"
  var again: Set<Int> = []

  func prepare(
    _ request: inout TransportRequest, for original: NetworkRequest
  ) async throws(NetworkError) {
    request.headers[name] = "\(request.method.rawValue) \(request.url)"
  }

  func review(_ answered: AnsweredRequest) async throws(NetworkError) -> AnswerReview {
    again.contains(answered.response.status) ? .sendAgain : .accept
  }
}

@Suite("Interceptors of requests", .hangLimit)
struct InterceptorTests {
  private func client(
    _ transport: any Transport, _ interceptors: any RequestInterceptor...,
    base: BaseURL = "http://host"
  ) -> NetworkClient {
    var configuration = NetworkConfiguration(base)
    configuration.interceptors = interceptors
    configuration.retry = RetryPolicy(attemptsMax: 2)
    return NetworkClient(
      configuration, transport: transport, connectivity: AssumedConnectivity(),
      surroundings: StillSurroundings().surroundings)
  }

  @Test("each attempt is prepared again, one interceptor after another")
  func attempts() async throws {
    let transport = ScriptedTransport(.answer(503), .answer(200))
    let client = client(transport, Signing(), Signing(name: "X-Second"))
    _ = try await client.send(NetworkRequest("/a", query: [QueryItem("b", "c")]))
    #expect(
      transport.requests.map { $0.headers["X-Signature"] }
        == ["GET http://host/a?b=c", "GET http://host/a?b=c"])
    #expect(transport.requests.allSatisfy { $0.headers["X-Second"] != nil })
    #expect(transport.requests.allSatisfy { $0.privateFields == ["X-Signature", "X-Second"] })
  }

  @Test("an interceptor sends a request again once, and retries for other reasons remain")
  func again() async throws {
    let transport = ScriptedTransport(
      .answer(409), .answer(503), .answer(409, [:], "no"), .answer(200))
    let error = await #expect(throws: NetworkError.self) {
      try await client(transport, Signing(again: [409])).send(NetworkRequest("/a"))
    }
    #expect(error?.kind == .rejected(status: 409, reason: "HTTP 409"))
    #expect(transport.requests.count == 3)
  }

  @Test("a field of an interceptor never reaches another origin by a redirect")
  func redirect() async throws {
    let other = RawServer { exchange in exchange.answer("200 OK") }
    defer { other.stop() }
    let server = RawServer { [target = other.url("/b")] exchange in
      exchange.answer("302 Found", ["Location: \(target)"])
    }
    defer { server.stop() }
    let error = await #expect(throws: NetworkError.self) {
      try await client(CurlTransport(), Signing(), base: BaseURL(server.url("")))
        .send(NetworkRequest("/a"))
    }
    #expect(error?.kind == .redirectRefused)
    #expect(other.count(.requested("/b")) == 0)
  }

  @Test("an error of an interceptor ends the request, and no request is sent")
  func failure() async throws {
    struct Failing: RequestInterceptor {
      let user: String? = nil
      func prepare(
        _ request: inout TransportRequest, for original: NetworkRequest
      ) async throws(NetworkError) {
        throw NetworkError(.other, "no key")
      }
    }
    let transport = ScriptedTransport(.answer(200))
    let error = await #expect(throws: NetworkError.self) {
      try await client(transport, Failing()).send(NetworkRequest("/a"))
    }
    #expect(error?.message == "no key" && transport.requests.isEmpty)
  }

  @Test("the users of interceptors separate the responses of a cache, but not absolute addresses")
  func users() throws {
    var configuration = NetworkConfiguration("http://host")
    configuration.cache = .use()
    func user(_ names: [String], _ request: NetworkRequest) throws -> String? {
      configuration.interceptors = names.map { name in TokenInterceptor(user: name) { _ in nil } }
      return try RequestAssembly(configuration: configuration).assemble(request).cacheable?.user
    }
    let request = NetworkRequest("/a")
    #expect(try user([], request) == nil)
    #expect(try user(["ada"], request) != user(["bob"], request))
    #expect(try user(["a", "1:b"], request) != user(["a1:", "b"], request))
    #expect(try user(["ada"], NetworkRequest(url: "http://other")) == nil)
  }
}
