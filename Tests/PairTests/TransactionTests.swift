import Ferry
import FerryTestSupport
import Synchronization
import Testing

/// A local transaction is seen whole elsewhere, however large, and merged if permitted.
@Suite(.serialized, .hangLimit)
struct TransactionTests {
  private static let accounts = """
    CREATE TABLE entries(id TEXT PRIMARY KEY, pair TEXT, amount INTEGER);
    CREATE TABLE totals(id TEXT PRIMARY KEY, entries INTEGER)
    """

  @Test("readers see a transaction of several packets whole or not at all")
  func largeTransaction() async throws {
    let pair = try await Pair.make()
    try await pair.one.write(Sample.notes(2_500, "note"))
    // Of the transaction's three packets, one arrives.
    let arrived = pair.proxy.trap(.answer, of: "POST ", .tell)
    let trap = pair.proxy.trap(.request, of: "POST ", skipping: 1, times: 2, .hold)
    let push = try pair.one.start("push", "--json")
    try await arrived.sprung()
    #expect(try await pair.two.exchange("pull").pulled == 0)
    #expect(try await pair.two.count() == 0)
    trap.release()
    #expect(try await push.exitStatus() == .exited(0))
    #expect(try await pair.two.exchange("pull").pulled == 2_500)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 2_500)
  }

  @Test("ten thousand edits of one record are sent as one operation")
  func mergedEdits() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'first', 0)")
    try await pair.one.exchange()
    try await pair.one.open().writeInBulk { writer in
      for number in 1...10_000 {
        try writer.transaction {
          _ = try $0.execute(
            "UPDATE notes SET n = ? WHERE id = 'a'", [.integer(Int64(number))])
        }
      }
    }
    #expect(try await pair.one.status().pending == 10_000)
    #expect(try await pair.one.exchange("push").pushed == 1)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 2)
    #expect(try await pair.two.rows() == [["a", "first", 10_000]])
  }

  @Test("a record inserted and deleted before a sync is never sent")
  func nothingLeft() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await pair.one.write("UPDATE notes SET n = 2 WHERE id = 'a'")
    try await pair.one.write("DELETE FROM notes WHERE id = 'a'")
    #expect(try await pair.one.exchange().pushed == 0)
    #expect(try await pair.one.status().pending == 0)
    #expect(try await pair.server.head() == 0)
  }

  @Test("a reader never sees a part of a transaction during a pull of 50,000 records")
  func polledPull() async throws {
    let pair = try await Pair.make(
      schema: Self.accounts, tracking: ["entries", "totals"])
    try await fill(pair.two, transactions: 51, pairs: 495)
    try await pair.two.exchange("push")
    let first = try await pull(pair.one)
    #expect(Set(first) == [View(entries: 0), View(entries: 50_490)])

    try await pair.two.write(
      """
      UPDATE entries SET amount = amount * 2 WHERE pair < '3';
      DELETE FROM entries WHERE pair IN (SELECT DISTINCT pair FROM entries WHERE pair >= '4'
        LIMIT 1000);
      UPDATE totals SET entries = (SELECT count(*) FROM entries)
      """)
    try await pair.two.exchange("push")
    let second = try await pull(pair.one)
    #expect(Set(second) == [View(entries: 50_490), View(entries: 48_490)])
    try await expectEqual([pair.one, pair.two], tables: ["entries", "totals"])
  }

  /// The content of one snapshot.
  private struct View: Hashable, Sendable {
    var entries: Int64
    /// The value of the total.
    var total: Int64
    /// Pairs that do not sum to zero, or lack a half.
    var broken: Int64 = 0

    init(entries: Int64) { (self.entries, total) = (entries, entries) }

    init(_ row: Row) {
      func number(_ name: String) -> Int64 {
        if case .integer(let value) = row[name] { value } else { 0 }
      }
      (entries, total, broken) = (number("entries"), number("total"), number("broken"))
    }
  }

  /// Writes pairs of entries that sum to zero, and the number of entries, in transactions that keep
  /// both true.
  private func fill(_ device: Device, transactions: Int, pairs: Int) async throws {
    try await device.open().writeInBulk { writer in
      for transaction in 1...transactions {
        try writer.transaction { database in
          for half in [1, -1] {
            try database.execute(
              """
              WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < \(pairs))
              INSERT INTO entries SELECT '\(half)/\(transaction)/' || i,
                (i % 9) || '/\(transaction)/' || i, \(half) * i FROM k
              """)
          }
          try database.execute(
            """
            INSERT INTO totals VALUES ('all', \(2 * pairs))
            ON CONFLICT(id) DO UPDATE SET entries = entries + excluded.entries
            """)
        }
      }
    }
  }

  /// Runs `ferry pull` and looks at the file from here: before it, all the while, and after it.
  private func pull(_ device: Device) async throws -> [View] {
    let replica = try await device.open()
    func look() async throws -> View {
      let rows = try await replica.read { database in
        try database.query(
          """
          SELECT (SELECT count(*) FROM entries) AS entries,
            (SELECT coalesce(sum(entries), 0) FROM totals) AS total,
            (SELECT count(*) FROM (SELECT 1 FROM entries GROUP BY pair
              HAVING sum(amount) <> 0 OR count(*) <> 2)) AS broken
          """)
      }
      return View(try #require(rows.first))
    }
    var views = [try await look()]
    let child = try device.start("pull", "--json")
    var hasEnded = false
    while !hasEnded {
      // One more look after the end.
      hasEnded = child.endedWith != nil
      views.append(try await look())
    }
    #expect(child.endedWith == .exited(0), "\(child.error)")
    return views
  }
}
