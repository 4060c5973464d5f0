import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryCaching

/// A server of one resource with a version, a caching client, and a clock.
final class Exchanges: Sendable {
  let clock = HandClock()
  let cache: RequestCache
  let transport: AnsweringTransport
  let client: NetworkClient
  private let server: Server

  /// Creates the server. `fields` are those of every response; the body names version, `Accept` and
  /// address.
  init(
    _ fields: TransportHeaders, pinned: (any PinnedContent)? = nil, folder: Folder? = nil,
    partition: CachePartition = .credentials, limits: CacheLimits = CacheLimits()
  ) {
    let (clock, server) = (clock, Server())
    self.server = server
    let store = CacheStore(folder: folder?.path, limits: limits)
    cache = RequestCache(
      store: store, limits: limits, partition: partition, pinned: pinned, now: { clock.now })
    transport = AnsweringTransport { request async throws(TransportError) in
      let (version, isOffline) = server.value
      if isOffline { throw TransportError(.offline, "no network") }
      var headers = fields
      headers.add("ETag", "\"\(version)\"")
      headers.add("Date", date(Int((clock.now - arrival) / 1000)))
      if request.method != .get { return TransportResponse(status: 204) }
      if request.headers["If-None-Match"] == "\"\(version)\"" {
        headers.add("X-Confirmed", "yes")
        return TransportResponse(status: 304, headers: headers)
      }
      let path = request.url.dropFirst("http://host".count)
      let body = "\(version) \(request.headers["Accept"] ?? "-") \(path)"
      return TransportResponse(status: 200, headers: headers, body: Array(body.utf8))
    }
    var configuration = NetworkConfiguration("http://host")
    configuration.cache = .use()
    configuration.retry = .never
    client = NetworkClient(
      configuration, transport: transport, connectivity: AssumedConnectivity(), cache: cache)
  }

  func publish(_ version: Int) { server.set { $0.version = version } }

  func goOffline() { server.set { $0.isOffline = true } }

  func get(
    _ path: String = "/a", options: CacheOptions = CacheOptions(), headers: TransportHeaders = [:]
  ) async throws -> (text: String, origin: NetworkResponse.Origin, headers: TransportHeaders) {
    let response = try await client.send(
      NetworkRequest(path, headers: headers, cache: .use(options)))
    return (String(decoding: response.body, as: UTF8.self), response.origin, response.headers)
  }

  private final class Server: Sendable {
    private let state = Mutex((version: 1, isOffline: false))
    var value: (version: Int, isOffline: Bool) { state.withLock { $0 } }
    func set(_ change: (inout (version: Int, isOffline: Bool)) -> Void) {
      state.withLock { change(&$0) }
    }
  }
}

@Suite("A client with a cache", .hangLimit)
struct RequestCacheTests {
  @Test("a cache answers while an answer is fresh, with the answer's age")
  func fresh() async throws {
    let world = Exchanges(["Cache-Control": "max-age=60"])
    #expect(try await world.get().origin == .network)
    world.clock.advance(59)
    let kept = try await world.get()
    #expect(kept.text == "1 - /a")
    #expect(kept.origin == .cache(age: .seconds(59), isStale: false) && kept.headers["Age"] == "59")
    #expect(world.transport.requests.count == 1)
  }

  @Test("a stale answer is revalidated, and then fresh as long again")
  func confirmed() async throws {
    let world = Exchanges(["Cache-Control": "max-age=60"])
    _ = try await world.get()
    world.clock.advance(60)
    let confirmed = try await world.get()
    #expect(world.transport.requests.last?.headers["If-None-Match"] == "\"1\"")
    #expect(confirmed.text == "1 - /a" && confirmed.headers["X-Confirmed"] == "yes")
    #expect(confirmed.origin == .cache(age: .zero, isStale: false))
    world.clock.advance(59)
    #expect(try await world.get().origin == .cache(age: .seconds(59), isStale: false))
    #expect(world.transport.requests.count == 2)
  }

  @Test("a changed answer replaces the cached one")
  func changed() async throws {
    let world = Exchanges(["Cache-Control": "no-cache"])
    _ = try await world.get()
    #expect(try await world.get().origin == .cache(age: .zero, isStale: false))
    world.publish(2)
    let changed = try await world.get()
    #expect(changed.text == "2 - /a" && changed.origin == .network)
    #expect(try await world.get().text == "2 - /a")
    #expect(world.transport.requests.count == 4)
  }

  @Test("the cache keeps answers for different values of the fields that Vary names")
  func vary() async throws {
    let world = Exchanges(["Cache-Control": "max-age=60", "Vary": "Accept"])
    for _ in 1...2 {
      #expect(try await world.get(headers: ["Accept": "a"]).text == "1 a /a")
      #expect(try await world.get(headers: ["Accept": "b"]).text == "1 b /a")
    }
    #expect(world.transport.requests.count == 2)
  }

  @Test("the cache drops answers that a change invalidates, with any parameters, and no others")
  func invalidation() async throws {
    let world = Exchanges(["Cache-Control": "max-age=60"])
    func ask(_ path: String, _ page: String) async throws -> NetworkResponse.Origin {
      try await world.client.send(NetworkRequest(path, query: [QueryItem("page", page)])).origin
    }
    for page in ["1", "2"] { _ = try await ask("/a", page) }
    _ = try await ask("/b", "1")
    _ = try await world.client.send(NetworkRequest("/a", method: .post, cache: .ignore))
    #expect(try await ask("/a", "1") == .network)
    #expect(try await ask("/a", "2") == .network)
    #expect(try await ask("/b", "1") == .cache(age: .zero, isStale: false))
  }

