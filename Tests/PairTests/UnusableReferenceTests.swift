import Ferry
import FerryTestSupport
import Testing

/// Values that another device's foreign key refers to, and that can be no record's identifier.
@Suite("Foreign keys with unusable values", .hangLimit)
struct UnusableReferenceTests {
  static let values = [
    "", String(repeating: "x", count: 513), "a\u{0}b", "\u{0}",
    String(repeating: "\u{301}", count: 300),
  ]

  /// The first device has no foreign key, the second one has one.
  private func devices(_ server: Server) async throws -> (plain: Device, bound: Device) {
    (
      try await .joined(
        server.url, schema: "CREATE TABLE task(id TEXT PRIMARY KEY, list TEXT)", tracking: ["task"]),
      try await .joined(
        server.url,
        schema: """
          CREATE TABLE list(id TEXT PRIMARY KEY, name TEXT);
          CREATE TABLE task(id TEXT PRIMARY KEY, list TEXT REFERENCES list(id))
          """, tracking: ["list", "task"])
    )
  }

  @Test(
    "one such value stops no sync: the row waits until its author corrects it", arguments: values)
  func waits(value: String) async throws {
    let server = try await Server.start()
    let (plain, bound) = try await devices(server)
    try await plain.write("INSERT INTO task VALUES ('t1', ?), ('t2', NULL)", [.text(value)])
    try await plain.exchange()
    try await bound.write("INSERT INTO list VALUES ('mine', 'l')")
    for _ in 0..<2 { #expect(try await bound.open().sync().refused == 1) }
    #expect(try await bound.rows("SELECT id FROM task") == [["t2"]])
    #expect(try await bound.status().pending == 0)
    #expect(try await bound.open().verify(repair: true).isEqual)
    try await plain.write("UPDATE task SET list = 'mine' WHERE id = 't1'")
    try await plain.exchange()
    try await bound.exchange()
    #expect(
      try await bound.rows("SELECT id, list FROM task ORDER BY id") == [
        ["t1", "mine"], ["t2", .null],
      ])
    #expect(try await bound.status().deferred == 0)
  }

  @Test("a file with such an entry heals by itself")
  func heals() async throws {
    let server = try await Server.start()
    let (plain, bound) = try await devices(server)
    try await plain.write("INSERT INTO task VALUES ('t1', NULL)")
    try await plain.exchange()
    try await bound.tamper(
      "INSERT INTO ferry_refresh(tbl, record) VALUES ('list', ''), ('', 'a'), ('task', 't1')")
    try await bound.exchange()
    #expect(try await bound.rows("SELECT id FROM task") == [["t1"]])
    #expect(try await bound.value("SELECT count(*) FROM ferry_refresh") == 0)
  }
}
