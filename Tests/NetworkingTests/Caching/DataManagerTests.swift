import FerryHTTPServer
import FerryNetworking
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryCaching

@Suite("The data manager", .hangLimit)
struct DataManagerTests {
  @Test("the manager answers from cache or network, and fetches once for many callers")
  func sharing() async throws {
    let door = Door()
    let transport = AnsweringTransport { _ async throws(TransportError) in
      await door.pass()
      return TransportResponse(
        status: 200, headers: ["Cache-Control": "max-age=3600"], body: [1])
    }
    let manager = manager(transport)
    let request = NetworkRequest("/shops", query: [QueryItem("page", "2")])
    try await withThrowingTaskGroup { group in
      for _ in 0..<10 { group.addTask { try await manager.data(for: request).body } }
      await door.someoneCame()
      await door.open()
      for try await body in group { #expect(body == [1]) }
    }
    #expect(try await manager.data(for: request).body == [1])
    #expect(transport.requests.count == 1)
    await manager.removeAll()
    #expect(try await manager.data(for: request).origin == .network)
  }

  @Test("requests that send something, or differ in fields, are never shared")
  func unshared() async throws {
    let transport = AnsweringTransport { request async throws(TransportError) in
      TransportResponse(status: 200, body: Array(request.url.utf8))
    }
    let manager = manager(transport)
    async let one = manager.data(for: NetworkRequest("/a", method: .post)).body
    async let two = manager.data(for: NetworkRequest("/a", method: .post)).body
    async let three = manager.data(for: NetworkRequest("/a", headers: ["Accept": "x"])).body
    async let four = manager.data(for: NetworkRequest("/a", headers: ["Accept": "y"])).body
    async let five = manager.data(for: NetworkRequest("/a", cache: .ignore)).body
    _ = try await [one, two, three, four, five]
    #expect(transport.requests.count == 5)
  }

  @Test("a base's credentials are sent to that base only, for images as well")
  func credentials() async throws {
    let transport = AnsweringTransport { request async throws(TransportError) in
      TransportResponse(status: 200, headers: ["Content-Type": "image/png"], body: [1])
    }
    let manager = manager(transport)
    _ = try await manager.data(for: NetworkRequest("/a"))
    _ = try await manager.image(for: "http://elsewhere/a.png")
    #expect(transport.requests.map { $0.headers["Authorization"] } == ["Bearer a", nil])
  }

  @Test("the manager works over a real connection: kept, confirmed, changed, on disk, and stale")
  func overTheWire() async throws {
    let folder = Folder()
    let hits = Hits()
    var server: HTTPServer? = try HTTPServer(configuration: HTTPServer.Configuration().patient) {
      request in
      let version = hits.note(request.headers["if-none-match"] ?? "-")
      let fields: HTTPHeaders = ["ETag": "\"\(version)\"", "Cache-Control": "no-cache"]
      if request.headers["if-none-match"] == "\"\(version)\"" {
        return HTTPResponse(status: 304, headers: fields)
      }
      return HTTPResponse(
        status: 200, headers: fields, body: .bytes([UInt8(version)]))
    }
    let port = try #require(server?.port)
    func manager() -> DataManager {
      var configuration = NetworkConfiguration(BaseURL("http://127.0.0.1:\(port)"))
      configuration.cache = .use(CacheOptions(staleWhenOffline: true))
      configuration.retry = .never
      return DataManager(configuration, folder: folder.path)
    }
    let request = NetworkRequest("/a")
    #expect(try await manager().data(for: request).body == [1])
    let confirmed = try await manager().data(for: request)
    #expect(confirmed.body == [1] && confirmed.origin == .cache(age: .zero, isStale: false))
    hits.publish()
    #expect(try await manager().data(for: request).body == [2])
    #expect(hits.seen == ["-", "\"1\"", "\"1\""])
    await server?.stop(grace: .zero)
    server = nil
    await #expect(throws: NetworkError.self) { try await manager().data(for: request) }
    var lenient = request
    lenient.cache = .use(CacheOptions(lifetime: .zero, staleWhenOffline: true))
    let stale = try await manager().data(for: lenient)
    guard case .cache(_, isStale: true) = stale.origin else {
      Issue.record("not stale: \(stale.origin)")
      return
    }
    #expect(stale.body == [2])
  }

  private func manager(_ transport: AnsweringTransport) -> DataManager {
    var configuration = NetworkConfiguration(
      BaseURL("http://host", headers: ["Authorization": "Bearer a"]))
    configuration.cache = .use()
    configuration.retry = .never
    return DataManager(
      configuration, folder: nil, transport: transport, connectivity: AssumedConnectivity())
  }
}

/// The requests received by a server, and the server's version.
final class Hits: Sendable {
  private let state = Mutex((version: 1, seen: [String]()))

  var seen: [String] { state.withLock { $0.seen } }

  func note(_ tag: String) -> Int {
    state.withLock { state in
      state.seen.append(tag)
      return state.version
    }
  }

  func publish() { state.withLock { $0.version += 1 } }
}
