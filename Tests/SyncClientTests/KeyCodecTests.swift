import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Identifiers of keys", .hangLimit)
struct KeyCodecTests {
  private static let id: [UInt8] = Array(0..<16)
  private static let pairs: [(key: [Value], record: String)] = [
    ([.integer(42)], "42"),
    ([.integer(-1)], "-1"),
    ([.integer(.min)], "-9223372036854775808"),
    ([.blob(id)], "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ([.blob([1])], #"[{"blob":"AQ=="}]"#),
    ([.text("2026-01-01")], #"["2026-01-01"]"#),
    ([.text("42")], #"["42"]"#),
    ([.text("a"), .integer(7)], #"["a",7]"#),
    ([.text(#"a","b"#), .text("")], #"["a\",\"b",""]"#),
    ([.integer(.max), .blob([])], #"[{"int":"9223372036854775807"},{"blob":""}]"#),
  ]

  @Test("each key has one identifier, which gives the key back", arguments: Self.pairs)
  func identifier(key: [Value], record: String) {
    #expect(KeyCodec.record(for: key) == record)
    #expect(KeyCodec.key(of: record, columns: key.count) == key)
  }

  @Test(
    "a numeric column keeps a text as it is unless SQLite takes it for a number",
    arguments: ["7", " 7\r\n", "7\n\r\n", "-1.5e3", "٧", "7\u{301}", "7a", "", "\u{A0}7"])
  func numericTexts(_ text: String) throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute("CREATE TABLE t(k NUMERIC)")
    try connection.run("INSERT INTO t VALUES (?)", text)
    let kept = try connection.first("SELECT typeof(k) FROM t") { $0.text(0) }
    #expect(KeyAffinity.numeric.keeps(.text(text)) == (kept == "text"))
  }

  @Test(
    "a key with NULL, a real number or too many bytes has no identifier",
    arguments: [
      [.null], [.real(1)], [.integer(1), .null], [.text(String(repeating: "a", count: 512))],
    ] as [[Value]])
  func none(key: [Value]) { #expect(KeyCodec.record(for: key) == nil) }

  @Test(
    "another spelling of a key is no identifier",
    arguments: [
      ("042", 1), ("+42", 1), ("", 1), ("abc", 1), ("[42]", 1), (#"["a", 7]"#, 2), ("[7]", 2),
      ("[1,2,3]", 2), ("[1,2", 2), (#"[1,{"int":"2"}]"#, 2), ("[1,null]", 2), ("[1,2.5]", 2),
      ("00010203-0405-0607-0809-0A0B0C0D0E0F", 1), ("7", 2),
      (#"[{"blob":"AAECAwQFBgcICQoLDA0ODw=="}]"#, 1),
    ] as [(String, Int)])
  func spellings(record: String, count: Int) {
    #expect(KeyCodec.key(of: record, columns: count) == nil)
  }
}

@Suite("Numbers of records", .hangLimit)
struct NumberedRecordTests {
  private func fresh() -> String { "new" }

  @Test("a number belongs to its record while the row exists, and until its transaction ends")
  func current() {
    let here = NumberedRecord(record: "r", transaction: nil)
    #expect(NumberedRecord.inserted(here, in: 7, fresh: fresh) == here)
    let released = here.deleted(in: 7)
    #expect(NumberedRecord.inserted(released, in: 7, fresh: fresh) == here)
    #expect(NumberedRecord.referred(released, in: 7, fresh: fresh) == released)
  }

  @Test(
    "a number that was released is chosen again for its record, by the transaction that inserts the row"
  )
  func chosen() {
    let here = NumberedRecord(record: "r", transaction: nil)
    #expect(NumberedRecord.chosen(here, for: "r", in: 8) == here)
    for known in [nil, here.deleted(in: 7)] {
      let chosen = NumberedRecord.chosen(known, for: "r", in: NumberedRecord.pull)
      #expect(NumberedRecord.inserted(chosen, in: NumberedRecord.pull, fresh: fresh) == here)
    }
  }

  @Test("a later row with the same number is another record")
  func later() {
    let released = NumberedRecord(record: "r", transaction: 7)
    let other = NumberedRecord(record: "new", transaction: nil)
    #expect(NumberedRecord.inserted(released, in: 8, fresh: fresh) == other)
    #expect(NumberedRecord.inserted(nil, in: 8, fresh: fresh) == other)
  }

  @Test("a reference reserves a number for the parent that comes later in its transaction")
  func reserved() {
    let reserved = NumberedRecord.referred(nil, in: 8, fresh: fresh)
    #expect(reserved == NumberedRecord(record: "new", transaction: 8))
    #expect(NumberedRecord.inserted(reserved, in: 8, fresh: { "other" }).record == "new")
    #expect(NumberedRecord.referred(reserved, in: 9, fresh: { "other" }).record == "other")
  }
}
