import FerryHTTPServer
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The turns of requests on their way to admission.
@Suite("Turns of requests", .hangLimit)
struct RequestTurnsTests {
  private static let flooding = 100

  @Test("a request waits for a few of a flooding user's, and not for all of them")
  func flood() async throws {
    let store = ServiceStoreDouble(spaces: ["busy", "quiet"])
    let (recorder, pool) = (LogRecorder(), ThreadPoolExecutor(name: "turns", threads: 1))
    var configuration = ServiceStartTests.configuration()
    configuration.log = ServiceLog(level: .debug, sink: recorder, clock: .system)
    configuration.workers = pool
    var tokens: [(space: String, token: String)] = []
    var random = SystemRandomNumberGenerator()
    for space in ["busy", "quiet"] {
      let token = AccessToken(random: &random)
      try await store.addToken(token, AccessGrants(.known(space), .reader))
      tokens.append((space, "Bearer \(token.text)"))
    }
    let server = try await FerryServer.start(configuration, store: store)
    func request(_ caller: (space: String, token: String)) async throws -> ServiceSocket {
      let socket = try ServiceSocket(port: server.port)
      try await socket.send(
        "GET", "/v1/spaces/\(caller.space)", headers: ["Authorization": caller.token])
      return socket
    }
    // The server knows both callers from now on.
    for token in tokens { #expect(try await request(token).answer().status == 200) }
    let known = recorder.lines.count
    let block = ThreadBlock()
    let blocking = Task(executorPreference: pool) { block.wait() }
    try await eventually("the thread is blocked") { block.isWaiting }
    var sockets: [ServiceSocket] = []
    for _ in 0..<Self.flooding { sockets.append(try await request(tokens[0])) }
    try await eventually("the flood waits") { pool.waitingCount == Self.flooding }
    let quiet = try await request(tokens[1])
    try await eventually("all requests wait") { pool.waitingCount == Self.flooding + 1 }
    block.end()
    await blocking.value
    for socket in sockets + [quiet] { #expect(try await socket.answer().status == 200) }
    await server.stop()
    let answered = recorder.lines.dropFirst(known).filter { $0.contains("/v1/spaces/") }
    #expect(answered.count == Self.flooding + 1)
    let before = answered.prefix { !$0.contains("quiet") }.count
    #expect(before <= 4, "\(before) requests were answered before")
  }

  @Test("a request takes the turn of a caller admitted lately, or that of its address")
  func flows() async throws {
    let fixture = ServiceFixture(spaces: ["notes"])
    let (first, second) = (
      try await fixture.token(.reader), try await fixture.token(.reader)
    )
    let address = "192.0.2.1"
    func flow(
      _ path: String, _ token: AccessToken?, from address: String = address
    ) throws -> WorkFlow {
      let target = try RequestTarget(parsing: path)
      let request = HTTPRequest(
        method: "GET", path: target.path, segments: target.segments,
        headers: token.map { ["Authorization": "Bearer \($0.text)"] } ?? [:])
      return fixture.service.flow(of: request, from: address)
    }
    let notes = "/v1/spaces/notes/changes"
    let stranger = WorkFlow(address: address, part: "notes")
    #expect(try flow(notes, first) == stranger)
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: first).status == 200)
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: second).status == 200)
    let known = try flow(notes, first)
    #expect(known.user != stranger.user && known.part == "notes")
    #expect(try flow(notes, first, from: "198.51.100.7") == known)
    #expect(try flow(notes, second).user != known.user)
    #expect(try flow(notes, nil) == stranger)
    #expect(try flow("/v1/tokens", first) == WorkFlow(user: known.user))
    #expect(try flow("/v1/spaces/../changes", nil) == WorkFlow(address: address))
    #expect(fixture.service.flow(of: nil, from: address) == WorkFlow(address: address))
    // A refused credential is no user.
    var random = SystemRandomNumberGenerator()
    let unknown = AccessToken(random: &random)
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: unknown).status == 401)
    #expect(try flow(notes, unknown) == stranger)
    fixture.clock.advance(AdmissionMemory.callerTimeToLive)
    #expect(try flow(notes, first) == stranger)
  }
}
