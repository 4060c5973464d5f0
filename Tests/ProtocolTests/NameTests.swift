import FerryTestSupport
import Testing

@testable import FerryProtocol

/// How names of tables, columns and records are compared and written into SQL (SPEC.md §2).
@Suite("Names", .hangLimit)
struct NameTests {
  /// Names, some of which Swift considers equal.
  static let lookalikes: [Name] = [
    "K", "\u{212A}", "k", "\u{E9}", "e\u{301}", "\u{C5}", "\u{212B}", "A\u{30A}", ";", "\u{37E}",
    "`", "\u{1FEF}", "\u{DF}", "\u{1E9E}", "\u{130}", "I\u{307}", "i", "a\u{200D}", "a",
    "\u{1100}\u{1161}", "\u{AC00}", "a\u{323}\u{307}", "a\u{307}\u{323}",
  ]

  @Test("names with different bytes are different, have different hashes and sort by their bytes")
  func bytes() {
    #expect(Set(Self.lookalikes).count == Self.lookalikes.count)
    for one in Self.lookalikes {
      for other in Self.lookalikes {
        let isSame = Array(one.utf8) == Array(other.utf8)
        #expect((one == other) == isSame, "\(one) \(other)")
        let precedes = one.utf8.lexicographicallyPrecedes(other.utf8)
        #expect((one < other) == precedes, "\(one) \(other)")
      }
    }
    #expect(Name("") < "a" && Name("a") < "aa" && !(Name("a") < "a") && Name("") == "")
  }

  @Test("only ASCII letters are case-folded, as in SQLite")
  func folding() {
    #expect(Name("S\u{212A}U_Id").folded == "s\u{212A}u_id")
    #expect(Name("\u{C9}\u{130}\u{1E9E}").folded == "\u{C9}\u{130}\u{1E9E}")
    #expect(Name("sku").folded == "sku" && Name("SkU").folded == "sku")
  }

  @Test("a name's quotes are doubled, also before a combining mark")
  func quoting() {
    let attack: Name = "x\"\u{301});UPDATE ferry_replica SET server='http://evil.example';--"
    #expect(
      Array(quoted(attack).utf8)
        == Array(
          "\"x\"\"\u{301});UPDATE ferry_replica SET server='http://evil.example';--\"".utf8))
    #expect(quoted("plain") == "\"plain\"" && quoted("\"") == "\"\"\"\"")
    #expect(
      Array(quoted(literal: "it'\u{301}s").utf8) == Array("'it''\u{301}s'".utf8))
  }

  @Test("a column with a quote and a combining mark stays one name in a predicate's SQL and text")
  func predicates() throws {
    let predicate = RecordPredicate.compare(.column("x\"\u{301}y"), .equal, 1)
    let sql = predicate.sql(table: "t\"\u{301}", key: "id")
    #expect(sql.text.utf8.count { $0 == 0x22 } == 8)
    #expect(try RecordPredicate(predicate.text(key: "id"), key: "id") == predicate)
    #expect(predicate.matches(record: "r", columns: [Column("x\"\u{301}y", 1)]))
    #expect(
      !RecordPredicate.isNotNull(.column("\u{212A}")).matches(
        record: "r", columns: [Column("K", 1)]))
  }

  @Test("reserved tables are found in any case, with anything after the prefix")
  func reserved() {
    for name: Name in ["Ferry_\u{301}x", "fErRy_", "SQLite_\u{200D}", "sQLITE_x"] {
      #expect(NameRule.isReserved(table: name), "\(name)")
    }
    for name: Name in ["ferry", "\u{1E9}ferry_", "ferr\u{FF59}_x", "\u{17F}qlite_x"] {
      #expect(!NameRule.isReserved(table: name), "\(name)")
    }
  }

  @Test("a message can contain two names that are equal as Swift strings")
  func messages() throws {
    let time = HybridTimestamp(milliseconds: 1)
    let operation = SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: 1)),
      key: RecordKey(table: "t", record: "r"), kind: .update, time: time,
      columns: [Column("K", 1), Column("\u{212A}", 2)], columnTimes: ["K": time, "\u{212A}": time],
      increments: ["K", "\u{212A}"])
    let packet = Packet(
      device: DeviceID(UniqueID(high: 1, low: 1)), dependency: nil, operations: [operation])
    #expect(try Packet(decoding: packet.encoded(), limits: .standard) == packet)
    let text = """
      {"tables":{"K":{"unique":[["K","\u{212A}"]],"columns":{"K":"max","\u{212A}":"min"}},"\u{212A}":{}}}
      """
    let schema = try SpaceSchema(json: text)
    #expect(schema.tables.count == 2 && schema.tables["K"]?.columns.count == 2)
    #expect(schema.policy(of: "\u{212A}", in: "K") == .min)
    #expect(try SpaceSchema(decoding: schema.encoded()) == schema)
  }

  @Test("a change that breaks a rule is reported with its record, and the others are read")
  func unreadable() throws {
    let stamp = "\"time\":\"0000000000010000\",\"device\":\"00000000-0000-0000-0000-000000000001\""
    func change(_ sequence: Int, _ table: String, _ record: String, _ data: String) -> String {
      "{\"sequence\":\"\(sequence)\",\"table\":\(table),\"record\":\(record),\"writes\":"
        + "[{\"sequence\":\"\(sequence)\",\(stamp),\"kind\":\"insert\",\"data\":{\(data)}}]}"
    }
    let long = String(repeating: "x", count: 129)
    let changes = [
      change(1, "\"t\"", "\"a\"", "\"v\":1"), change(2, "\"t\"", "\"b\"", "\"\(long)\":1"),
      change(3, "\"\\u0001\"", "\"c\"", "\"v\":1"), change(4, "\"t\"", "\"d\\u0000\"", "\"v\":1"),
      change(5, "\"t\"", "\"e\"", "\"v\":1,\"v\":2"), change(6, "\"t\"", "7", "\"v\":1"),
      change(7, "\"t\"", "\"f\"", "\"v\":true"), change(8, "\"t\"", "\"g\"", "\"v\":1"),
    ]
    let page = """
      {"epoch":"0000000000000001","head":"8","cursor":"\(Cursor(epoch: Epoch(1), applied: 8))",\
      "more":false,"applied":null,"time":1,"count":8,"changes":[\(changes.joined(separator: ","))]}
      """
    var (read, faults): ([Name], [UnreadableChange]) = ([], [])
    let head = try Array(page.utf8).withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: .standard) {
        read.append($0.key.record)
      } unreadable: {
        faults.append($0)
      }
    }
    #expect(head.count == 8 && read == ["a", "g"])
    #expect(faults.map(\.key?.record) == ["b", "c", "d\u{0}", "e", nil, "f"])
    #expect(faults.allSatisfy { !$0.reason.isEmpty && !$0.writes.isEmpty })
    #expect(throws: MalformedMessage.self) {
      try Array(page.utf8).withUnsafeBytes { try PageReader.read($0, limits: .standard) { _ in } }
    }
    // Damage on the way is no change that breaks a rule: the page is requested again.
    let bytes = Array(page.utf8)
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] = 0xFF
      #expect(throws: MalformedMessage.self, "byte \(index)") {
        try damaged.withUnsafeBytes {
          try PageReader.read($0, limits: .standard) { _ in
          } unreadable: { _ in
          }
        }
      }
    }
  }
}
