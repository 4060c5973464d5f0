import FerryHTTPServer
import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryCaching

/// Envelopes, groups and cancellation over connections to a real server.
@Suite("Values of the data manager from a real server", .hangLimit)
struct DataManagerServerTests {
  /// A server with JSON for some paths. Answers below `/slow/` begin, and never end.
  private final class World: Sendable {
    private let seenPaths = Mutex<[String]>([])
    private let streams = Mutex<[String: HTTPStream]>([:])
    private let http = Mutex<HTTPServer?>(nil)

    /// - Parameter slow: A path; the other answers wait until the answer to it has begun.
    init(
      _ answers: [String: (status: Int, body: String)] = [:], after slow: String? = nil
    ) throws {
      let server = try HTTPServer(configuration: HTTPServer.Configuration().patient) {
        [self] request in
        seenPaths.withLock { $0.append(request.path) }
        let json: HTTPHeaders = [
          "Content-Type": "application/json", "Cache-Control": "max-age=60",
        ]
        guard request.path.hasPrefix("/slow/") else {
          if let slow { _ = try? await begun(slow) }
          let (status, body) = answers[request.path] ?? (404, "{}")
          return HTTPResponse(status: status, headers: json, body: .bytes(Array(body.utf8)))
        }
        let stream = HTTPStream()
        stream.send(Array(#"{"code":0,"data":""#.utf8))
        streams.withLock { $0[request.path] = stream }
        return HTTPResponse(status: 200, headers: json, body: .stream(stream))
      }
      http.withLock { $0 = server }
    }

    var seen: [String] { seenPaths.withLock { $0 } }

    /// Waits until a slow answer to this path has begun.
    func begun(_ path: String) async throws -> HTTPStream {
      try await eventually("the answer to \(path)") { streams.withLock { $0[path] } }
    }

    /// Waits until the caller of a slow answer has closed the connection.
    func left(_ path: String) async throws {
      let stream = try await begun(path)
      // A send notices the lost peer.
      try await eventually("the caller of \(path) to leave") { !stream.send([UInt8(ascii: " ")]) }
    }

    func stop() async {
      await http.withLock { $0 }?.stop(grace: .zero)
      http.withLock { $0 = nil }
    }

    func manager(
      _ envelope: Envelope? = Envelope(payload: "data", code: "code")
    ) -> DataManager {
      let port = http.withLock { $0?.port } ?? 0
      var configuration = NetworkConfiguration(BaseURL("http://127.0.0.1:\(port)"))
      configuration.cache = .use()
      configuration.retry = .never
      return DataManager(configuration, folder: nil, envelope: envelope)
    }
  }

  private func request<Value: Decodable & Sendable>(
    _ path: String, _ type: Value.Type = User.self
  ) -> ValueRequest<Value> { NetworkRequest(path).answer(type) }

  @Test("an error in an envelope is the server's own, at each status, and no cache keeps it")
  func envelopes() async throws {
    let world = try World([
      "/good": (200, #"{"code":0,"data":{"name":"Zoë"}}"#),
      "/full": (200, #"{"code":12,"message":"no seats"}"#),
      "/bad": (400, #"{"code":"E7","message":"bad date"}"#), "/plain": (500, "oops"),
    ])
    let manager = world.manager()
    for _ in 1...2 { #expect(try await manager.value(for: request("/good")).name == "Zoë") }
    for (path, kind, text) in [
      ("/full", .business(code: "12"), "the server reports the error 12: no seats"),
      ("/bad", .business(code: "E7"), "the server reports the error E7: bad date"),
      ("/plain", .rejected(status: 500, reason: "HTTP 500"), "500"),
    ] as [(String, NetworkError.Kind, String)] {
      for _ in 1...2 {
        let error = await #expect(throws: NetworkError.self) {
          try await manager.value(for: request(path))
        }
        #expect(error?.kind == kind && error?.message.contains(text) == true, "\(path)")
      }
    }
    #expect(world.seen == ["/good", "/full", "/full", "/bad", "/bad", "/plain", "/plain"])
    await world.stop()
    let gone = await #expect(throws: NetworkError.self) {
      try await manager.value(for: request("/full"))
    }
    #expect(gone?.kind != .business(code: "12"))
  }

  @Test("the first error of a group closes the connections of its other requests", arguments: 0..<3)
  func firstError(form: Int) async throws {
    let world = try World(
      ["/full": (200, #"{"code":12,"message":"no seats"}"#)], after: form < 2 ? "/slow/1" : nil)
    let manager = world.manager()
    let (slow, other, full) = (request("/slow/1"), request("/slow/2"), request("/full"))
    let group = Task {
      switch form {
      case 0: _ = try await manager.values(slow, full)
      case 1: _ = try await manager.values(for: [slow, other, full])
      default:
        // The requests after the error are not sent.
        _ = try await manager.values(for: [full, slow], atOnce: 1)
      }
    }
    let error = await #expect(throws: NetworkError.self) { try await group.value }
    #expect(error?.kind == .business(code: "12"))
    let begun = Set(world.seen).filter { $0.hasPrefix("/slow/") }
    #expect(begun.contains("/slow/1") == (form < 2))
    for path in begun { try await world.left(path) }
    await world.stop()
  }

  @Test("a cancelled group closes all its connections, and the manager goes on")
  func cancelledGroup() async throws {
    let world = try World(["/good": (200, #"{"code":0,"data":{"name":"Ada"}}"#)])
    let manager = world.manager()
    let (one, two) = (request("/slow/1"), request("/slow/2", [User].self))
    let (three, four) = (request("/slow/3"), request("/slow/4"))
    let pair = Task { try await manager.values(one, two).0 }
    let list = Task { await manager.results(for: [three, four]) }
    for number in 1...4 { _ = try await world.begun("/slow/\(number)") }
    pair.cancel()
    list.cancel()
    await #expect(throws: NetworkError.self) { _ = try await pair.value }
    let results = await list.value
    #expect(results.count == 2 && results.allSatisfy { (try? $0.get()) == nil })
    for number in 1...4 { try await world.left("/slow/\(number)") }
    #expect(try await manager.value(for: request("/good")).name == "Ada")
    await world.stop()
  }
}
