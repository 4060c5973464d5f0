import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// Decisions before content is read, and the right to listen.
@Suite(.hangLimit)
struct ServiceAdmissionTests {
  enum Outcome: Equatable {
    case proceeds(Int)
    case refused(Int)
  }

  func admit(
    _ fixture: ServiceFixture, _ method: String, _ path: String, token: AccessToken? = nil,
    length: Int? = 10, isOnReserve: Bool = false, isBeyondShare: Bool = false,
    headers: HTTPHeaders = [:]
  ) async throws -> Outcome {
    let target = try RequestTarget(parsing: path)
    var headers = headers
    if let token { headers["Authorization"] = "Bearer \(token.text)" }
    let request = HTTPRequest(
      method: method, path: target.path, segments: target.segments, query: target.query,
      headers: headers, remoteAddress: "192.0.2.1")
    let arrival = HTTPArrival(
      request: request, declaredLength: length, isOnReserve: isOnReserve,
      isBeyondShare: isBeyondShare)
    switch await fixture.service.admission(of: arrival).decided() {
    case .proceed(let limit, _): return .proceeds(limit)
    case .refuse(let response): return .refused(response.status)
    case .decide: throw TestSupportError("a decision is none")
    }
  }

  @Test("the route, method, role and token are checked before the content is read")
  func before() async throws {
    let fixture = ServiceFixture(spaces: ["notes", "other"])
    let writer = try await fixture.token(.writer)
    let reader = try await fixture.token(.reader)
    let limit = Limits.standard.messageBytes
    let packets = "/v1/spaces/notes/packets"
    #expect(try await admit(fixture, "POST", packets, token: writer) == .proceeds(limit))
    #expect(
      try await admit(fixture, "POST", packets, token: writer, length: nil) == .proceeds(limit))
    #expect(try await admit(fixture, "POST", packets, token: reader) == .refused(403))
    #expect(try await admit(fixture, "POST", packets) == .refused(401))
    #expect(try await admit(fixture, "PUT", packets, token: writer) == .refused(405))
    #expect(try await admit(fixture, "POST", "/nowhere", token: writer) == .refused(404))
    #expect(
      try await admit(fixture, "POST", "/v1/spaces/other/packets", token: writer) == .refused(403))
    #expect(
      try await admit(fixture, "POST", "/v1/spaces/../packets", token: writer) == .refused(404))
    #expect(try await admit(fixture, "PUT", "/v1/spaces/notes", token: writer) == .proceeds(0))
    #expect(
      try await admit(fixture, "GET", "/v1/spaces/notes/changes", token: writer) == .proceeds(0))
    #expect(
      try await admit(fixture, "POST", "/v1/spaces/notes/records", token: reader)
        == .proceeds(limit))
    #expect(
      try await admit(fixture, "PUT", "/v1/spaces/notes/schema", token: writer) == .refused(403))
  }

  @Test("a recently admitted token is not looked up for each content")
  func remembers() async throws {
    let fixture = ServiceFixture()
    let writer = try await fixture.token(.writer)
    let packets = "/v1/spaces/notes/packets"
    _ = try await admit(fixture, "POST", packets, token: writer)
    try fixture.store.removeTokens()
    #expect(
      try await admit(fixture, "POST", packets, token: writer)
        == .proceeds(Limits.standard.messageBytes))
    fixture.clock.advance(AdmissionMemory.timeToLive)
    #expect(try await admit(fixture, "POST", packets, token: writer) == .refused(401))
    // The response itself never depends on this memory.
    let answer = await fixture.send("POST", packets, token: writer, body: [1])
    #expect(answer.status == 401)
  }

  @Test("reserved connections serve probes and administration only")
  func reserve() async throws {
    let fixture = ServiceFixture()
    let admin = try await fixture.token(.admin)
    for path in ["/healthz", "/readyz", "/metrics"] {
      #expect(
        try await admit(fixture, "GET", path, length: 0, isOnReserve: true) == .proceeds(0))
    }
    #expect(
      try await admit(
        fixture, "PUT", "/v1/spaces/notes/schema", token: admin, isOnReserve: true)
        == .proceeds(Limits.standard.messageBytes))
    for (method, path) in [
      ("GET", "/v1/spaces/notes/changes"), ("POST", "/v1/spaces/notes/packets"),
      ("GET", "/v1/spaces/notes/events"),
    ] {
      #expect(
        try await admit(fixture, method, path, token: admin, isOnReserve: true) == .refused(503))
    }
  }

  @Test(
    "a request for nothing that exists is refused for good, also by a full server",
    arguments: [0, 10])
  func nothing(length: Int) async throws {
    let fixture = ServiceFixture()
    for route in Route.allCases where route.endpoints.contains(where: \.isServedOnReserve) {
      let path = route.rawValue.replacing("{space}", with: "notes").replacing("{", with: "")
        .replacing("}", with: "")
      for isOnReserve in [true, false] {
        #expect(
          try await admit(
            fixture, "PATCH", path, length: length, isOnReserve: isOnReserve,
            isBeyondShare: !isOnReserve) == .refused(405), "\(path)")
      }
    }
    #expect(
      try await admit(fixture, "GET", "/nowhere", length: length, isOnReserve: true)
        == .refused(404))
    // So is a page of an undeclared origin, which asks before it sends.
    let preflight: HTTPHeaders = [
      "Origin": "https://example.com", "Access-Control-Request-Method": "PUT",
    ]
    #expect(
      try await admit(
        fixture, "OPTIONS", "/metrics", length: length, isOnReserve: true, headers: preflight)
        == .refused(403))
  }

  @Test(
    "an address of Ferry's that is written in other characters is unknown",
    arguments: [
      "/%6Detrics", "/metric%73", "/%68ealthz", "/v1/spaces/notes/%63hanges", "/v%31/spaces/notes",
    ])
  func spelling(path: String) async throws {
    let target = try RequestTarget(parsing: path)
    #expect(RouteMatch(method: "GET", segments: target.segments).route != .unknown)
    let match = RouteMatch(method: "GET", segments: target.segments, path: target.path)
    #expect(match.route == .unknown)
    let name = try RequestTarget(parsing: "/v1/spaces/n%6Ftes")
    let space = RouteMatch(method: "GET", segments: name.segments, path: name.path)
    #expect(space.route == .space && space.spaceText == "notes")
  }

  @Test("streams of events have their own limit, and are counted by principal")
  func streamLimit() async throws {
    let fixture = ServiceFixture(streamLimit: 2)
    let reader = try await fixture.token(.reader)
    let listen = { await fixture.send("GET", "/v1/spaces/notes/events", token: reader) }
    let first = await listen()
    let second = await listen()
    #expect(first.status == 200 && second.status == 200)
    let third = await listen()
    #expect(third.status == 503)
    #expect(third.headers["Retry-After"] != nil)
    #expect(third.problem?.code == .unavailable)
    let stored = try await fixture.store.tokens(after: nil, limit: 1)
    let principal = Principal(try #require(stored.first))
    #expect(fixture.service.streams.count(of: principal) == 2)
    guard case .stream(let stream) = first.body else { throw TestSupportError("no stream") }
    stream.connectionEnded()
    #expect(fixture.service.streams.count(of: principal) == 1)
    #expect(await listen().status == 200)
    let page = await fixture.send("GET", "/metrics")
    #expect(page.text.contains("ferry_event_streams_refused_total 1"))
    #expect(page.text.contains("ferry_event_listeners 2"))
  }

  @Test("a stream of an unknown space takes no place")
  func streamOfNothing() async throws {
    let fixture = ServiceFixture(streamLimit: 1)
    #expect(await fixture.send("GET", "/v1/spaces/none/events").status == 404)
    #expect(await fixture.send("GET", "/v1/spaces/notes/events").status == 200)
  }

  @Test("a stream ends at the first heartbeat that finds its token revoked")
  func revoked() async throws {
    let fixture = ServiceFixture()
    let kept = try await fixture.token(.reader)
    let revoked = try await fixture.token(.reader)
    var streams: [HTTPStream] = []
    for token in [kept, revoked] {
      let answer = await fixture.send("GET", "/v1/spaces/notes/events", token: token)
      guard case .stream(let stream) = answer.body else { throw TestSupportError("no stream") }
      streams.append(stream)
    }
    _ = try await fixture.store.removeToken(TokenID(hash: revoked.hash), by: nil)
    fixture.clock.advance(IdentityCache.timeToLive)
    fixture.store.state.withLock { $0.failure = .unavailable("away") }
    await fixture.service.checkStreams()
    #expect(streams.map(\.isClosed) == [false, false])
    fixture.store.state.withLock { $0.failure = nil }
    await fixture.service.checkStreams()
    #expect(streams.map(\.isClosed) == [false, true])
    let page = await fixture.send("GET", "/metrics")
    #expect(page.text.contains("ferry_event_streams_revoked_total 1"))
  }
}

