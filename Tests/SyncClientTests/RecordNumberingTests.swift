import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

/// Mapped tables whose records another database counts.
@Suite("Numbers by another database", .hangLimit)
struct RecordNumberingTests {
  /// A database that counts orders and nothing else.
  private final class Counter: RecordNumbering, Sendable {
    struct State {
      var last: Int64 = 100
      var requests: [[Name]] = []
      var fails = false
    }

    let state = Mutex(State())

    func counts(_ table: Name) -> Bool { table == "orders" }
    func record(of number: Int64, in table: Name) -> String { "\(table)-\(number)" }

    func numbers(of records: [Name], in table: Name, isTaken: Bool) throws -> [Int64] {
      try state.withLock { state in
        if state.fails { throw CancellationError() }
        state.requests.append(records)
        return records.map { record in
          // The first answer for this record is always a bad one.
          if record == "taken", !isTaken { return 7 }
          state.last += 1
          return state.last
        }
      }
    }

    var requests: [[Name]] { state.withLock { $0.requests } }
  }

  private let maker = PageMaker()
  private let counter = Counter()

  private func tracked() throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE orders(id INTEGER PRIMARY KEY, name TEXT, follows INT REFERENCES orders);
      CREATE TABLE lines(id INTEGER PRIMARY KEY, order_id INT REFERENCES orders);
      CREATE TABLE tags(order_id INT REFERENCES orders, tag TEXT, PRIMARY KEY(order_id, tag))
      """)
    replica.file.capture.numbered = NumberedList(counter)
    try replica.file.track(["orders", "lines", "tags"])
    return replica
  }

  @Test("one request numbers the records of a list, and a taken number is replaced")
  func list() throws {
    let replica = try tracked()
    try replica.run("INSERT INTO orders(id, name) VALUES (7, 'own')")
    #expect(try replica.pending.map(\.key.record) == ["orders-7"])
    try replica.apply([
      maker.change(1, "lines", "l", [Column("order_id", "b")]),
      maker.change(2, "orders", "a", [Column("name", "a"), Column("follows", "taken")]),
      maker.change(3, "orders", "b", [Column("name", "b")]),
      maker.change(4, "orders", "taken", [Column("name", "t")]),
    ])
    #expect(
      try replica.rows("SELECT id, name, follows FROM orders ORDER BY name") == [
        [102, "a", 103], [101, "b", .null], [7, "own", .null], [103, "t", .null],
      ])
    // The lines are counted here.
    #expect(try replica.rows("SELECT * FROM lines") == [[1, 101]])
    #expect(counter.requests.map(Set.init) == [["a", "b", "taken"], ["taken"]])
    #expect(counter.requests[0].count == 3)
  }

  @Test("without the other database, nothing is applied, and no record is to blame")
  func failure() throws {
    let replica = try tracked()
    counter.state.withLock { $0.fails = true }
    let changes = [maker.change(1, "orders", "a", [Column("name", "a")])]
    let error = #expect(throws: (any Error).self) { try replica.apply(changes) }
    #expect("\(try #require(error))".contains("numbers of the table orders"))
    #expect(try replica.file.waiting.oldest(9).isEmpty)
    counter.state.withLock { $0.fails = false }
    try replica.apply(changes)
    #expect(try replica.rows("SELECT id FROM orders") == [[101]])
  }

  @Test("another number changes the row and all references, and nothing for the space")
  func renumbered() throws {
    let replica = try tracked()
    try replica.apply([
      maker.change(1, "orders", "a", [Column("name", "a"), Column("follows", "a")]),
      maker.change(2, "lines", "l", [Column("order_id", "a")]),
      maker.change(3, "tags", #"["a","x"]"#, []),
    ])
    var former: [Int64] = []
    try replica.file.write { _ in
      try Renumbering(file: replica.file).apply([
        (key: RecordKey(table: "orders", record: "a"), number: 500),
        (key: RecordKey(table: "orders", record: "absent"), number: 501),
      ]) { former.append($1) }
    }
    #expect(former == [101])
    #expect(try replica.rows("SELECT * FROM orders") == [[500, "a", 500]])
    #expect(try replica.rows("SELECT order_id FROM lines") == [[500]])
    #expect(try replica.rows("SELECT * FROM tags") == [[500, "x"]])
    #expect(try replica.pending.isEmpty)
    // The former number is free for another row.
    try replica.run("INSERT INTO orders(id, name) VALUES (101, 'program')")
    #expect(try replica.pending.map(\.key.record) == ["orders-101"])
    try replica.apply([maker.deletion(4, "tags", #"["a","x"]"#)])
    #expect(try replica.rows("SELECT * FROM tags").isEmpty)
  }
}
