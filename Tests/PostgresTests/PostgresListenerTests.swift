import FerryPostgres
import FerryTestSupport
import Testing

@Suite("A PostgreSQL listener", .hangLimit)
struct PostgresListenerTests {
  private typealias Event = PostgresListener.Event

  @Test("a listener receives the notifications of other connections on its channels in order")
  func hearsOthers() async throws {
    let database = try await TestDatabase(connections: 2)
    let (events, feed) = AsyncStream.makeStream(of: Event.self)
    let listener = try PostgresListener(
      url: database.url, channels: ["heads", "Odd \"channel\""], onEvent: { feed.yield($0) })
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .listening)
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
      url: database.url, channels: ["heads"], retryDelay: .milliseconds(1),
      onEvent: { feed.yield($0) })
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .listening)
    var backend: Int32?
    // PostgreSQL shows a query a moment after its answer.
    while backend == nil {
      backend = try await database.pool.run { connection in
        let sql = """
          SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'
          """
        return try connection.query(.once(sql)).first?.int4(0)
      }
    }
    try await TestDatabase.terminate(try #require(backend), in: database.url)
    guard case .disconnected(let error) = await iterator.next() else {
      Issue.record("the loss was not told")
      return
    }
    #expect(error.kind == .connectionLost)
    #expect(await iterator.next() == .listening)
    try await notify("heads", "after", database.pool)
    #expect(await iterator.next() == .notification(channel: "heads", payload: "after"))
    await listener.close()
  }

  @Test("a listener waits for a server that is down, and can be closed meanwhile")
  func serverDown() async throws {
    let cluster = try PostgresCluster()
    let url = try cluster.createDatabase()
    try cluster.stop()
    let (events, feed) = AsyncStream.makeStream(of: Event.self)
    let patient = try PostgresListener(
      url: url, channels: ["heads"], retryDelay: .milliseconds(10),
      onEvent: { feed.yield($0) })
    let (attempts, attemptFeed) = AsyncStream.makeStream(of: Event.self)
    let closed = try PostgresListener(
      url: url, channels: ["heads"], retryDelay: .seconds(3600),
      onEvent: { attemptFeed.yield($0) })
    for await event in attempts {
      guard case .disconnected(let error) = event else { continue }
      #expect(error.kind == .connectionFailed)
      break
    }
    await closed.close()
    try cluster.start()
    for await event in events where event == .listening { break }
    await patient.close()
  }

  private func notify(_ channel: String, _ payload: String, _ pool: PostgresPool) async throws {
    try await pool.run { connection in
      _ = try connection.query(
        .once("SELECT pg_notify($1, $2)"), [.text(channel), .text(payload)])
    }
  }
}