  @Test("the cache answers stale without a network if the rule allows it")
  func offline() async throws {
    let world = Exchanges(["Cache-Control": "max-age=60"])
    _ = try await world.get()
    world.clock.advance(100)
    world.goOffline()
    let stale = try await world.get(options: CacheOptions(staleWhenOffline: true))
    #expect(stale.text == "1 - /a" && stale.origin == .cache(age: .seconds(100), isStale: true))
    await #expect(throws: NetworkError.self) { try await world.get() }
  }

  @Test("without a network no answer that must be confirmed is used, except by an own lifetime")
  func mustRevalidate() async throws {
    let world = Exchanges(["Cache-Control": "max-age=60, must-revalidate"])
    _ = try await world.get()
    world.clock.advance(100)
    world.goOffline()
    await #expect(throws: NetworkError.self) {
      try await world.get(options: CacheOptions(staleWhenOffline: true))
    }
    #expect(world.transport.requests.last?.headers["If-None-Match"] == "\"1\"")
    let own = CacheOptions(lifetime: .seconds(10), staleWhenOffline: true)
    #expect(try await world.get(options: own).origin == .cache(age: .seconds(100), isStale: true))
  }

  @Test("the cache drops an answer that the server no longer lets it keep")
  func superseded() async throws {
    let cache = Exchanges(["Cache-Control": "max-age=0"])
    let request = CacheableRequest(
      endpoint: "http://host/a", options: CacheOptions(staleWhenOffline: true))
    let kept = NetworkResponse(status: 200, headers: ["ETag": "\"1\""], body: [1])
    #expect(await cache.cache.store(kept, for: request) == kept)
    guard case .stale = await cache.cache.lookup(request) else {
      Issue.record("nothing was kept")
      return
    }
    let secret = NetworkResponse(status: 200, headers: ["Cache-Control": "no-store"], body: [2])
    #expect(await cache.cache.store(secret, for: request) == secret)
    #expect(await cache.cache.lookup(request) == .none)
  }

  @Test("a 304 is returned if the answer that it confirms is gone")
  func goneMeanwhile() async throws {
    let world = Exchanges([:])
    let response = NetworkResponse(status: 304, headers: ["ETag": "\"x\""])
    let request = CacheableRequest(endpoint: "http://host/a")
    #expect(await world.cache.store(response, for: request) == response)
  }

  @Test("the cache separates users, and forgets a user who signs out")
  func users() async throws {
    let world = Exchanges(["Cache-Control": "max-age=60"])
    let (ada, ben) = (
      world.cache.partitioned(by: .named("ada")), world.cache.partitioned(by: .named("ben"))
    )
    let request = CacheableRequest(endpoint: "http://host/a")
    let response = NetworkResponse(
      status: 200, headers: ["Cache-Control": "max-age=60"], body: [1])
    _ = await ada.store(response, for: request)
    #expect(await ben.lookup(request) == .none)
    _ = await ben.store(response, for: request)
    await ada.removePartition()
    #expect(await ada.lookup(request) == .none)
    #expect(await ben.lookup(request) != .none)
    // Without names the credentials distinguish them.
    _ = try await world.get(headers: ["Authorization": "Bearer a"])
    #expect(try await world.get(headers: ["Authorization": "Bearer b"]).origin == .network)
    #expect(try await world.get(headers: ["Authorization": "Bearer a"]).origin != .network)
  }

  @Test("the cache answers with a mission's content, without a network and without expiry")
  func pinned() async throws {
    let folder = Folder()
    folder.write(Array("{}".utf8), to: "result.json")
    let world = Exchanges(
      ["Cache-Control": "max-age=60"],
      pinned: Brought(files: [
        "http://host/results?city=K%C3%B6ln&page=2": PinnedFile(
          content: .file(folder.path + "/result.json"), mediaType: "application/json", size: 2),
        "http://host/sealed": PinnedFile(
          content: .bytes { Array("sealed".utf8) }, mediaType: "text/plain", size: 6),
        "http://host/gone": PinnedFile(
          content: .file(folder.path + "/gone"), mediaType: "text/plain", size: 1),
      ]))
    world.goOffline()
    world.clock.advance(10 * 365 * 86400)
    let request = NetworkRequest(
      "/results", query: [QueryItem("city", "Köln"), QueryItem("page", "2")])
    let response = try await world.client.send(request)
    #expect(response.body == Array("{}".utf8))
    #expect(response.headers["Content-Type"] == "application/json")
    #expect(response.origin == .cache(age: .zero, isStale: false))
    await world.cache.removeAll()
    #expect(try await world.get("/sealed").text == "sealed")
    await #expect(throws: NetworkError.self) { try await world.get("/gone") }
    #expect(world.transport.requests.count == 1)
  }

  @Test("a mission's large films are not answered by the cache")
  func pinnedFilm() async throws {
    let film = PinnedFile(
      content: .bytes { [1] }, mediaType: "video/mp4", size: RequestCache.pinnedBytesMax + 1)
    let world = Exchanges([:], pinned: Brought(files: ["http://host/film": film]))
    #expect(try await world.get("/film").origin == .network)
  }

  @Test("the cache does not keep an answer that is too large")
  func tooLarge() async throws {
    let world = Exchanges(
      ["Cache-Control": "max-age=60"], limits: CacheLimits(bodyBytesMax: 5))
    _ = try await world.get()
    #expect(try await world.get().origin == .network)
    #expect(await world.cache.size == 0)
  }
}
