import FerryProtocol
import FerryTestSupport
import Testing

/// The request for single records: the fields, and the refusals.
@Suite(.hangLimit)
struct RecordsRequestTests {
  @Test("keys of any text are read back unchanged", arguments: UInt64(1)...100)
  func roundTrip(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let texts = ["a", "é", "e\u{301}", "\"", "\\", "\u{1}", "日本", "x y/z?#"]
    let keys = (0..<Int.random(in: 1...20, using: &random)).map { index in
      RecordKey(
        table: "t\(random.next() % 3)",
        record: texts[Int.random(in: 0..<texts.count, using: &random)] + "\(index)")
    }
    let request = RecordsRequest(keys: keys)
    #expect(try RecordsRequest(decoding: request.encoded(), limits: .standard) == request)
  }

  @Test("identifiers with different bytes are different records")
  func bytes() throws {
    let keys = ["\u{E9}", "e\u{301}"].map { RecordKey(table: "t", record: $0) }
    let request = RecordsRequest(keys: keys)
    #expect(try RecordsRequest(decoding: request.encoded(), limits: .standard).keys.count == 2)
  }

  @Test("unknown members are ignored")
  func unknownMembers() throws {
    let json = #"{"x":[1,{"records":2}],"records":[["t","r"]],"y":null}"#
    let request = try RecordsRequest(decoding: Array(json.utf8), limits: .standard)
    #expect(request.keys == [RecordKey(table: "t", record: "r")])
  }

  @Test("the largest allowed number of records is read, and one more is refused")
  func bound() throws {
    let keys = (0...Limits.standard.recordsPerRequest).map {
      RecordKey(table: "t", record: "\($0)")
    }
    let most = RecordsRequest(keys: Array(keys.dropLast()))
    #expect(try RecordsRequest(decoding: most.encoded(), limits: .standard) == most)
    #expect(throws: MalformedMessage.self) {
      try RecordsRequest(decoding: RecordsRequest(keys: keys).encoded(), limits: .standard)
    }
  }

  @Test(
    "a request that breaks a rule is malformed",
    arguments: [
      "", "{}", "[]", #"{"records":[]}"#, #"{"records":null}"#, #"{"records":[[]]}"#,
      #"{"records":[["t"]]}"#, #"{"records":[["t","r","x"]]}"#, #"{"records":["t","r"]}"#,
      #"{"records":[["","r"]]}"#, #"{"records":[["t",""]]}"#, #"{"records":[["t",1]]}"#,
      #"{"records":[["t","a\u0000"]]}"#, #"{"records":[["t","r"],["t","r"]]}"#,
      #"{"records":[["t","r"]],"records":[["t","s"]]}"#, #"{"records":[["t","r"]]} x"#,
      #"{"records":[["t","r"]"#,
    ])
  func malformed(json: String) {
    #expect(throws: MalformedMessage.self) {
      try RecordsRequest(decoding: Array(json.utf8), limits: .standard)
    }
  }
}
