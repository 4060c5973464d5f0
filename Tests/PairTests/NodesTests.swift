import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Two `ferryd` processes on one PostgreSQL.
@Suite(.hangLimit)
struct NodesTests {
  private func makeNodes() async throws -> (Server, Server) {
    let database = try await Server.database()
    let nodes = (try Server(database: database), try Server(database: database))
    // At once: both create the tables in the empty database.
    async let first = nodes.0.start()
    async let second = nodes.1.start()
    _ = try await (first, second)
    return nodes
  }

  @Test("devices on different nodes receive each other's changes")
  func exchange() async throws {
    let (east, west) = try await makeNodes()
    let one = try await Device.joined(east.url)
    let two = try await Device.joined(west.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'one', 1)")
    try await two.write("INSERT INTO notes VALUES ('b', 'two', 2)")
    try await one.exchange()
    try await two.exchange()
    try await expectSettled([one, two], west, operations: 2)
    #expect(try await east.head() == 2)
  }

  @Test("a watcher on one node is notified of a push through the other")
  func events() async throws {
    let (east, west) = try await makeNodes()
    let one = try await Device.joined(east.url)
    let two = try await Device.joined(west.url)
    let watch = try two.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    try await one.write("INSERT INTO notes VALUES ('a', 'one', 1)")
    try await one.exchange()
    _ = try await watch.line { $0.contains("1 pulled") }
    #expect(try await two.rows() == [["a", "one", 1]])
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
  }

  @Test("a node receives no notification of spaces that it does not need")
  func quiet() async throws {
    let (east, west) = try await makeNodes()
    let noisy = try await Device.joined(east.url, space: "noisy")
    let one = try await Device.joined(east.url)
    let two = try await Device.joined(west.url)
    let watch = try two.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    for number in 0..<5 {
      try await noisy.write("INSERT INTO notes VALUES ('n\(number)', 'noise', 1)")
      try await noisy.exchange()
    }
    try await one.write("INSERT INTO notes VALUES ('a', 'one', 1)")
    try await one.exchange()
    _ = try await watch.line { $0.contains("1 pulled") }
    // They arrive in order, so the noise would have been received before. A head read at the start
    // of listening to the channel is no notification.
    #expect(try await west.metric("ferry_notifications_total") <= 1)
    #expect(try await west.metric("ferry_notification_channels") == 1)
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
    try await eventually("the node to need no space") {
      try await west.metric("ferry_notification_channels") == 0
    }
    try await noisy.write("INSERT INTO notes VALUES ('z', 'noise', 1)")
    try await noisy.exchange()
    #expect(try await west.metric("ferry_notifications_total") <= 1)
  }

  @Test("after the connection for notifications was lost, watchers are notified again")
  func lostNotifications() async throws {
    let (east, west) = try await makeNodes()
    let one = try await Device.joined(east.url)
    let two = try await Device.joined(west.url)
    let watch = try two.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    let database = try #require(east.database)
    for number in 0..<3 {
      try PostgresCluster.disconnectAll(from: database)
      try await one.write("INSERT INTO notes VALUES ('n\(number)', 'one', 1)")
      try await one.exchange()
      try await eventually("row \(number)", from: watch) {
        try await two.rows().count == number + 1
      }
    }
    watch.send(SIGINT)
    _ = try await watch.exitStatus()
  }

  @Test("when a node is killed, its devices continue on the other and lose or duplicate nothing")
  func lostNode() async throws {
    let (east, west) = try await makeNodes()
    let proxy = try TCPProxy(to: east.port)
    let one = try await Device.joined(proxy.url)
    let two = try await Device.joined(west.url)
    try await one.write(Sample.notes(50, "note"))
    let trap = proxy.trap(.answer, of: "POST ", .hold)
    let sync = try one.start("sync", "--json")
    try await trap.sprung()
    try await east.kill()
    proxy.retarget(to: west.port)
    trap.cut()
    #expect(try await sync.exitStatus() == .exited(0))
    try await expectSettled([one, two], west, operations: 50)
    try await one.ferry("init", "--server", west.url, "--space", Device.space)
    try await one.write("UPDATE notes SET body = 'moved' WHERE id = 'note-00001'")
    try await expectSettled([one, two], west, operations: 51)
  }
}
