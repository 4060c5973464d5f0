import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

@Suite("A PostgreSQL listener", .hangLimit)
struct PostgresListenerTests {
  private typealias Event = PostgresListener.Event

  @Test("a listener receives the notifications of other connections on its channels in order")
  func hearsOthers() async throws {
    let database = try await TestDatabase(connections: 2)
    let (events, feed) = AsyncStream.makeStream(of: Event.self)
    let listener = try PostgresListener(
      url: database.url, channels: PostgresChannels(["heads", "Odd \"channel\""]),
      onEvent: { feed.yield($0) })
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .listening(["Odd \"channel\"", "heads"]))
    for number in 0..<50 {
      try await notify("heads", "\(number)", database.pool)
    }
    try await notify("other", "unheard", database.pool)
    try await notify("Odd \"channel\"", "", database.pool)
    for number in 0..<50 {
      let event = await iterator.next()
      #expect(event == .notification(channel: "heads", payload: "\(number)"))
    }
    #expect(await iterator.next() == .notification(channel: "Odd \"channel\"", payload: ""))
    await listener.close()
  }

  @Test("a listener connects again when its backend is terminated, and reports it")
  func reconnects() async throws {
    let database = try await TestDatabase()
    let (events, feed) = AsyncStream.makeStream(of: Event.self)
    let listener = try PostgresListener(
      url: database.url, channels: PostgresChannels(["heads"]), retryDelay: .milliseconds(1),
      onEvent: { feed.yield($0) })
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .listening(["heads"]))
    // PostgreSQL shows a query a moment after the answer.
    let backend = try await eventually("the listener's process") {
      try await database.pool.run { connection in
        let sql = """
          SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'
          """
        return try connection.query(.once(sql)).first?.int4(0)
      }
    }
    try await TestDatabase.terminate(backend, in: database.url)
    guard case .disconnected(let error) = await iterator.next() else {
      Issue.record("the loss was not told")
      return
    }
    #expect(error.kind == .connectionLost)
    #expect(await iterator.next() == .listening(["heads"]))
    try await notify("heads", "after", database.pool)
    #expect(await iterator.next() == .notification(channel: "heads", payload: "after"))
    await listener.close()
  }

  @Test("channels begin and end while the listener runs, and come back after a lost connection")
  func changes() async throws {
    let database = try await TestDatabase()
    let (events, feed) = AsyncStream.makeStream(of: Event.self)
    let channels = try PostgresChannels()
    let listener = try PostgresListener(
      url: database.url, channels: channels, retryDelay: .milliseconds(1),
      onEvent: { feed.yield($0) })
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .listening([]))
    for round in 0..<20 {
      channels.listen(to: "a")
      #expect(await iterator.next() == .listening(["a"]))
      try await notify("b", "unheard", database.pool)
      try await notify("a", "\(round)", database.pool)
      #expect(await iterator.next() == .notification(channel: "a", payload: "\(round)"))
      channels.unlisten(from: "a")
      try await eventually("no channel") { channels.countInForce == 0 }
      try await notify("a", "unheard", database.pool)
    }
    channels.listen(to: "b")
    #expect(await iterator.next() == .listening(["b"]), "nothing came between")
    channels.listen(to: "c")
    #expect(await iterator.next() == .listening(["c"]))
    try PostgresCluster.disconnectAll(from: database.url)
    guard case .disconnected = await iterator.next() else {
      Issue.record("the loss was not reported")
      return
    }
    channels.unlisten(from: "c")
    channels.listen(to: "d")
    // The new connection may have been made between the two calls.
    var heard: Set<String> = []
    while !heard.isSuperset(of: ["b", "d"]) {
      if case .listening(let names) = await iterator.next() { heard.formUnion(names) }
    }
    try await eventually("two channels") { channels.countInForce == 2 }
    await listener.close()
    #expect(channels.countInForce == 0)
  }

  @Test("a listener waits for a server that is down, and can be closed meanwhile")
  func serverDown() async throws {
    let cluster = try PostgresCluster()
    let url = try cluster.createDatabase()
    try cluster.stop()
    let (events, feed) = AsyncStream.makeStream(of: Event.self)
    let patient = try PostgresListener(
      url: url, channels: PostgresChannels(["heads"]), retryDelay: .milliseconds(10),
      onEvent: { feed.yield($0) })
    let (attempts, attemptFeed) = AsyncStream.makeStream(of: Event.self)
    let closed = try PostgresListener(
      url: url, channels: PostgresChannels(["heads"]), retryDelay: .seconds(3600),
      onEvent: { attemptFeed.yield($0) })
    for await event in attempts {
      guard case .disconnected(let error) = event else { continue }
      #expect(error.kind == .connectionFailed)
      break
    }
    await closed.close()
    try cluster.start()
    for await event in events where event == .listening(["heads"]) { break }
    await patient.close()
  }

  @Test("a listener uses the second server of its address while the first one hangs")
  func firstServerHangs() async throws {
    let silent = try LoopbackSocket.listen()
    defer { close(silent.descriptor) }
    let url = try PostgresCluster.shared().createDatabase()
      .replacing("@", with: "@127.0.0.1:\(silent.port),")
    let (events, feed) = AsyncStream.makeStream(of: Event.self)
    let listener = try PostgresListener(
      url: url, channels: PostgresChannels(["heads"]), retryDelay: .milliseconds(1),
      connectLimit: .milliseconds(300), onEvent: { feed.yield($0) })
    for await event in events where event == .listening(["heads"]) { break }
    await listener.close()
  }

  private func notify(_ channel: String, _ payload: String, _ pool: PostgresPool) async throws {
    try await pool.run { connection in
      _ = try connection.query(
        .once("SELECT pg_notify($1, $2)"), [.text(channel), .text(payload)])
    }
  }
}
