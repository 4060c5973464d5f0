import FerryPostgres
import FerryTestSupport
import Testing

/// Easily confused names of channels and values of settings, in a real server.
@Suite("Random names in PostgreSQL", .hangLimit)
struct PostgresNameTests {
  private static let hostile = [
    "\u{600}\"; DROP TABLE canary; --", "\u{600}'; DROP TABLE canary; --",
    "\\'; DROP TABLE canary; --",
    "$$; DROP TABLE canary; --", "a\"b\"\"c", "e\u{301}", "\u{E9}", "K", "\u{212A}", "--", "/*",
    "*/",
    "\u{110BD}\"\u{301}", "\u{D7FF}\u{E000}", "a b", ";", "\n",
  ]

  private static func connection(
    _ settings: PostgresSettings = .none
  ) throws -> PostgresConnection {
    try PostgresConnection(url: try PostgresCluster.shared().createDatabase(), settings: settings)
  }

  @Test("a session has its settings byte for byte, and no value runs SQL")
  func settings() throws {
    for value in Self.hostile {
      let connection = try Self.connection([("ferry.test", value), ("jit", "off")])
      try connection.execute("CREATE TABLE canary()")
      try connection.apply([("ferry.test", value + "'")])
      let read = try connection.query(
        .once("SELECT current_setting('ferry.test'), to_regclass('canary')::text"))[0]
      #expect(Array(try read.text(0).utf8) == Array((value + "'").utf8), "\(value)")
      #expect(try read.text(1) == "canary")
    }
  }

  @Test("a listener has its channels byte for byte")
  func channels() async throws {
    let database = try await TestDatabase()
    let (events, feed) = AsyncStream.makeStream(of: PostgresListener.Event.self)
    let channels = Set(Self.hostile.indices.map { "\($0)\(Self.hostile[$0])" })
    let listener = try PostgresListener(
      url: database.url, channels: PostgresChannels(channels), onEvent: { feed.yield($0) })
    var iterator = events.makeAsyncIterator()
    guard case .listening(let begun) = await iterator.next() else {
      Issue.record("the listener does not listen")
      return
    }
    #expect(Set(begun) == channels)
    for channel in begun {
      try await database.pool.run { connection in
        _ = try connection.query(.once("SELECT pg_notify($1, 'x')"), [.text(channel)])
      }
      let event = await iterator.next()
      #expect(event == .notification(channel: channel, payload: "x"), "\(channel)")
    }
    await listener.close()
  }

  @Test("SQL with U+0000 is refused before it is cut there")
  func zero() throws {
    let connection = try Self.connection()
    let sql = "CREATE TABLE cut(n int)\0 junk"
    #expect(throws: PostgresError.self) { try connection.execute(sql) }
    #expect(throws: PostgresError.self) { try connection.execute(single: sql) }
    #expect(try connection.query(.once("SELECT to_regclass('cut') IS NULL"))[0].bool(0))
  }

  @Test("one statement is one: nothing runs of two")
  func single() throws {
    let connection = try Self.connection()
    #expect(throws: PostgresError.self) {
      try connection.execute(single: "CREATE TABLE one(); CREATE TABLE two()")
    }
    #expect(try connection.query(.once("SELECT to_regclass('one') IS NULL"))[0].bool(0))
    try connection.execute(single: "CREATE TABLE one()")
  }
}
