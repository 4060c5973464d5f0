import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct ServiceRouteTests {
  @Test(
    "each address finds its route and the role it needs",
    arguments: [
      ("GET", ["v1", "spaces", "a"], Route.space, Role?.some(.reader)),
      ("HEAD", ["v1", "spaces", "a"], .space, .reader),
      ("PUT", ["v1", "spaces", "a"], .space, .admin),
      ("POST", ["v1", "spaces", "a", "packets"], .packets, .writer),
      ("GET", ["v1", "spaces", "a", "changes"], .changes, .reader),
      ("POST", ["v1", "spaces", "a", "records"], .records, .reader),
      ("GET", ["v1", "spaces", "a", "events"], .events, .reader),
      ("GET", ["v1", "spaces", "a", "schema"], .schema, .reader),
      ("PUT", ["v1", "spaces", "a", "schema"], .schema, .admin),
      ("POST", ["v1", "spaces", "a", "digests"], .digests, .reader),
      ("POST", ["v1", "spaces", "a", "devices"], .devices, .reader),
      ("PUT", ["v1", "spaces", "a", "devices", "b"], .device, .writer),
      ("GET", ["v1", "spaces", "a", "missions"], .missions, .reader),
      ("GET", ["v1", "spaces", "a", "missions", "b"], .mission, .reader),
      ("PUT", ["v1", "spaces", "a", "missions", "b"], .mission, .admin),
      ("DELETE", ["v1", "spaces", "a", "missions", "b"], .mission, .admin),
      ("HEAD", ["v1", "spaces", "a", "blobs", "b"], .upload, .admin),
      ("PUT", ["v1", "spaces", "a", "blobs", "b"], .upload, .admin),
      ("GET", ["healthz"], .health, nil),
      ("GET", ["readyz"], .readiness, nil),
      ("GET", ["metrics"], .metrics, nil),
    ])
  func finds(_ method: String, _ segments: [String], _ route: Route, _ need: Role?) {
    let match = RouteMatch(method: method, segments: segments)
    #expect(match.route == route)
    #expect(match.endpoint?.method == method && match.endpoint?.need == need)
    #expect(match.spaceText == (segments.first == "v1" ? "a" : nil))
  }

  @Test("content has an address without a space, and its name is parsed")
  func content() {
    let match = RouteMatch(method: "HEAD", segments: ["v1", "blobs", "ab"])
    #expect(match.route == .blob && match.endpoint?.need == .reader)
    #expect(match.spaceText == nil && match.itemText == "ab")
    let mission = RouteMatch(method: "PUT", segments: ["v1", "spaces", "a", "missions", "b"])
    #expect(mission.spaceText == "a" && mission.itemText == "b")
  }

  @Test(
    "a method that an address does not support is distinguished from an unknown address",
    arguments: [
      ("DELETE", ["v1", "spaces", "a"], "GET, HEAD, PUT"),
      ("GET", ["v1", "spaces", "a", "packets"], "POST"),
      ("POST", ["v1", "spaces", "a", "changes"], "GET, HEAD"),
      ("PUT", ["v1", "spaces", "a", "records"], "POST, GET, HEAD"),
      ("HEAD", ["v1", "spaces", "a", "events"], "GET"),
      ("DELETE", ["v1", "spaces", "a", "schema"], "GET, HEAD, POST, PUT"),
      ("POST", ["v1", "spaces", "a", "history"], "GET, HEAD"),
      ("PUT", ["v1", "spaces", "a", "devices"], "POST, GET, HEAD"),
      ("POST", ["console", ""], "GET, HEAD"),
      ("DELETE", ["v1", "spaces", "a", "devices", "b"], "PUT"),
      ("POST", ["healthz"], "GET, HEAD"),
    ])
  func refusesMethods(_ method: String, _ segments: [String], _ allow: String) {
    let match = RouteMatch(method: method, segments: segments)
    #expect(match.route != .unknown)
    #expect(match.endpoint == nil)
    #expect(match.route.allow == allow)
  }

  @Test(
    "an address that is not Ferry's is unknown",
    arguments: [
      [], [""], ["v1"], ["v1", "spaces", ""], ["console", "", ""], ["v2", "spaces", "a"],
      ["v1", "space", "a"], ["v1", "spaces", "a", ""], ["v1", "spaces", "a", "packet"],
      ["v1", "spaces", "a", "packets", "b"], ["v1", "spaces", "a", "missions", ""],
      ["v1", "spaces", "a", "blobs"], ["v1", "blobs"], ["v1", "blobs", ""], ["healthz", ""],
      ["Healthz"],
    ])
  func unknown(_ segments: [String]) {
    #expect(RouteMatch(method: "GET", segments: segments).route == .unknown)
  }

  @Test("a query without parameters requests a page from the start")
  func emptyQuery() throws {
    let request = try ChangesQuery.read({ _ in nil }, limits: .standard).get()
    #expect(request == PullRequest(cursor: nil, limit: 1_000, byteLimit: 4 << 20, device: nil))
  }

  @Test("a query's parameters are read, and a limit above the server's is lowered")
  func fullQuery() throws {
    let cursor = Cursor(epoch: Epoch(5), applied: 3, received: 9)
    let device = DeviceID(UniqueID(high: 1, low: 2))
    let values = [
      "cursor": cursor.description, "limit": "99999999", "device": device.description, "x": "y",
    ]
    let request = try ChangesQuery.read({ values[$0] }, limits: .standard).get()
    #expect(request.cursor == cursor)
    #expect(request.limit == Limits.standard.changesPerPage)
    #expect(request.device == device)
  }

  @Test("former names are a list of UUIDs, up to the bound for a device")
  func formerNames() throws {
    func read(_ text: String) -> Result<PullRequest, Problem> {
      ChangesQuery.read({ $0 == "former" ? text : nil }, limits: .standard)
    }
    let names = (1...17).map { DeviceID(UniqueID(high: 1, low: $0)) }
    func text(_ count: Int) -> String {
      names.prefix(count).map(\.description).joined(separator: ",")
    }
    #expect(try read(text(16)).get().former == Array(names.prefix(16)))
    for wrong in ["", "x", text(17), text(2) + ","] {
      #expect(throws: Problem.self) { try read(wrong).get() }
    }
  }

  @Test(
    "an invalid query is refused with its code",
    arguments: [
      ("cursor", "12", ProblemCode.invalidCursor), ("limit", "0", .malformedMessage),
      ("limit", "-1", .malformedMessage), ("limit", "ten", .malformedMessage),
      ("limit", "", .malformedMessage), ("device", "me", .malformedMessage),
    ])
  func badQuery(_ name: String, _ value: String, _ code: ProblemCode) {
    let result = ChangesQuery.read({ $0 == name ? value : nil }, limits: .standard)
    #expect(throws: Problem.self) { try result.get() }
    guard case .failure(let problem) = result else { return }
    #expect(problem.code == code)
  }
}
