import FerryProtocol
import FerryTestSupport
import Testing

/// The members of rare messages: one function names them for reading and writing.
@Suite("Rare messages", .hangLimit)
struct JSONMessageTests {
  /// A message with each kind of member.
  private struct Sample: JSONMessage, Equatable {
    var number: Int64 = 0
    var title = "none"
    var isOpen = false
    var note: String?
    var next: String?
    var parts: [Sample] = []

    static var blank: Self { Self() }
    static var noun: String? { "the sample" }

    mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
      try json.required("number", &number, as: .integer(in: 1...9))
      try json.defaulted("title", &title)
      try json.omitting("open", &isOpen, false)
      try json.optional("note", &note)
      try json.nullable("next", &next)
      try json.omitting("parts", &parts, [], as: .list(max: 2, "parts"))
      json.written("sum", number * 2)
      try json.check(note != title, "note and title are the same")
    }
  }

  private static func read(_ text: String, isStrict: Bool = false) throws -> Sample {
    var rules = ReadingRules.standard
    rules.isStrict = isStrict
    return try Sample(decoding: Array(text.utf8), rules)
  }

  @Test("members are written in the order of their names, without those that are left out")
  func written() throws {
    let least = Sample(number: 1)
    let text = #"{"number":1,"title":"none","next":null,"sum":2}"#
    #expect(String(decoding: least.encoded(), as: UTF8.self) == text)
    let whole = Sample(
      number: 2, title: "a", isOpen: true, note: "b", next: "c", parts: [least, least])
    #expect(
      String(decoding: whole.encoded(), as: UTF8.self)
        == #"{"number":2,"title":"a","open":true,"note":"b","next":"c","parts":[\#(text),\#(text)],"sum":4}"#
    )
    for sample in [least, whole] { #expect(try Sample(decoding: sample.encoded()) == sample) }
  }

  @Test("members are read in any order; absent ones have their defaults")
  func order() throws {
    let read = try Self.read(#"{ "open" : false, "parts":[], "numb\u0065r" : 3 }"#)
    #expect(read == Sample(number: 3))
  }

  @Test("unknown members are skipped and the last duplicate counts, unless the message is strict")
  func strictness() throws {
    let text = #"{"number":3,"later":[{"a":1}],"number":4}"#
    #expect(try Self.read(text) == Sample(number: 4))
    for (text, reason) in [
      (#"{"number":3,"number":4}"#, "number is a duplicate"),
      (
        #"{"number":3,"parts":[{"number":1,"titel":""}]}"#,
        "parts: 'titel' is none of number, title, open, note, next, parts"
      ),
    ] {
      let error = #expect(throws: MalformedMessage.self) { try Self.read(text, isStrict: true) }
      #expect(error?.reason.contains(reason) == true, "\(error as Any)")
    }
  }

  @Test(
    "a fault has its place and its byte",
    arguments: [
      ("{}", "the sample: “number” is missing", 2), ("[]", "the sample: an object was expected", 0),
      (#"{"number":10}"#, "number: 10 is not within 1 and 9", 12),
      (#"{"number":"1"}"#, "number: a number was expected", 10),
      (#"{"number":1,"note":null}"#, "note: a string was expected", 19),
      (#"{"number":1,"open":1}"#, "open: true or false was expected", 19),
      (#"{"number":1,"note":"none"}"#, "the sample: note and title are the same", 26),
      (
        #"{"number":1,"parts":[{"number":1},{"number":1,"parts":[{}]}]}"#,
        "parts.parts: “number” is missing", 57
      ),
      (#"{"number":1,"parts":[{"number":1},{"number":1},"#, "parts: more than 2 parts", 47),
    ])
  func faults(text: String, reason: String, offset: Int) {
    let error = #expect(throws: MalformedMessage.self) { try Self.read(text) }
    #expect(error?.reason == reason && error?.offset == offset, "\(error as Any)")
  }
}
