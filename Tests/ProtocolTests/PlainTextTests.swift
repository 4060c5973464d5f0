import FerryProtocol
import FerryTestSupport
import Testing

/// Strings are scanned eight bytes at a time, so each case is tried at each place of a word.
@Suite("Strings in JSON, at every place of a word", .hangLimit)
struct PlainTextTests {
  private static let lengths = 0...20

  @Test(
    "a string is read back unchanged, with any byte at any place of a word",
    arguments: [
      "", "\"", "\\", "\u{0}", "\u{1F}", " ", "!", "\u{7F}", "é", "\u{FFFD}", "😀", "a\u{301}",
      "\"\\", "\u{80}\"",
    ])
  func roundTrip(_ special: String) throws {
    for before in Self.lengths {
      for after in Self.lengths {
        let text =
          String(repeating: "x", count: before) + special
          + String(repeating: "~", count: after)
        var json = JSONWriter()
        json.string(text)
        let back = try decode(json.finish()) { (reader) throws(MalformedMessage) in
          try reader.string()
        }
        #expect(back.utf8.elementsEqual(text.utf8))
      }
    }
  }

  @Test(
    "invalid UTF-8 is refused at any place of a word",
    arguments: [
      [0x00], [0x0A], [0x1F], [0x80], [0xFF], [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98],
      [0xED, 0xA0, 0x80], [0xC0, 0x80],
    ] as [[UInt8]])
  func malformed(_ wrong: [UInt8]) {
    for before in Self.lengths {
      for after in Self.lengths {
        let text =
          [UInt8](repeating: 0x78, count: before) + wrong + [UInt8](repeating: 0x79, count: after)
        #expect(throws: MalformedMessage.self) {
          try decode([0x22] + text + [0x22]) { (reader) throws(MalformedMessage) in
            try reader.string()
          }
        }
        #expect(text.withUnsafeBufferPointer(isValidUTF8) == (wrong[0] < 0x80))
      }
    }
  }

  @Test("identifiers and times are written with all their digits")
  func hexadecimal() {
    let id = UniqueID(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210)
    #expect(id.description == "01234567-89ab-cdef-fedc-ba9876543210")
    #expect(HybridTimestamp(rawValue: 0x0123_4567_89AB_CDEF).description == "0123456789abcdef")
    #expect(UniqueID(high: 1, low: 2).description == "00000000-0000-0001-0000-000000000002")
  }
}
