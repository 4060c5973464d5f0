import FerryProtocol
import FerryTestSupport
import Testing

/// Input that another writer may send although Ferry itself would write it differently.
@Suite("Accepted messages that are not canonical", .hangLimit)
struct AcceptedInputTests {
  static let device = "0199c306-6400-7000-800a-11ce00000001"
  static let id = "0199c82c-c001-7000-800a-000000000001"
  static let operation = """
    {"id":"\(id)","table":"t","record":"r","kind":"insert","time":"0199c82cc0010000","data":{"a":1}}
    """

  @Test("white space is accepted between all tokens")
  func whiteSpace() throws {
    let packet = try Packet(
      """
      \t\r\n { "device" : "\(Self.device)" ,\n"dependency" : null , "continues" : true ,
        "base" : "3" , "operations" : [ \(Self.operation) ] } \n
      """)
    #expect(packet.continues)
    #expect(packet.operations.map(\.base) == [3])
  }

  @Test("unknown members with any values are ignored")
  func unknownMembers() throws {
    let packet = try Packet(
      """
      {"x":{"device":[1,2.5e3,"\\u0000",null,true,false,{}]},"device":"\(Self.device)",
      "":[],"operations":[\(Self.operation.dropLast()),"later":{"data":{"z":1}}}]}
      """)
    #expect(packet.operations.first?.columns == [Column("a", 1)])
  }

  @Test("escapes in names of members and columns do not change their meaning")
  func escapedNames() throws {
    let packet = try Packet(
      """
      {"\\u0064evice":"\(Self.device)","operat\\u0069ons":[{"id":"\(Self.id)","table":"\\u0074",
      "record":"\\ud83d\\ude00","k\\u0069nd":"\\u0069nsert","time":"0199C82CC0010000",
      "data":{"\\u0061\\/":"\\u0062"}}]}
      """)
    #expect(packet.operations.first?.key == RecordKey(table: "t", record: "😀"))
    #expect(packet.operations.first?.columns == [Column("a/", "b")])
    #expect(throws: MalformedMessage.self) { try Packet("{\"\\q\":1}") }
  }

  @Test("the order of members does not matter: a packet's base counts for earlier operations too")
  func memberOrder() throws {
    let packet = try Packet(
      """
      {"operations":[\(Self.operation),{"data":{},"time":"0199c82cc0020000","kind":"update",
      "record":"r","table":"t","base":"2","id":"0199c82c-c001-7000-800a-000000000002"}],
      "base":"7","device":"\(Self.device)"}
      """)
    #expect(packet.operations.map(\.base) == [7, 2])
    #expect(packet.dependency == nil, "a missing dependency is none")
  }

  @Test("identifiers and times are accepted in upper case")
  func upperCase() throws {
    let packet = try Packet(
      "{\"device\":\"\(Self.device.uppercased())\",\"operations\":[\(Self.operation)]}")
    #expect(packet.device.description == Self.device)
  }

  @Test("the columns of a write are accepted in any order")
  func columnOrder() throws {
    let json = """
      [{"sequence":"1","time":"0199c82cc0010000","device":"\(Self.device)","kind":"insert",\
      "data":{"b":2,"a":1}}]
      """
    let state = try Array(json.utf8).withUnsafeBytes {
      try RecordState(decoding: $0, limits: .standard)
    }
    #expect(state.columns.map(\.name) == ["a", "b"])
  }

  @Test("a state with one column in two writes is refused")
  func columnInTwoWrites() throws {
    func write(_ place: Int, _ column: String) -> String {
      "{\"sequence\":\"\(place)\",\"time\":\"0199c82cc0010000\",\"device\":\"\(Self.device)\","
        + "\"data\":{\"\(column)\":1}}"
    }
    func read(_ columns: String...) throws -> RecordState {
      let writes = columns.enumerated().map { write($0 + 1, $1) }.joined(separator: ",")
      return try Array("[\(writes)]".utf8).withUnsafeBytes {
        try RecordState(decoding: $0, limits: .standard)
      }
    }
    #expect(try read("b", "a", "c").columns.map(\.name) == ["a", "b", "c"])
    #expect(throws: MalformedMessage.self) { try read("b", "b") }
    #expect(throws: MalformedMessage.self) { try read("b", "a", "b") }
  }

