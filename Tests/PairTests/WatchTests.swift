import Ferry
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

/// `ferry sync --watch` as a process, and the library's `watch`.
@Suite(.hangLimit)
struct WatchTests {
  @Test("a change on a watching device becomes visible on another", arguments: StoreKind.allCases)
  func live(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    let watches = try [pair.one, pair.two].map { try $0.start("sync", "--watch") }
    for watch in watches { _ = try await watch.line { $0.hasSuffix("connected") } }
    for number in 1...5 {
      let (from, to) = number % 2 == 0 ? (pair.two, pair.one) : (pair.one, pair.two)
      try await from.write("INSERT INTO notes VALUES ('\(number)', 'x', \(number))")
      try await eventually("row \(number)") {
        try await to.count() == Int64(number)
      }
    }
    for watch in watches { watch.send(SIGINT) }
    for watch in watches { #expect(try await watch.exitStatus() == .exited(0)) }
    try await expectSettled([pair.one, pair.two], pair.server, operations: 5)
  }

  @Test("a watch survives a restart of its server, and sends the writes of the meantime")
  func reconnects() async throws {
    let pair = try await Pair.make()
    let watch = try pair.one.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    #expect(try await pair.server.stop() == .exited(0))
    let before = watch.lineCount
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'offline', 1)")
    _ = try await watch.line(after: before) { $0.contains("offline") }
    #expect(try await pair.one.status().pending == 1)
    try await pair.server.start()
    _ = try await watch.line(after: before) { $0.hasSuffix("connected") }
    try await eventually("the write to be sent", from: watch) {
      try await pair.one.status().pending == 0
    }
    try await pair.two.write("INSERT INTO notes VALUES ('b', 'live again', 2)")
    try await pair.two.exchange()
    try await eventually("the other's write", from: watch) { try await pair.one.count() == 2 }
    #expect(watch.endedWith == nil)
    watch.send(SIGINT)
    #expect(try await watch.exitStatus() == .exited(0))
    try await expectSettled([pair.one, pair.two], pair.server, operations: 2)
  }

  @Test("commands on a file that another program locks name it as busy, and a watch waits for it")
  func locked() async throws {
    let pair = try await Pair.make()
    try await pair.two.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await pair.two.exchange()
    var other: SQLiteConnection? = try SQLiteConnection(path: pair.one.path)
    try other?.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE")
    let watch = try pair.one.start("sync", "--watch")
    async let status = pair.one.ferry("status", exits: 3)
    async let pending = pair.one.ferry("pending", exits: 3)
    async let select = pair.one.ferry("sql", "SELECT * FROM notes", exits: 3)
    for finished in try await [status, pending, select] {
      #expect(finished.error.contains("busy") && !finished.error.contains("--replica"))
    }
    _ = try await watch.line { $0.contains("busy") }
    other = nil
    _ = try await watch.line { $0.contains("1 pulled") }
    watch.send(SIGINT)
    #expect(try await watch.exitStatus() == .exited(0))
  }

  @Test("a watch that is killed during a push loses nothing")
  func killed() async throws {
    let pair = try await Pair.make()
    let watch = try pair.one.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    let trap = pair.proxy.trap(.answer, of: "POST ", .hold)
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await trap.sprung()
    watch.send(SIGKILL)
    _ = try await watch.exitStatus()
    pair.proxy.removeTraps()
    try await expectSettled([pair.one, pair.two], pair.server, operations: 1)
  }

  @Test("a watch ends with the reason when its token is revoked")
  func revoked() async throws {
    let server = try await Server.start()
    let token = try await server.token("writer")
    let device = try await Device.joined(server.url, token: token)
    let watch = try device.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    let listed = try await server.ferryd("token", "revoke", token)
    #expect(listed.status == .exited(0))
    // Tokens are believed for a few seconds; each write asks again.
    try await eventually("the watch to end") {
      try await device.write("INSERT INTO notes VALUES (hex(randomblob(8)), 'x', 1)")
      return watch.endedWith != nil
    }
    #expect(try await watch.exitStatus() == .exited(4))
    #expect(watch.error.contains("valid token"))
    #expect(try await device.status().pending >= 1)
  }

  @Test("the library's watch sends local writes at once, shows remote ones, and can be cancelled")
  func library() async throws {
    let pair = try await Pair.make()
    let (one, two) = (try await pair.one.open(), try await pair.two.open())
    let (connected, continuation) = AsyncStream<Void>.makeStream()
    let watching = [one, two].map { replica in
      Task {
        try await replica.watch(onEvent: { if case .connected = $0 { continuation.yield() } })
      }
    }
    var count = 0
    for await _ in connected {
      count += 1
      if count == 2 { break }
    }
    try await one.write { _ = try $0.execute("INSERT INTO notes VALUES ('a', 'x', 1)") }
    try await eventually("the write on the other device") {
      try await two.read { try $0.query("SELECT * FROM notes") }.count == 1
    }
    for task in watching {
      task.cancel()
      await #expect(throws: ReplicaError.cancelled) { try await task.value }
    }
  }
}
