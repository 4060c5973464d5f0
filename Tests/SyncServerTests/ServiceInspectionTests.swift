import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The views of spaces for administrators.
@Suite(.hangLimit)
struct ServiceInspectionTests {
  private static let views = [
    "overview", "devices", "tables", "records?table=tasks", "history?table=tasks&record=a",
    "conflicts", "rejections", "activity", "feed",
  ]

  @Test("only an admin of a space sees its views, and no other space's", arguments: views)
  func roles(view: String) async throws {
    let fixture = ServiceFixture(spaces: ["notes", "other"])
    let path = "/v1/spaces/notes/\(view)"
    for role in [Role.reader, .writer] {
      let answer = await fixture.send("GET", path, token: try await fixture.token(role))
      #expect(answer.status == 403, "\(role)")
    }
    let other = try await fixture.token(.admin, of: "other")
    #expect(await fixture.send("GET", path, token: other).status == 403)
    #expect(await fixture.send("GET", path).status == 401)
    let admin = try await fixture.token(.admin)
    #expect(await fixture.send("GET", path, token: admin).status == 200)
  }

  @Test("the list of spaces has those that the caller administers, in pages")
  func spaces() async throws {
    let names = (0..<30).map { "s\(10 + $0)" }
    let fixture = ServiceFixture(spaces: names)
    let token = try await fixture.token(.admin, of: "s20")
    let own = await fixture.send("GET", "/v1/spaces", token: token)
    #expect(own.text.contains(#""space":"s20""#) && own.text.hasSuffix(#""next":null}"#))
    #expect(own.text.split(separator: #""space":"#).count == 2)
    let reader = try await fixture.token(.reader, of: "s20")
    #expect(await fixture.send("GET", "/v1/spaces", token: reader).status == 403)
    let open = ServiceFixture(spaces: names)
    var (found, next): ([String], String?) = ([], "")
    while let after = next {
      let page = await open.send("GET", "/v1/spaces?limit=7&after=\(after)").text
      found += page.matches(of: /"space":"(s\d+)"/).map { String($0.1) }
      next = page.firstMatch(of: /"next":"(s\d+)"/).map { String($0.1) }
    }
    #expect(found == names)
  }

  @Test("a place or a number that is none is refused")
  func malformed() async throws {
    let fixture = ServiceFixture()
    let paths = [
      "devices?after=x", "devices?limit=0", "devices?limit=-1", "devices?limit=501",
      "devices?limit=%2B5", "conflicts?before=7",
      "conflicts?before=x/y", "rejections?before=-1/a", "records", "records?table=",
      "history?table=a", "history?table=a&record=b&before=-1", "activity?unit=year",
      "feed?since=x", "feed?since=", "feed?since=0000000000000007.0.1", "feed?limit=501",
      "activity?since=x",
    ]
    for path in paths {
      let answer = await fixture.send("GET", "/v1/spaces/notes/\(path)")
      #expect(answer.problem?.code == .malformedMessage, "\(path)")
    }
    let most = await fixture.send("GET", "/v1/spaces/notes/devices?limit=500")
    #expect(most.status == 200)
  }

  @Test("packets and pulls show the device's client, its place and what was refused")
  func observed() async throws {
    let fixture = ServiceFixture()
    let packet = Packet.serviceSample(1, operations: 3)
    _ = await fixture.send(
      "POST", "/v1/spaces/notes/packets", headers: ["User-Agent": "ferry/0.1"],
      body: packet.encoded())
    let devices = await fixture.send("GET", "/v1/spaces/notes/devices").text
    #expect(devices.contains(#""client":"ferry/0.1""#))
    #expect(devices.contains("\(packet.device)"))
    let refused = await fixture.send(
      "POST", "/v1/spaces/notes/packets", body: Array("{}".utf8))
    #expect(refused.status == 400)
    let rejections = await fixture.send("GET", "/v1/spaces/notes/rejections").text
    #expect(rejections.contains(#""code":"malformed_message""#))
    #expect(rejections.contains("the packet names no device"))
    let counts = await fixture.send("GET", "/v1/spaces/notes/activity?unit=minute").text
    #expect(counts.contains(#""operations":3,"conflicts":0,"rejected":1"#), "\(counts)")
  }

