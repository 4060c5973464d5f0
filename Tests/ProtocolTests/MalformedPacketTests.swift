import FerryProtocol
import FerryTestSupport
import Testing

/// Every way in which a packet can be wrong, each with the reason reported to the sender.
@Suite("Malformed packets", .hangLimit)
struct MalformedPacketTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let name: String
    let bytes: [UInt8]
    let reason: String
    var limits = Limits.standard

    var testDescription: String { name }

    init(_ name: String, _ json: String, _ reason: String, limits: Limits = .standard) {
      self.init(name, Array(json.utf8), reason, limits: limits)
    }

    init(_ name: String, _ bytes: [UInt8], _ reason: String, limits: Limits = .standard) {
      (self.name, self.bytes, self.reason, self.limits) = (name, bytes, reason, limits)
    }
  }

  static let device = "0199c306-6400-7000-800a-11ce00000001"
  static let id = "0199c82c-c001-7000-800a-000000000001"

  /// Returns a packet of one operation. Each part is used as it is given.
  static func packet(_ operation: String, head: String = "") -> String {
    "{\"device\":\"\(device)\",\(head)\"operations\":[\(operation)]}"
  }

  static func operation(
    id: String = id, table: String = "\"t\"", record: String = "\"r\"",
    kind: String = "\"insert\"", time: String = "\"0199c82cc0010000\"", rest: String
  ) -> String {
    "{\"id\":\"\(id)\",\"table\":\(table),\"record\":\(record),\"kind\":\(kind),\"time\":\(time)"
      + "\(rest)}"
  }

  /// Returns a packet whose one column has the value `json`.
  static func value(_ json: String) -> String {
    packet(operation(rest: ",\"data\":{\"a\":\(json)}"))
  }

  static func limits(_ set: (inout Limits) -> Void) -> Limits {
    var limits = Limits.standard
    set(&limits)
    return limits
  }

  @Test(
    "each malformed packet is refused with its reason",
    arguments: structure + operations + batches + values + sizes + policies)
  func refused(row: Case) {
    do {
      let packet = try Packet(decoding: row.bytes, limits: row.limits)
      Issue.record("accepted: \(packet)")
    } catch {
      #expect(error.reason.contains(row.reason), "\(error)")
    }
  }

  /// Returns a packet of one batch.
  static func batch(_ rest: String) -> String {
    packet(
      "{\"id\":\"\(id)\",\"table\":\"t\",\"kind\":\"batch\",\"time\":\"0199c82cc0010000\"\(rest)}")
  }

  static let batches: [Case] = [
    Case(
      "an operation with the identifier of an effect",
      packet(operation(id: "0199c82c-c001-8000-800a-000000000001", rest: ",\"data\":{}")),
      "a UUID of version 8"),
    Case("a batch without predicate", batch(",\"data\":{\"a\":1}"), "a predicate in \"where\""),
    Case("a batch without effect", batch(",\"where\":[\"always\"]"), "columns of \"data\""),
    Case("a batch of no columns", batch(",\"where\":[\"always\"],\"data\":{}"), "of \"data\""),
    Case(
      "a batch that sets and deletes",
      batch(",\"where\":[\"always\"],\"effect\":\"delete\",\"data\":{\"a\":1}"), "of \"data\""),
    Case(
      "a batch on a record",
      batch(",\"record\":\"r\",\"where\":[\"always\"],\"effect\":\"delete\""), "names no record"),
    Case(
      "a batch with times",
      batch(
        ",\"where\":[\"always\"],\"data\":{\"a\":1},\"times\":{\"a\":\"0199c82cc0000000\"}"),
      "no times of their own"),
    Case(
      "another effect", batch(",\"where\":[\"always\"],\"effect\":\"insert\""), "set or delete"),
    Case("two predicates", batch(",\"where\":[\"always\"],\"where\":[\"always\"]"), "duplicate"),
    Case("a predicate that is none", batch(",\"where\":\"a = 1\""), "an array was expected"),
    Case(
      "an update with a predicate",
      packet(
        operation(kind: "\"update\"", rest: ",\"data\":{\"a\":1},\"where\":[\"always\"]")),
      "only a batch"),
  ]

  static let structure: [Case] = [
    Case("nothing", "", "ends too early"),
    Case("not JSON", "device", "an object was expected"),
    Case("an array", "[]", "an object was expected"),
    Case("no members", "{}", "names no device"),
    Case("no operations", "{\"device\":\"\(device)\"}", "has no operations"),
    Case("an empty list", packet(""), "has no operations"),
    Case("trailing garbage", value("1") + "x", "more after the message"),
    Case("two messages", value("1") + value("1"), "more after the message"),
    Case("a comma too many", "{\"device\":\"\(device)\",}", "name was expected"),
    Case("a comma missing", value("1").replacing(",\"table\"", with: " \"table\""), "','"),
    Case("a name without quotes", "{device:1}", "name was expected"),
    Case("a device that is no UUID", "{\"device\":\"me\"}", "not a UUID"),
    Case("a device that is a number", "{\"device\":7}", "a string was expected"),
    Case("a dependency that is no UUID", packet("", head: "\"dependency\":\"\","), "not a UUID"),
    Case("continues as a number", packet("", head: "\"continues\":1,"), "'false' was expected"),
    Case("a word cut off", packet("", head: "\"continues\":tru,"), "'true' was expected"),
    Case("a base as a number", packet("", head: "\"base\":1,"), "a string was expected"),
    Case("a base below zero", packet("", head: "\"base\":\"-1\","), "below zero"),
    Case("a base beyond 64 bits", packet("", head: "\"base\":\"9223372036854775808\","), "64-bit"),
    Case("device twice", packet("", head: "\"device\":\"\(device)\","), "device is a duplicate"),
    Case(
      "operations twice", packet(operation(rest: ",\"data\":{}"), head: "\"operations\":[],"),
      "operations is a duplicate"),
    Case("base twice", packet("", head: "\"base\":\"1\",\"base\":\"1\","), "base is a duplicate"),
    Case(
      "dependency twice", packet("", head: "\"dependency\":null,\"dependency\":null,"),
      "dependency is a duplicate"),
    Case(
      "continues twice", packet("", head: "\"continues\":true,\"continues\":false,"),
      "continues is a duplicate"),
    Case(
      "a member that is not known, twice", packet("", head: "\"x\":1,\"y\":2,\"x\":1,"),
      "a member is a duplicate"),
    Case(
      "a member that is not known, twice by another spelling",
      packet("", head: "\"x\":1,\"\\u0078\":1,"), "a member is a duplicate"),
    Case(
      "a member twice within one that is not known",
      packet("", head: "\"x\":[{\"y\":1,\"y\":1}],"), "a member is a duplicate"),
    Case(
      "a member of an operation that is not known, twice",
      packet(operation(rest: ",\"data\":{},\"z\":1,\"z\":{}")), "a member is a duplicate"),
    Case("depth in a member that is not known", nested(20), "nested too deep"),
    Case("bracket after bracket", String(repeating: "[", count: 100_000), "an object was expected"),
    Case("object in object", nested(100_000), "nested too deep"),
  ]

  static func nested(_ depth: Int) -> String {
    "{\"x\":" + String(repeating: "[", count: depth)
  }

  static let operations: [Case] = [
    Case("no id", packet("{}"), "without id"),
    Case("no record", packet("{\"id\":\"\(id)\"}"), "names no record"),
    Case("no time", packet("{\"id\":\"\(id)\",\"table\":\"t\",\"record\":\"r\"}"), "kind or time"),
    Case("a kind that is not known", packet(operation(kind: "\"upsert\"", rest: "")), "kind is"),
    Case("an insert without data", packet(operation(rest: "")), "has data"),
    Case(
      "a delete with data", packet(operation(kind: "\"delete\"", rest: ",\"data\":{}")),
      "a delete has none"),
    Case("a time that is short", packet(operation(time: "\"0199\"", rest: "")), "16 hexadecimal"),
    Case("a time that is a number", packet(operation(time: "17600000", rest: "")), "string was"),
    Case(
      "a column's time later than the operation's",
      packet(operation(rest: ",\"data\":{\"a\":1},\"times\":{\"a\":\"0199c82cc0010001\"}")),
      "later than the operation's"),
    Case(
      "a time for a column that is not written",
      packet(operation(rest: ",\"data\":{\"a\":1},\"times\":{\"b\":\"0199c82cc0010000\"}")),
      "is not written"),
    Case(
      "times in a delete",
      packet(operation(kind: "\"delete\"", rest: ",\"times\":{\"a\":\"0199c82cc0010000\"}")),
      "is not written"),
    Case(
      "a column's time twice",
      packet(
        operation(
          rest: ",\"data\":{\"a\":1},\"times\":{\"a\":\"0199c82cc0010000\","
            + "\"a\":\"0199c82cc0010000\"}")), "is a duplicate"),
    Case(
      "a column twice", packet(operation(rest: ",\"data\":{\"a\":1,\"a\":2}")), "is a duplicate"),
    Case(
      "a column twice, once escaped",
      packet(operation(rest: ",\"data\":{\"a\":1,\"\\u0061\":2}")), "is a duplicate"),
    Case(
      "one of many columns twice",
      packet(
        operation(
          rest: ",\"data\":{\((0..<40).map { "\"c\($0 % 39)\":1" }.joined(separator: ","))}")),
      "is a duplicate"),
    Case("data twice", packet(operation(rest: ",\"data\":{},\"data\":{}")), "data is a duplicate"),
    Case("id twice", packet(operation(rest: ",\"id\":\"\(id)\"")), "id is a duplicate"),
    Case("table twice", packet(operation(rest: ",\"table\":\"t\"")), "table is a duplicate"),
    Case(
      "an operation twice",
      packet(operation(rest: ",\"data\":{}") + "," + operation(rest: ",\"data\":{}")),
      "\(id) is a duplicate"),
    Case("an empty table", packet(operation(table: "\"\"", rest: "")), "a name is empty"),
    Case("a table with a newline", packet(operation(table: "\"a\\n\"", rest: "")), "control"),
    Case("an empty record", packet(operation(record: "\"\"", rest: "")), "1 to 512 bytes"),
    Case("a record with U+0000", packet(operation(record: "\"a\\u0000\"", rest: "")), "U+0000"),
    Case("a column without name", packet(operation(rest: ",\"data\":{\"\":1}")), "a name is empty"),
    Case("data as an array", packet(operation(rest: ",\"data\":[]")), "an object was expected"),
  ]

  /// Returns a packet of one update of `a` and `b`.
  static func update(_ rest: String) -> String {
    packet(operation(kind: "\"update\"", rest: ",\"data\":{\"a\":1,\"b\":\"x\"},\(rest)"))
  }

  static let policies: [Case] = [
    Case("adds as an object", update("\"adds\":{}"), "an array was expected"),
    Case("an addend that is a number", update("\"adds\":[1]"), "a string was expected"),
    Case("an addend twice", update("\"adds\":[\"a\",\"a\"]"), "adds names a twice"),
    Case("adds twice", update("\"adds\":[],\"adds\":[]"), "adds is a duplicate"),
    Case("an addend not written", update("\"adds\":[\"a\",\"c\"]"), "c, which is not written"),
    Case("an addend that is text", update("\"adds\":[\"b\"]"), "b, which is no integer"),
    Case(
      "adds in an insert", packet(operation(rest: ",\"data\":{\"a\":1},\"adds\":[\"a\"]")),
      "only an update"),
    Case(
      "originals in a delete",
      packet(operation(kind: "\"delete\"", rest: ",\"originals\":{\"a\":1}")), "only an update"),
    Case("an empty reason", update("\"reason\":\"\""), "a reason has 0 bytes"),
    Case("a reason that is no text", update("\"reason\":null"), "a string was expected"),
    Case("a reason twice", update("\"reason\":\"a\",\"reason\":\"a\""), "reason is a duplicate"),
    Case(
      "a reason that is too long in bytes, not in characters",
      update("\"reason\":\"\(String(repeating: "é", count: 501))\""), "a reason has 1002 bytes"),
    Case(
      "a batch with a reason",
      batch(",\"where\":[\"always\"],\"effect\":\"delete\",\"reason\":\"a\""),
      "a batch has no reason"),
    Case("originals as an array", update("\"originals\":[]"), "an object was expected"),
    Case("an original not written", update("\"originals\":{\"c\":1}"), "c, which is not written"),
    Case("an original twice", update("\"originals\":{\"b\":1,\"b\":1}"), "is a duplicate"),
    Case(
      "originals twice", update("\"originals\":{},\"originals\":{}"), "originals is a duplicate"),
    Case(
      "originals that are too large together with the data",
      update("\"originals\":{\"b\":\"1234\"}"),
      "more than 12 bytes", limits: limits { $0.operationBytes = 12 }),
  ]

  static let values: [Case] = [
    Case("true", value("true"), "write 1 and 0"),
    Case("an array", value("[1]"), "an array is not a value"),
    Case("an empty object", value("{}"), "without a tag"),
    Case("a tag that is not known", value("{\"date\":\"1\"}"), "int, real or blob"),
    Case("two tags", value("{\"int\":\"1\",\"real\":\"1\"}"), "two tags"),
    Case("an integer beyond 64 bits", value("9223372036854775808"), "above 64 bits"),
    Case("below 64 bits", value("-9223372036854775809"), "above 64 bits"),
    Case("far beyond", value("123456789012345678901234567890"), "above 64 bits"),
    Case("in a string beyond", value("{\"int\":\"-9223372036854775809\"}"), "64-bit integer"),
    Case("an integer with a sign", value("{\"int\":\"+1\"}"), "64-bit integer"),
    Case("an empty integer", value("{\"int\":\"\"}"), "64-bit integer"),
    Case("an integer with white space", value("{\"int\":\" 1\"}"), "64-bit integer"),
    Case("an integer that is a number", value("{\"int\":1}"), "a string was expected"),
    Case("a real beyond doubles", value("1e309"), "no double"),
    Case("a real in a string beyond doubles", value("{\"real\":\"-1e309\"}"), "not a real"),
    Case("NaN", value("{\"real\":\"nan\"}"), "not a real"),
    Case("NaN as a word", value("NaN"), "a value was expected"),
    Case("Infinity", value("Infinity"), "a value was expected"),
    Case("infinity in full", value("{\"real\":\"infinity\"}"), "not a real"),
    Case("a hexadecimal real", value("{\"real\":\"0x1p3\"}"), "not a real"),
    Case("a leading zero", value("01"), "','"),
    Case("a leading plus", value("+1"), "a value was expected"),
    Case("a point without digits", value("1."), "a value was expected"),
    Case("only a point", value(".5"), "a value was expected"),
    Case("an exponent without digits", value("1e"), "a value was expected"),
    Case("only a minus", value("-"), "a value was expected"),
    Case("a lone high surrogate", value("\"\\ud800\""), "half a surrogate pair"),
    Case("a lone low surrogate", value("\"\\udc00\""), "half a surrogate pair"),
    Case("two high surrogates", value("\"\\ud800\\ud800\""), "half a surrogate pair"),
    Case("a high one before a letter", value("\"\\ud800x\""), "half a surrogate pair"),
    Case(
      "a lone surrogate in a name", value("1").replacing("\"a\":", with: "\"\\ud800\":"), "half"),
    Case("an escape that is not known", value("\"\\x41\""), "an escape"),
    Case("an escape with a bad digit", value("\"\\u00g0\""), "an escape"),
    Case("an escape cut off", value("\"\\u00\""), "an escape"),
    Case("a newline in a string", value("\"a\nb\""), "control character"),
    Case("a raw U+0000 in a string", value("\"a\u{0}b\""), "control character"),
    Case("a string without an end", "{\"device\":\"\(device)", "a string without an end"),
    Case("not UTF-8", bytes([0xFF]), "not valid UTF-8"),
    Case("UTF-8 that is longer than need be", bytes([0xC0, 0x80]), "not valid UTF-8"),
    Case("a surrogate in UTF-8", bytes([0xED, 0xA0, 0x80]), "not valid UTF-8"),
    Case("UTF-8 cut off", bytes([0xE2, 0x82]), "not valid UTF-8"),
    Case("base64 without padding", value("{\"blob\":\"AA\"}"), "not base64"),
    Case("base64 with too much padding", value("{\"blob\":\"A===\"}"), "not base64"),
    Case("padding within", value("{\"blob\":\"AA==AAAA\"}"), "not base64"),
    Case("padding before a letter", value("{\"blob\":\"AA=A\"}"), "not base64"),
    Case("base64url", value("{\"blob\":\"-_8=\"}"), "not base64"),
    Case("base64 with a newline", value("{\"blob\":\"AAAA\\nAAA\"}"), "not base64"),
    Case("base64 with bits left over", value("{\"blob\":\"AB==\"}"), "not base64"),
  ]

  /// Returns a value whose text is exactly `content`.
  static func bytes(_ content: [UInt8]) -> [UInt8] {
    let parts = value("\"@\"").split(separator: "@", maxSplits: 1)
    return Array(parts[0].utf8) + content + Array(parts[1].utf8)
  }

  static let sizes: [Case] = [
    Case(
      "too many operations",
      packet(
        (1...4).map {
          operation(id: "0199c82c-c001-7000-800a-00000000000\($0)", rest: ",\"data\":{}")
        }.joined(separator: ",")), "more than 3 operations",
      limits: limits { $0.operationsPerPacket = 3 }),
    Case(
      "a text too large", value("\"12345\""), "5 bytes; 4", limits: limits { $0.valueBytes = 4 }),
    Case(
      "a blob too large", value("{\"blob\":\"AAAAAAA=\"}"), "5 bytes; 4",
      limits: limits { $0.valueBytes = 4 }),
    Case(
      "an operation too large", value("\"12345\""), "more than 4 bytes",
      limits: limits { $0.operationBytes = 4 }),
    Case(
      "too many columns", packet(operation(rest: ",\"data\":{\"a\":1,\"b\":2,\"c\":3}")),
      "more than 2 columns", limits: limits { $0.columns = 2 }),
    Case(
      "a table's name too long", packet(operation(table: "\"12345\"", rest: "")), "5 bytes; 4",
      limits: limits { $0.nameBytes = 4 }),
    Case(
      "a column's name too long", packet(operation(rest: ",\"data\":{\"12345\":1}")), "5 bytes; 4",
      limits: limits { $0.nameBytes = 4 }),
    Case(
      "a record's id too long", packet(operation(record: "\"12345\"", rest: "")), "1 to 4 bytes",
      limits: limits { $0.recordBytes = 4 }),
    Case("depth", value("1"), "nested too deep", limits: limits { $0.depth = 3 }),
  ]

  @Test(
    "a packet that is cut off at any byte is refused",
    arguments: try ProjectFiles.fixtures(in: "packets"))
  func truncated(name: String) throws {
    let bytes = try ProjectFiles.fixture("packets/\(name)")
    for count in bytes.indices {
      #expect(throws: MalformedMessage.self, "cut off after \(count) bytes") {
        try Packet(decoding: Array(bytes[..<count]), limits: .standard)
      }
    }
  }

  @Test("a packet with any byte changed is read or refused, and nothing else happens")
  func garbled() throws {
    var random = SeededGenerator(seed: 5)
    let original = try ProjectFiles.fixture("packets/mixed")
    var refused = 0
    for index in original.indices {
      for byte in [0x00, 0x22, 0x5C, 0x7B, 0xFF, UInt8(random.next() & 0xFF)] as [UInt8] {
        var bytes = original
        bytes[index] = byte
        do throws(MalformedMessage) {
          let packet = try Packet(decoding: bytes, limits: .standard)
          #expect(try Packet(decoding: packet.encoded(), limits: .standard) == packet)
        } catch { refused += 1 }
      }
    }
    #expect(refused > original.count)
  }

  @Test("answers, pages and infos that are cut off at any byte are refused")
  func otherMessages() throws {
    let answer = try ProjectFiles.fixture("answers/conflicts")
    for count in answer.indices {
      #expect(throws: MalformedMessage.self) {
        try PacketAnswer(decoding: Array(answer[..<count]), limits: .standard)
      }
    }
    let page = try ProjectFiles.fixture("pages/whole")
    for count in page.indices {
      #expect(throws: MalformedMessage.self) { try FixtureTests.page(Array(page[..<count])) }
    }
    let space = try ProjectFiles.fixture("space")
    for count in space.indices {
      #expect(throws: MalformedMessage.self) { try SpaceInfo(decoding: Array(space[..<count])) }
    }
  }
}