  @Test(
    "a state that would be stored as another one is refused",
    arguments: [
      [#""kind":"delete","data":{"a":1}"#],
      [#""kind":"delete","data":{}"#],
      [#""kind":"delete","shared":"2""#],
      [#""kind":"insert","shared":"2","data":{"a":1}"#],
      [#""kind":"insert","data":{"a":1}"#, #""kind":"delete""#],
      [#""kind":"delete""#, #""kind":"insert","shared":"2","data":{"a":1}"#],
      [#""data":{"a":1}"#, #""kind":"delete","shared":"2""#],
      [#""data":{"a":1}"#, #""data":{"b":1}"#],
      [#""kind":"insert","data":{}"#, #""origin":"4","kind":"insert","data":{}"#],
      [#""kind":"delete""#, #""origin":"4","kind":"delete""#],
      [#""origin":"4","data":{"a":1}"#, #""data":{"b":1}"#],
    ])
  func otherState(_ writes: [String]) {
    let head = #"{"sequence":"3","time":"0199c82cc0010000","device":"\#(Self.device)","#
    let json = "[" + writes.map { head + $0 + "}" }.joined(separator: ",") + "]"
    #expect(throws: MalformedMessage.self) {
      try Array(json.utf8).withUnsafeBytes { try RecordState(decoding: $0, limits: .standard) }
    }
  }

  @Test("a change with a delete beside other writes is refused")
  func deleteWithOthers() throws {
    let page = try ProjectFiles.text("Protocol/fixtures/pages/tombstone.json")
    #expect(try FixtureTests.page(Array(page.utf8)).1.count == 1)
    let write = #"{"sequence":"11","time":"0199c82cc3840000","device":"\#(Self.device)","data":{}}"#
    let insert = write.replacing(#""data""#, with: #""kind":"insert","data""#)
    let column = write.replacing("{}", with: #"{"a":1}"#)
    for other in [insert, column] {
      let crowded = page.replacing(#""writes":["#, with: #""writes":["# + other + ",")
      #expect(throws: MalformedMessage.self) { try FixtureTests.page(Array(crowded.utf8)) }
    }
  }

  @Test("unknown members of answers, pages and infos are ignored")
  func laterServers() throws {
    let added = #"{"later":[{"x":"\u0041"}],"#
    let answer = try ProjectFiles.text("Protocol/fixtures/answers/conflicts.json")
    #expect(
      try PacketAnswer(decoding: Array((added + answer.dropFirst()).utf8), limits: .standard)
        == FixtureTests.answer("conflicts"))
    let page = try ProjectFiles.text("Protocol/fixtures/pages/whole.json")
    #expect(
      try FixtureTests.page(Array((added + page.dropFirst()).utf8)).1
        == FixtureTests.changes("whole"))
    let space = try ProjectFiles.text("Protocol/fixtures/space.json")
    #expect(try SpaceInfo(decoding: Array((added + space.dropFirst()).utf8)).role == .writer)
    let problem = try ProjectFiles.text("Protocol/fixtures/problems/buffer_full.json")
    #expect(Problem(decoding: Array((added + problem.dropFirst()).utf8))?.code == .bufferFull)
  }

  @Test(
    "a problem has no fewer records that do not fit than it names", arguments: ["0", "-1", "1"])
  func violationCount(_ count: String) throws {
    let fixture = try ProjectFiles.text("Protocol/fixtures/problems/schema_conflict.json")
    let member = #""violationCount":"#
    try #require(fixture.contains(member + "12"))
    let message = Array(fixture.replacing(member + "12", with: member + count).utf8)
    let problem = try #require(Problem(decoding: message))
    #expect(problem.violationCount == problem.violations.count && problem.violationCount > 1)
    #expect(Problem(decoding: problem.encoded()) == problem)
  }

  @Test("a problem has no fewer losses than it names", arguments: ["0", "-1", "1"])
  func lossCount(_ count: String) throws {
    let fixture = try ProjectFiles.text("Protocol/fixtures/problems/schema_losses.json")
    let member = #""lossCount":"#
    try #require(fixture.contains(member + "2"))
    let message = Array(fixture.replacing(member + "2", with: member + count).utf8)
    let problem = try #require(Problem(decoding: message))
    #expect(problem.lossCount == 2 && problem.losses.count == 2)
    #expect(Problem(decoding: problem.encoded()) == problem)
  }

  @Test("a problem with an unknown code, or another server's page, is not a problem of Ferry")
  func foreignProblems() {
    #expect(Problem(decoding: Array(#"{"code":"brand_new","detail":"x"}"#.utf8)) == nil)
    #expect(Problem(decoding: Array("<html>403</html>".utf8)) == nil)
    #expect(Problem(decoding: []) == nil)
  }
}
