import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct ServiceRequestTests {
  @Test("PUT creates a space, and GET shows it")
  func spaces() async throws {
    let fixture = ServiceFixture(spaces: [])
    #expect(await fixture.send("GET", "/v1/spaces/notes").problem?.code == .unknownSpace)
    for _ in 0..<2 {
      let made = await fixture.send("PUT", "/v1/spaces/notes")
      #expect(made.status == 200)
      let info = try SpaceInfo(decoding: made.bytes)
      #expect(info.space.value == "notes")
      #expect(info.role == .admin)
      #expect(info.serverTime == ServiceClockDouble.wall)
    }
    let shown = await fixture.send("GET", "/v1/spaces/notes")
    #expect(shown.status == 200)
    #expect(shown.headers["Content-Type"] == "application/json")
  }

  @Test("a packet is answered with 200, or with 202 if it is buffered")
  func packets() async throws {
    let fixture = ServiceFixture()
    let packet = Packet.serviceSample(1, operations: 3)
    let answer = await fixture.send("POST", "/v1/spaces/notes/packets", body: packet.encoded())
    #expect(answer.status == 200)
    let receipt = try PacketAnswer(decoding: answer.bytes, limits: .standard)
    #expect(receipt.receipt.tail == packet.tail)
    #expect(receipt.head == 3)
    fixture.store.state.withLock { $0.status = .buffered }
    let buffered = await fixture.send(
      "POST", "/v1/spaces/notes/packets", body: Packet.serviceSample(2).encoded())
    #expect(buffered.status == 202)
  }

  @Test("packets to an open server share its transactions' look-ups, until a token is made")
  func packetsToOpenServer() async throws {
    let fixture = ServiceFixture()
    #expect(await fixture.sendPacket(1).status == 200)
    let lookUps = fixture.store.calls("hasEverHadTokens()")
    #expect(await fixture.sendPacket(2).status == 200)
    #expect(fixture.store.calls("hasEverHadTokens()") == lookUps)
    let head = try await fixture.store.spaces().map(\.head)
    // Another process makes one. Nothing is let through, not even another fault's description.
    try await fixture.store.addToken(
      AccessRuleTests.token(), AccessGrants(.known("notes"), .writer))
    let faulty = await fixture.send(
      "POST", "/v1/spaces/notes/packets", body: Array("{".utf8))
    #expect(faulty.problem?.code == .unauthorized)
    #expect(await fixture.sendPacket(3).problem?.code == .unauthorized)
    #expect(try await fixture.store.spaces().map(\.head) == head)
  }

  @Test("a packet that only the transaction finds to be too late is refused")
  func packetTooLate() async throws {
    let fixture = ServiceFixture()
    #expect(await fixture.sendPacket(1).status == 200)
    let token = AccessRuleTests.token()
    try await fixture.store.addToken(token, AccessGrants(.known("notes"), .admin))
    let refused = await fixture.sendPacket(2)
    #expect(refused.status == 401 && refused.headers["WWW-Authenticate"] != nil)
    #expect(try await fixture.store.spaces().map(\.head) == [1])
    #expect(await fixture.sendPacket(3).status == 401)
    // A stranger leaves no trace.
    let rejections = await fixture.send("GET", "/v1/spaces/notes/rejections", token: token)
    #expect(rejections.status == 200 && !rejections.text.contains("unauthorized"))
    let devices = await fixture.send("GET", "/v1/spaces/notes/devices", token: token)
    #expect(devices.status == 200)
    #expect(!devices.text.contains("\(Packet.serviceSample(2).device)"))
  }

  @Test("changes are a page, and a cursor that the store refuses is a problem")
  func changes() async throws {
    let fixture = ServiceFixture()
    let page = await fixture.send("GET", "/v1/spaces/notes/changes?limit=10")
    #expect(page.status == 200)
    let head = try PageReader.head(of: page.bytes)
    #expect(head.more == false)
    let stale = Cursor(epoch: Epoch(1), applied: 0)
    let refused = await fixture.send("GET", "/v1/spaces/notes/changes?cursor=\(stale)")
    #expect(refused.status == 409)
    #expect(refused.problem?.code == .epochChanged)
    let broken = await fixture.send("GET", "/v1/spaces/notes/changes?cursor=x")
    #expect(broken.problem?.code == .invalidCursor)
  }

  @Test("records are answered as a page, and a request that breaks a rule is refused")
  func records() async throws {
    let fixture = ServiceFixture()
    fixture.store.move("notes", to: 4, tells: false)
    let keys = ["a", "b"].map { RecordKey(table: "tasks", record: $0) }
    let path = "/v1/spaces/notes/records"
    let answer = await fixture.send("POST", path, body: RecordsRequest(keys: keys).encoded())
    #expect(answer.status == 200)
    #expect(answer.headers["Content-Type"] == "application/json")
    var changes: [Change] = []
    let head = try answer.bytes.withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: .standard) { changes.append($0) }
    }
    #expect(changes == keys.map { .absent($0) })
    #expect(head.head == 4 && head.serverTime == ServiceClockDouble.wall)
    for body in ["", "{}", #"{"records":[]}"#, #"{"records":[["a"]]}"#] {
      let refused = await fixture.send("POST", path, body: Array(body.utf8))
      #expect(refused.problem?.code == .malformedMessage)
    }
    let large = [UInt8](repeating: 0x20, count: Limits.standard.messageBytes + 1)
    #expect(await fixture.send("POST", path, body: large).problem?.code == .limitExceeded)
    let body = RecordsRequest(keys: keys).encoded()
    let none = await fixture.send("POST", "/v1/spaces/none/records", body: body)
    #expect(none.problem?.code == .unknownSpace)
    fixture.store.fail(.unavailable("away"))
    #expect(await fixture.send("POST", path, body: body).status == 503)
  }

  @Test("a packet that breaks a rule is refused with its code, and nothing is stored")
  func badPackets() async throws {
    var limits = Limits.standard
    limits.operationsPerPacket = 2
    limits.messageBytes = 2_000
    let fixture = ServiceFixture(limits: limits)
    let good = Packet.serviceSample(1).encoded()
    let bodies: [(bytes: [UInt8], code: ProblemCode)] = [
      ([], .malformedMessage), (Array("{}".utf8), .malformedMessage),
      (Array(good.dropLast()), .malformedMessage), (good + good, .malformedMessage),
      (Array("[1,2]".utf8), .malformedMessage), ([0xFF, 0xFE, 0x00], .malformedMessage),
      (Packet.serviceSample(1, operations: 3).encoded(), .malformedMessage),
      (Array(String(repeating: "[", count: 1_900).utf8), .malformedMessage),
      ([UInt8](repeating: 0x20, count: 2_001), .limitExceeded),
    ]
    for (bytes, code) in bodies {
      let answer = await fixture.send("POST", "/v1/spaces/notes/packets", body: bytes)
      #expect(answer.problem?.code == code, "\(String(decoding: bytes.prefix(40), as: UTF8.self))")
      #expect(answer.status == code.status)
      #expect(answer.headers["Content-Type"] == "application/problem+json")
    }
    #expect(fixture.store.state.withLock { $0.batches.isEmpty })
  }

  @Test("unknown addresses, spaces and methods are distinguished")
  func notFound() async {
    let fixture = ServiceFixture()
    #expect(await fixture.send("GET", "/").problem?.code == .notFound)
    #expect(await fixture.send("GET", "/v1/spaces/notes/x").problem?.code == .notFound)
    #expect(await fixture.send("GET", "/v1/spaces/none").problem?.code == .unknownSpace)
    #expect(await fixture.send("GET", "/v1/spaces/-bad").problem?.code == .unknownSpace)
    #expect(await fixture.send("PUT", "/v1/spaces/a%20b").problem?.code == .unknownSpace)
    let body = Packet.serviceSample(1).encoded()
    for tail in ["packets", "changes", "events"] {
      let method = tail == "packets" ? "POST" : "GET"
      let answer = await fixture.send(method, "/v1/spaces/none/\(tail)", body: body)
      #expect(answer.problem?.code == .unknownSpace)
    }
    let wrong = await fixture.send("DELETE", "/v1/spaces/notes")
    #expect(wrong.status == 405)
    #expect(wrong.headers["Allow"] == "GET, HEAD, PUT")
    #expect(wrong.problem?.code == .methodNotAllowed)
  }

  @Test("every route admits exactly its roles")
  func accessMatrix() async throws {
    let routes: [(method: String, tail: String, need: Role)] = [
      ("GET", "", .reader), ("PUT", "", .admin), ("POST", "/packets", .writer),
      ("GET", "/changes", .reader), ("GET", "/events", .reader), ("POST", "/records", .reader),
      ("GET", "/schema", .reader), ("POST", "/devices", .reader), ("GET", "/members", .reader),
      ("GET", "/invitations", .admin),
      ("PUT", "/devices/0199c306-6400-7000-800a-11ce00000001", .writer),
    ]
    let fixture = ServiceFixture(spaces: ["notes", "other"])
    let packet = Packet.serviceSample(1).encoded()
    let keys = RecordsRequest(keys: [RecordKey(table: "tasks", record: "1")]).encoded()
    let device = try #require(DeviceID("0199c306-6400-7000-800a-11ce00000001"))
    let bodies = [
      "/records": keys, "/devices": DevicesRequest(devices: [device]).encoded(),
      "/devices/\(device)": DeviceNameRequest(name: nil).encoded(),
    ]
    for role in Role.allCases {
      let token = try await fixture.token(role)
      let known = try #require(try await fixture.store.token(hash: token.hash)).token
      try fixture.store.add(device, of: Principal(known))
      for (method, tail, need) in routes {
        let body = bodies[tail] ?? packet
        let mine = await fixture.send(
          method, "/v1/spaces/notes\(tail)", token: token, body: body)
        #expect(mine.status == (role >= need ? 200 : 403), "\(role) \(method) \(tail)")
        for space in ["other", "none"] {
          let foreign = await fixture.send(
            method, "/v1/spaces/\(space)\(tail)", token: token, body: body)
          #expect(foreign.problem?.code == .forbidden, "\(role) \(method) \(space)\(tail)")
        }
        let nobody = await fixture.send(method, "/v1/spaces/notes\(tail)", body: body)
        #expect(nobody.problem?.code == .unauthorized)
        #expect(nobody.headers["WWW-Authenticate"] == "Bearer realm=\"ferry\"")
      }
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
      #expect(await fixture.send("GET", path).status == 200)
    }
  }

  @Test("digests are requested from the store until its sums reach the cursor, for readers too")
  func digests() async throws {
    let fixture = ServiceFixture()
    // More records than one transaction folds.
    let count = DigestFold.recordsMax + 1
    let stamp = Stamp(time: .zero, device: .server)
    let state = RecordState(
      inserted: SequencedStamp(stamp: stamp, sequence: 1),
      columns: [ColumnState(name: "v", value: .text("x"), stamp: stamp, sequence: 1)])
    try fixture.store.add((1...count).map { Name("r\($0)") }, of: "t", state)
    let cursor = Cursor(epoch: Epoch(7), applied: SequenceNumber(count))
    let token = try await fixture.token(.reader)
    func send(_ query: [UInt8]) async -> HTTPResponse {
      await fixture.send("POST", "/v1/spaces/notes/digests", token: token, body: query)
    }
    let answer = await send(DigestQuery(cursor: cursor).encoded())
    #expect(answer.status == 200)
    #expect(fixture.store.calls("foldDigests(in:)") == 2)
    let read = try DigestAnswer(decoding: answer.bytes, limits: .standard)
    guard case .tables(let tables) = read.content else { throw StoreError.failed("no tables") }
    #expect(tables.map(\.records) == [count])
    let digest = try #require(tables.first).digest
    let nodes = await send(
      DigestQuery(cursor: cursor, table: "t", nodes: [.root]).encoded())
    let below = try DigestAnswer(decoding: nodes.bytes, limits: .standard).content
    guard case .nodes(let answered) = below, case .children(let children)? = answered.first?.digests
    else { throw StoreError.failed("no nodes") }
    #expect(answered.map(\.node) == [.root] && children.reduce(into: .zero, +=) == digest)
    #expect(await send(Array("{}".utf8)).problem?.code == .malformedMessage)
  }

  @Test("the challenge names an unknown token as the reason")
  func unknownToken() async throws {
    let fixture = ServiceFixture()
    _ = try await fixture.token(.reader)
    let answer = await fixture.send(
      "GET", "/v1/spaces/notes", token: AccessRuleTests.token())
    #expect(answer.status == 401)
    #expect(
      answer.headers["WWW-Authenticate"] == "Bearer realm=\"ferry\", error=\"invalid_token\"")
  }

  @Test("while the store is away, the process is alive but not ready")
  func health() async {
    let fixture = ServiceFixture()
    #expect(await fixture.send("GET", "/healthz").status == 200)
    #expect(await fixture.send("GET", "/readyz").status == 200)
    fixture.store.fail(.unavailable("password=hunter2"))
    #expect(await fixture.send("GET", "/healthz").status == 200)
    let answer = await fixture.send("GET", "/readyz")
    #expect(answer.status == 503)
    #expect(answer.headers["Retry-After"] == "1")
    #expect(!answer.text.contains("hunter2"), "what the store says is for the log")
    fixture.store.fail(.readOnly("password=hunter2"))
    let readOnly = await fixture.send("GET", "/readyz")
    #expect(readOnly.status == 503)
    #expect(
      readOnly.text.contains("is read-only or a standby") && !readOnly.text.contains("hunter2"))
    fixture.store.fail(.busy("a lock"))
    let busy = await fixture.send("GET", "/readyz")
    #expect(busy.status == 503 && busy.headers["Retry-After"] == "1")
    fixture.store.fail(nil)
    fixture.service.beginStopping()
    #expect(await fixture.send("GET", "/readyz").status == 503)
    #expect(await fixture.send("GET", "/healthz").status == 200)
  }

  @Test("a stream of events begins with the head, unless the listener knows it")
  func events() async throws {
    let fixture = ServiceFixture()
    fixture.store.move("notes", to: 4, tells: false)
    let answer = await fixture.send("GET", "/v1/spaces/notes/events")
    #expect(answer.status == 200)
    #expect(answer.headers["Content-Type"] == "text/event-stream")
    guard case .stream(let stream) = answer.body else {
      Issue.record("no stream")
      return
    }
    #expect(!stream.isClosed)
    #expect(fixture.hub.listenerCount == 1)
    _ = await fixture.send(
      "GET", "/v1/spaces/notes/events", headers: ["Last-Event-ID": "not a number"])
    #expect(fixture.hub.listenerCount == 2)
  }

  @Test("a known space is looked up once for many packets, and an unknown one each time")
  func remembersSpaces() async {
    let fixture = ServiceFixture()
    for seed in UInt64(1)...5 {
      _ = await fixture.send(
        "POST", "/v1/spaces/notes/packets", body: Packet.serviceSample(seed).encoded())
    }
    #expect(fixture.store.calls("space(named:)") == 1)
    for _ in 0..<2 { _ = await fixture.send("GET", "/v1/spaces/none/changes") }
    #expect(fixture.store.calls("space(named:)") == 3)
    fixture.clock.advance(SpaceDirectory.timeToLive)
    _ = await fixture.send("GET", "/v1/spaces/notes/changes")
    #expect(fixture.store.calls("space(named:)") == 4)
  }

  @Test("refusals of the HTTP layer are problem documents too")
  func failures() {
    let fixture = ServiceFixture()
    let cases: [(HTTPFailure, ProblemCode)] = [
      (.malformedTarget, .malformedMessage), (.ambiguousLength, .malformedMessage),
      (.malformedContent, .malformedMessage), (.contentTooLarge(limit: 9), .limitExceeded),
      (.unsupportedCoding("br"), .unsupportedCoding),
    ]
    for (failure, code) in cases {
      let answer = fixture.service.respond(to: failure, from: "192.0.2.1")
      #expect(answer.problem?.code == code)
      #expect(answer.status == failure.status)
    }
  }
}

extension ServiceFixture {
  /// Sends a packet of one operation without a token.
  fileprivate func sendPacket(_ seed: UInt64) async -> HTTPResponse {
    await send("POST", "/v1/spaces/notes/packets", body: Packet.serviceSample(seed).encoded())
  }
}
