import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Identifiers and names", .hangLimit)
struct IdentifierTests {
  @Test("a UUID has RFC 9562's version 7 layout")
  func layout() {
    let time = HybridTimestamp(milliseconds: 0x0192_F0C1_2233, counter: 0xABCD)
    let id = UniqueID(timestamp: time, random: 0xFFFF_FFFF_FFFF_FFFF)
    #expect(id.description == "0192f0c1-2233-7abc-b7ff-ffffffffffff")
    let least = UniqueID(timestamp: .zero, random: 0)
    #expect(least.description == "00000000-0000-7000-8000-000000000000")
    #expect(id.bytes[6] >> 4 == 7, "the version")
    #expect(id.bytes[8] >> 6 == 0b10, "the variant")
  }

  @Test("a UUID contains the timestamp that it was made with")
  func timestamps() {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<1_000 {
      let time = HybridTimestamp(rawValue: random.next())
      #expect(UniqueID(timestamp: time, random: random.next()).timestamp == time)
    }
  }

  @Test("identifiers of one clock sort as its timestamps, as numbers, as text and as bytes")
  func order() {
    var random = SeededGenerator(seed: 2)
    var clock = HybridClock()
    var wall: Int64 = 1_760_000_000_000
    var last: UniqueID?
    for _ in 0..<2_000 {
      wall += Int64.random(in: -3...3, using: &random)
      let id = UniqueID(timestamp: clock.tick(wall: wall), random: random.next())
      if let last {
        #expect(last < id)
        #expect(last.description < id.description)
        #expect(last.bytes.lexicographicallyPrecedes(id.bytes))
      }
      last = id
    }
  }

  @Test("a UUID is read back from its text and bytes, in either case")
  func text() {
    var random = SeededGenerator(seed: 3)
    for _ in 0..<500 {
      let id = UniqueID(high: random.next(), low: random.next())
      #expect(UniqueID(id.description) == id)
      #expect(UniqueID(id.description.uppercased()) == id)
      #expect(id.bytes.withUnsafeBytes { UniqueID(bytes: $0) } == id)
    }
  }

  @Test("a text with one invalid byte at any place is not a UUID")
  func digits() {
    let id = UniqueID(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210)
    let text = Array(id.description.utf8)
    for place in text.indices {
      for byte in UInt8.min...UInt8.max {
        var changed = text
        changed[place] = byte
        let scalar = Unicode.Scalar(byte)
        let isDigit = scalar.properties.isASCIIHexDigit
        let isHyphen = text[place] == 0x2D
        let read = changed.withUnsafeBufferPointer { UniqueID(utf8: $0) }
        guard isHyphen ? byte == 0x2D : isDigit else {
          #expect(read == nil, "\(byte) at \(place)")
          continue
        }
        let expected = String(decoding: changed, as: UTF8.self).lowercased()
        #expect(read?.description == expected)
        let isLower = expected.utf8.elementsEqual(changed)
        #expect((changed.withUnsafeBytes { UniqueID(lowercase: $0) } != nil) == isLower)
      }
    }
  }