/// The same over sockets.
@Suite(.hangLimit)
struct ServiceLoadTests {
  @Test("idle listeners leave connections for other requests")
  func listeners() async throws {
    let store = ServiceStoreDouble(spaces: ["notes"])
    var configuration = ServiceStartTests.configuration()
    configuration.connectionLimit = 100
    let server = try await FerryServer.start(configuration, store: store)
    let port = server.port
    var listeners: [ServiceSocket] = []
    var refused = 0
    for _ in 0..<100 {
      let listener = try ServiceSocket(port: port)
      try await listener.send("GET", "/v1/spaces/notes/events")
      let head = try await listener.read(until: "\r\n\r\n")
      if head.hasPrefix("HTTP/1.1 200") {
        listeners.append(listener)
      } else {
        #expect(head.hasPrefix("HTTP/1.1 503"))
        #expect(head.contains("Retry-After: "))
        refused += 1
      }
    }
    #expect(listeners.count == 50)
    #expect(refused == 50)
    let posted = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets", body: Packet.serviceSample(1).encoded())
    #expect(posted.status == 200)
    #expect(try await ServiceSocket.exchange(port, "GET", "/healthz").status == 200)
    await server.stop()
  }

  @Test("a server without a free connection still answers probes, and refuses other requests")
  func full() async throws {
    let store = ServiceStoreDouble(spaces: ["notes"])
    var configuration = ServiceStartTests.configuration()
    configuration.connectionLimit = 4
    configuration.streamLimit = 4
    let server = try await FerryServer.start(configuration, store: store)
    let port = server.port
    var listeners: [ServiceSocket] = []
    for _ in 0..<4 {
      let listener = try ServiceSocket(port: port)
      try await listener.send("GET", "/v1/spaces/notes/events")
      _ = try await listener.read(until: "event: head")
      listeners.append(listener)
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
      #expect(try await ServiceSocket.exchange(port, "GET", path).status == 200)
    }
    let refused = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets", body: Packet.serviceSample(1).encoded())
    #expect(refused.status == 503)
    #expect(refused.headers["retry-after"] != nil)
    #expect(try await ServiceSocket.exchange(port, "PUT", "/v1/spaces/more").status == 200)
    await server.stop()
  }
}
