import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct ServiceSchemaTests {
  private let path = "/v1/spaces/notes/schema"

  @Test("a schema is shown as it was applied, and an empty one if none was")
  func roundTrip() async throws {
    let fixture = ServiceFixture()
    let none = await fixture.send("GET", path)
    #expect(none.status == 200)
    #expect(try SpaceSchema(decoding: none.bytes) == .empty)
    let document = SpaceSchema(version: 1, tables: ["t": TableRules(write: .admin)])
    let applied = await fixture.send("PUT", path, body: document.encoded())
    #expect(applied.status == 200)
    #expect(try SpaceSchema(decoding: applied.bytes) == document)
    #expect(await fixture.send("GET", path).bytes == document.encoded())
  }

  @Test("records have to fit a schema, and no rule is dropped, unless the request says so")
  func consent() async {
    let fixture = ServiceFixture()
    let body = Array(#"{"tables":{}}"#.utf8)
    let queries = [
      ("", SchemaConsent()), ("?records=check&losses=refuse", SchemaConsent()),
      ("?records=keep", SchemaConsent(keepsRecords: true)),
      ("?losses=accept", SchemaConsent(dropsRules: true)),
    ]
    for (query, _) in queries {
      #expect(await fixture.send("PUT", path + query, body: body).status == 200)
    }
    #expect(fixture.store.state.withLock { $0.consents } == queries.map(\.1))
    for (query, rule) in [
      ("?records=drop", "records is check or keep"), ("?losses=", "losses is refuse or accept"),
    ] {
      for method in ["PUT", "POST"] {
        let problem = await fixture.send(method, path + query, body: body).problem
        #expect(problem?.code == .malformedMessage, "\(method) \(query)")
        #expect(problem?.detail.contains(rule) == true, "\(problem?.detail ?? "no problem")")
      }
    }
  }

  @Test("an invalid schema is refused with the place of the fault")
  func malformed() async {
    let fixture = ServiceFixture()
    for body in ["", "[]", #"{"tables":{"t":{"polcy":"max"}}}"#, #"{"tables":{"ferry_x":{}}}"#] {
      let answer = await fixture.send("PUT", path, body: Array(body.utf8))
      #expect(answer.problem?.code == .malformedMessage, "\(body)")
    }
    let none = await fixture.send("GET", "/v1/spaces/none/schema")
    #expect(none.problem?.code == .unknownSpace)
  }

  @Test("the store receives a packet's role: its sender's, or admin without any token")
  func roles() async throws {
    let fixture = ServiceFixture()
    let packets = "/v1/spaces/notes/packets"
    _ = await fixture.send("POST", packets, body: Packet.serviceSample(1).encoded())
    let token = try await fixture.token(.writer)
    fixture.clock.advance(.seconds(5))
    _ = await fixture.send("POST", packets, token: token, body: Packet.serviceSample(2).encoded())
    #expect(fixture.store.state.withLock { $0.roles } == [.admin, .writer])
  }

  @Test("the store receives a client's protocol version; without the header it is 1")
  func versions() async {
    let fixture = ServiceFixture()
    for (header, version) in [(nil, 1), ("1", 1), ("7", 7)] as [(String?, Int)] {
      var headers = HTTPHeaders()
      if let header { headers["Ferry-Protocol"] = header }
      let sent = await fixture.send(
        "POST", "/v1/spaces/notes/packets", headers: headers,
        body: Packet.serviceSample(UInt64(version) + (header == nil ? 9 : 0)).encoded())
      #expect(sent.status == 200)
      let pulled = await fixture.send("GET", "/v1/spaces/notes/changes", headers: headers)
      #expect(pulled.status == 200)
      #expect(fixture.store.state.withLock { $0.versions.suffix(2) } == [version, version])
    }
    for header in ["", "0", "-1", "1.5", "new"] {
      for (method, tail) in [("POST", "packets"), ("GET", "changes")] {
        let answer = await fixture.send(
          method, "/v1/spaces/notes/\(tail)", headers: ["Ferry-Protocol": header],
          body: Packet.serviceSample(1).encoded())
        #expect(answer.problem?.code == .malformedMessage, "'\(header)'")
      }
    }
  }

  @Test("a request that states two versions of the protocol is refused by every route")
  func versionsTwice() async {
    let fixture = ServiceFixture()
    var headers: HTTPHeaders = ["Ferry-Protocol": "1"]
    headers.append("ferry-protocol", "1")
    for (method, path) in [
      ("POST", "/v1/spaces/notes/packets"), ("GET", "/v1/spaces/notes/changes"),
      ("POST", "/v1/spaces/notes/records"), ("GET", "/v1/spaces/notes/schema"),
      ("GET", "/v1/spaces"), ("POST", "/v1/tokens"), ("GET", "/healthz"),
    ] {
      let answer = await fixture.send(method, path, headers: headers)
      #expect(answer.status == 400, "\(path)")
      #expect(answer.problem?.code == .malformedMessage, "\(path)")
    }
    #expect(fixture.store.state.withLock { $0.versions.isEmpty })
  }
}