  @Test(
    "a text or byte string that is not a UUID is refused",
    arguments: [
      "", "0192f0c1-2233-7abc-b7ff-fffffffffff", "0192f0c1-2233-7abc-b7ff-ffffffffffff0",
      "0192f0c122337abcb7ffffffffffffff", "0192f0c1_2233-7abc-b7ff-ffffffffffff",
      "{192f0c1-2233-7abc-b7ff-fffffffffff}", "0192f0c1-2233-7abc-b7ff-fffffffffffg",
      "0192f0c1-2233-7abc-b7ff-ffffffffff\u{e9}",
    ])
  func notUUIDs(text: String) { #expect(UniqueID(text) == nil) }

  @Test("a space's name has 1 to 63 safe characters and begins with a letter or digit")
  func spaceNames() {
    let good = ["a", "7", "Team-7.notes_x", String(repeating: "z", count: 63)]
    let bad = [
      "", ".a", "-a", "_a", "a b", "a/b", "ä", "a%20", "a\n", "..", "a\u{0}",
      String(repeating: "z", count: 64),
    ]
    for name in good { #expect(SpaceName(name)?.value == name) }
    for name in bad { #expect(SpaceName(name) == nil, "\(name)") }
  }

  @Test("a cursor is read back, and received is never behind applied")
  func cursors() {
    let cursor = Cursor(epoch: Epoch(0x5F3C), applied: 7, received: 12)
    #expect(cursor.description == "0000000000005f3c.7.12")
    #expect(Cursor(cursor.description) == cursor)
    #expect(Cursor(epoch: Epoch(1), applied: 9).received == 9)
    let bad = [
      "", "7", "0000000000005f3c.7", "0000000000005f3c.7.6", "0000000000005f3c.-1.6", "5f3c.7.12",
      "0000000000005f3c.7.12.13", "0000000000005f3g.7.12", "0000000000005f3c.7.",
      "0000000000005f3c.9223372036854775808.9223372036854775808", "+000000000005f3c.7.12",
    ]
    for text in bad { #expect(Cursor(text) == nil, "\(text)") }
    let anchor = Cursor.Anchor(
      head: 12, operation: OperationID(UniqueID(high: 1, low: 2)), historyHash: 0xAB)
    let list = Cursor(epoch: Epoch(0x5F3C), applied: 0, received: 7, anchor: anchor, began: 9)
    #expect(list.description.hasSuffix(".00000000000000ab.9"))
    #expect(Cursor(list.description) == list)
    for end in [".", ".-1", ".x", ".9.9"] {
      #expect(Cursor(list.description.dropLast(2) + end) == nil, "\(end)")
    }
    // Only beside a whole anchor there is a place for it.
    #expect(Cursor(epoch: Epoch(1), applied: 0, received: 7, began: 9).began == nil)
  }

  @Test("identifiers that look the same but differ in bytes are different records")
  func recordKeys() {
    let composed = RecordKey(table: "t", record: "\u{e9}")
    let decomposed = RecordKey(table: "t", record: "e\u{301}")
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    #expect(decomposed < composed, "in the order of their bytes")
    #expect(!(composed < composed))
    #expect(RecordKey(table: "a", record: "z") < RecordKey(table: "b", record: "a"))
  }

  @Test("names are 1 to 128 bytes without control characters")
  func names() {
    let limits = Limits.standard
    for name in ["a", "Überschrift", "two words", String(repeating: "x", count: 128)] {
      #expect(NameRule.fault(in: Name(name), limits: limits) == nil)
    }
    for name in ["", "a\u{0}", "a\n", "\u{7f}", String(repeating: "x", count: 129)] {
      #expect(NameRule.fault(in: Name(name), limits: limits) != nil)
    }
  }

  @Test("tables of SQLite and of Ferry itself are reserved, in any case")
  func reserved() {
    for name in ["ferry_missions", "FERRY_x", "sqlite_sequence", "Sqlite_"] {
      #expect(NameRule.isReserved(table: Name(name)))
    }
    for name in ["ferry", "ferrytales", "my_ferry_", "sqlite"] {
      #expect(!NameRule.isReserved(table: Name(name)))
    }
  }

  @Test("roles are ordered: reader, writer, admin")
  func roles() { #expect(Role.allCases.sorted() == [.reader, .writer, .admin]) }

  @Test("a record's identifier contains the integer that its device has given to it")
  func numbered() throws {
    for number in [1, 10_248, UInt32.max] {
      let id = UniqueID(milliseconds: 1_800_000_000_000, random: .max, number: number)
      #expect(id.number == Int64(number))
      #expect(UniqueID("\(id)") == id)
      #expect(id.containsTime && id.timestamp.milliseconds == 1_800_000_000_000)
      #expect("\(id)".utf8.count == 36 && "\(id)".dropFirst(14).first == "8")
    }
    #expect(UniqueID(milliseconds: 1, random: 0, number: 0).number == nil)
    #expect(UniqueID(timestamp: .zero, random: 7).number == nil)
  }
}