  @Test("a view answers although its observations cannot be written down, and keeps them")
  func outage() async throws {
    let fixture = ServiceFixture()
    let packet = Packet.serviceSample(1)
    _ = await fixture.send("POST", "/v1/spaces/notes/packets", body: packet.encoded())
    fixture.store.state.withLock { $0.failure = .busy("a lock") }
    await fixture.service.inspection.save()
    fixture.store.state.withLock { $0.failure = nil }
    #expect(try await DeviceInspection(fixture.store).devices(in: 1, after: nil, limit: 9) == [])
    await fixture.service.inspection.save()
    #expect(
      try await DeviceInspection(fixture.store).devices(in: 1, after: nil, limit: 9).count == 1)
  }

  @Test("a view waits for observations that are being written down")
  func saving() async throws {
    let fixture = ServiceFixture()
    let packet = Packet.serviceSample(1)
    _ = await fixture.send("POST", "/v1/spaces/notes/packets", body: packet.encoded())
    let (store, inspection) = (fixture.store, fixture.service.inspection)
    store.state.withLock { $0.isHoldingNotes = true }
    let first = Task { await inspection.save() }
    await store.waitUntilHeld()
    let second = Task {
      await inspection.save()
      return try await DeviceInspection(store).devices(in: 1, after: nil, limit: 9).count
    }
    for _ in 0..<1_000 { await Task.yield() }
    store.release()
    await first.value
    #expect(try await second.value == 1)
  }

  @Test("a list shows the size of a large value, and the record itself the value")
  func largeValues() async throws {
    let fixture = ServiceFixture()
    let stamp = Stamp(time: .zero, device: DeviceID(UniqueID(high: 1, low: 2)))
    let large = String(repeating: "x", count: 5_000)
    let state = RecordState(
      inserted: SequencedStamp(stamp: stamp, sequence: 1),
      columns: [
        ColumnState(name: "large", value: .text(large), stamp: stamp, sequence: 1),
        ColumnState(name: "small", value: .text("y"), stamp: stamp, sequence: 1),
      ])
    try fixture.store.add(["a"], of: "tasks", state)
    let list = await fixture.send("GET", "/v1/spaces/notes/records?table=tasks").text
    #expect(list.contains(#""column":"large","bytes":5002"#) && !list.contains("xxx"))
    #expect(list.contains(#""column":"small","value":"y""#))
    let one = await fixture.send("GET", "/v1/spaces/notes/history?table=tasks&record=a").text
    #expect(one.contains(large))
  }

  @Test("the stretches of a history meet without a gap, and end at the horizon")
  func stretches() {
    let empty = HistoryPart(entries: [], isCut: false)
    var stretch = HistoryStretch(top: 50, horizon: 12, length: 20)
    #expect(stretch.places == 31...50 && stretch.next(after: empty) == 30)
    stretch = HistoryStretch(top: 30, horizon: 12, length: 20)
    #expect(stretch.places == 12...30 && stretch.next(after: empty) == nil)
    #expect(HistoryStretch(top: 11, horizon: 12).places == nil)
    #expect(HistoryStretch(top: 0, horizon: 0).places == nil)
    #expect(HistoryStretch(top: 1, horizon: 0).next(after: empty) == nil)
  }

  @Test("the check of a schema is for admins, and answers without applying it")
  func schemaCheck() async throws {
    let fixture = ServiceFixture()
    let body = Array(#"{"version":3,"tables":{}}"#.utf8)
    let answer = await fixture.send("POST", "/v1/spaces/notes/schema", body: body)
    #expect(answer.status == 200 && answer.text == #"{"fits":true,"version":3}"#)
    #expect(try await fixture.store.schema(of: 1) == .empty)
    let writer = try await fixture.token(.writer)
    let refused = await fixture.send(
      "POST", "/v1/spaces/notes/schema", token: writer, body: body)
    #expect(refused.status == 403)
    let bad = await fixture.send(
      "POST", "/v1/spaces/notes/schema", token: try await fixture.token(.admin),
      body: Array("{".utf8))
    #expect(bad.problem?.code == .malformedMessage)
  }
}
