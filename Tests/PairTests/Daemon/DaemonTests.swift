import Ferry
import FerryTestSupport
import Foundation
import Testing

/// `ferryd` as a service: the start, the reports, and the end.
@Suite(.hangLimit)
struct DaemonTests {
  @Test(
    "SIGTERM during a push ends with 0, and acknowledged operations survive it",
    arguments: StoreKind.allCases)
  func stopsUnderLoad(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    try await pair.one.write(Sample.notes(8_000, "note"))
    let trap = pair.proxy.trap(.answer, of: "POST ", skipping: 2, .tell)
    let push = try pair.one.start("push", "--json")
    try await trap.sprung()
    #expect(try await pair.server.stop() == .exited(0))
    try await pair.server.start()
    _ = try await push.exitStatus()
    try await expectSettled([pair.one, pair.two], pair.server, operations: 8_000)
  }

  @Test("a request in progress is answered before the server ends")
  func finishesRequest() async throws {
    let pair = try await Pair.make(serving: ["--stop-grace", "600s"])
    try await pair.one.write(Sample.notes(60, "note"))
    let trap = pair.proxy.trap(.request, of: "POST ", after: 1_500, .hold)
    let push = try pair.one.start("push", "--json")
    try await trap.sprung()
    // The bytes may still wait in the server's socket, unread.
    try await eventually("the server to read the request") {
      try await pair.server.metric("ferry_memory_transfer_bytes") > 0
    }
    async let stopped = pair.server.stop()
    try await eventually("the server to take nothing new") {
      (try? LoopbackSocket.connect(to: pair.server.port)).map { close($0) } == nil
    }
    trap.release()
    #expect(try await stopped == .exited(0))
    #expect(try await push.exitStatus() == .exited(0))
    #expect(push.output.contains("\"pushed\":60"))
    try await pair.server.start()
    try await expectSettled([pair.one, pair.two], pair.server, operations: 60)
  }

  @Test("a second server on one data directory is refused, and the first one continues")
  func dataInUse() async throws {
    let server = try await Server.start()
    let second = try await server.ferryd("serve", "--listen", "127.0.0.1:0")
    #expect(second.status == .exited(1))
    #expect(second.error.contains("is in use"))
    #expect(try await Wire.send(.get, "\(server.url)/readyz").status == 200)
    try await server.kill()
    try await server.start()
  }

  @Test("health, readiness and metrics report the server's state", arguments: StoreKind.allCases)
  func metrics(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let device = try await Device.joined(server.url)
    try await device.write(Sample.notes(7, "note"))
    try await device.exchange()
    for path in ["/healthz", "/readyz"] {
      #expect(try await Wire.send(.get, server.url + path).status == 200)
    }
    let page = try await Wire.send(.get, "\(server.url)/metrics")
    #expect(page.headers["Content-Type"]?.hasPrefix("text/plain; version=0.0.4") == true)
    let lines = page.text.split(separator: "\n")
    #expect(lines.contains("ferry_operations_total 7"))
    #expect(lines.contains("ferry_packets_total{status=\"applied\"} 1"))
    let samples = lines.filter { !$0.hasPrefix("#") }
    #expect(samples.allSatisfy { $0.wholeMatch(of: /[a-z_]+(\{.*\})? [-+0-9.eE]+(Inf)?/) != nil })
    try await eventually("the request in the log", from: server) {
      server.log.contains("\"route\":\"/v1/spaces/{space}/packets\"")
    }
    let requests = try server.log.split(separator: "\n").filter { $0.hasPrefix("{") }
      .flatMap { try JSONLine.all(String($0)) }.filter { $0.text("message") == "request" }
    #expect(requests.allSatisfy { $0.number("status") != nil && $0.members["durationMs"] != nil })
  }

  @Test("readiness fails while the database is away, and succeeds when it is back")
  func readiness() async throws {
    let cluster = try PostgresCluster()
    let server = try Server(database: try cluster.createDatabase())
    try await server.start()
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try cluster.stop(.immediate)
    let away = try await Wire.send(.get, "\(server.url)/readyz")
    #expect((away.status, away.problem) == (503, "unavailable"))
    #expect(try await Wire.send(.get, "\(server.url)/healthz").status == 200)
    try await device.ferry("sync", exits: 3)
    try cluster.start()
    try await eventually("readiness") {
      try await Wire.send(.get, "\(server.url)/readyz").status == 200
    }
    #expect(try await device.exchange().pushed == 1)
    #expect(try await server.head() == 1)
  }
}
