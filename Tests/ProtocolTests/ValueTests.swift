import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Values in JSON", .hangLimit)
struct ValueTests {
  /// One row of Protocol/fixtures/values.json: a value in two notations.
  struct Row {
    var name = ""
    var type = ""
    /// In the notation of the class: decimal, or hexadecimal bits or bytes.
    var meaning = ""
    var json: [UInt8] = []

    var value: Value? {
      switch type {
      case "null": return .null
      case "integer": return Int64(meaning).map { .integer($0) }
      case "real": return UInt64(meaning, radix: 16).map { .real(Double(bitPattern: $0)) }
      case "text": return .text(String(decoding: hexBytes(meaning), as: UTF8.self))
      case "blob": return .blob(hexBytes(meaning))
      default: return nil
      }
    }
  }

  @Test("every value of the table has exactly one encoding and is read back unchanged")
  func table() throws {
    let rows = try Self.rows()
    #expect(rows.count > 40)
    for row in rows {
      let value = try #require(row.value, "\(row.name)")
      var writer = JSONWriter()
      writer.value(value)
      #expect(writer.finish() == row.json, "\(row.name)")
      let read = try decode(row.json) { (reader) throws(MalformedMessage) in
        try reader.value(limits: .standard)
      }
      #expect(read == value, "\(row.name)")
    }
  }

  @Test("no two values of the table are equal, even if their numbers are")
  func apart() throws {
    let values = try Self.rows().compactMap(\.value)
    #expect(Set(values).count == values.count)
    #expect(Value.integer(1) != .real(1) && Value.real(0) != .real(-0.0))
    #expect(Value.text("é") != .text("e\u{301}"))
    #expect(Value.text("") != .blob([]) && Value.text("") != .null)
  }

  @Test("a writer can choose another form of the same number")
  func otherForms() throws {
    let table: [(String, Value)] = [
      (#"{"int":"1"}"#, 1), (#"{"int":"-0"}"#, 0), (#"{"int":"007"}"#, 7), ("-0", 0),
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
      ("1.0", 1.0), ("-0.0", -0.0), ("1e2", 100.0), ("1E-2", 0.01), ("1e-400", 0.0),
      (#"{"real":"0.1"}"#, 0.1), (#"{"real":"1e3"}"#, 1000.0), (#"{"real":"-1E+3"}"#, -1000.0),
      (#"{ "blob" : "AA==" }"#, .blob([0])), (#"{"\u0069nt":"5"}"#, 5), (#""\u0061\/""#, "a/"),
      (#""\ud83d\ude00""#, "😀"), (#""\uD83D\uDE00""#, "😀"), (#""\b\f""#, "\u{8}\u{c}"),
    ]
    for (json, value) in table {
      let read = try? decode(Array(json.utf8)) { (reader) throws(MalformedMessage) in
        try reader.value(limits: .standard)
      }
      #expect(read == value, "\(json)")
    }
  }

  @Test(
    "random values of every class are read back unchanged", arguments: 1...20 as ClosedRange<UInt64>
  )
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let value = Self.value(&random)
      var writer = JSONWriter()
      writer.value(value)
      let read = try decode(writer.finish()) { (reader) throws(MalformedMessage) in
        try reader.value(limits: .standard)
      }
      #expect(read == value)
    }
  }

  static func value(_ random: inout SeededGenerator) -> Value {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: return .null
    case 1: return .integer(Int64(bitPattern: random.next() >> UInt64(random.next() % 64)))
    case 2:
      let real = Double(bitPattern: random.next())
      return .real(real.isNaN ? 0.5 : random.chance(1, of: 3) ? real.rounded() : real)
    case 3:
      let scalars = (0..<Int(random.next() % 12)).compactMap { _ in
        Unicode.Scalar(UInt32(random.next() >> (43 + random.next() % 16)))
      }
      var text = String.UnicodeScalarView()
      text.append(contentsOf: scalars)
      return .text(String(text))
    default: return .blob((0..<Int(random.next() % 40)).map { _ in UInt8(random.next() & 0xFF) })
    }
  }

  static func rows() throws -> [Row] {
    let bytes = try ProjectFiles.fixture("values")
    var rows: [Row] = []
    try bytes.withUnsafeBytes { buffer in
      var reader = JSONReader(buffer)
      try reader.object { (_, reader) throws(MalformedMessage) in
        try reader.array { (reader) throws(MalformedMessage) in
          var row = Row()
          try reader.object { (key, reader) throws(MalformedMessage) in
            switch key {
            case "name": row.name = try reader.string()
            case "class": row.type = try reader.string()
            case "json": row.json = Array(try reader.skip())
            default: row.meaning = try reader.string()
            }
          }
          rows.append(row)
        }
      }
      try reader.end()
    }
    return rows
  }
}

/// Returns the bytes for pairs of hexadecimal digits.
private func hexBytes(_ text: String) -> [UInt8] {
  let digits = text.utf8.compactMap(hexValue)
  return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
