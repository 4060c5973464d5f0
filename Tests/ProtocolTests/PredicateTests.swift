import FerryProtocol
import FerryTestSupport
import Testing

extension RecordPredicate {
  var written: String {
    var json = JSONWriter()
    json.predicate(self)
    return String(decoding: json.finish(), as: UTF8.self)
  }

  static func read(_ json: String, limits: Limits = .standard) throws -> RecordPredicate {
    try decode(Array(json.utf8)) { (reader) throws(MalformedMessage) in
      try RecordPredicate(from: &reader, limits: limits)
    }
  }
}

@Suite("Predicates", .hangLimit)
struct PredicateTests {
  private static let due = PredicateField.column("due")
  private static let done = PredicateField.column("done")

  @Test(
    "a user's text is parsed into its predicate and its encoding",
    arguments: [
      ("due < '2026-10-01' and done = 0", #"["and",["<","due","2026-10-01"],["=","done",0]]"#),
      ("DUE<=-1.5 Or NOT done==1", #"["or",["<=","DUE",-1.5],["not",["=","done",1]]]"#),
      ("a=1 or b=2 and c=3", #"["or",["=","a",1],["and",["=","b",2],["=","c",3]]]"#),
      ("(a=1 or b=2) and c=3", #"["and",["or",["=","a",1],["=","b",2]],["=","c",3]]"#),
      ("not a=1 and b=2", #"["and",["not",["=","a",1]],["=","b",2]]"#),
      ("x in (1, 'two', x'03', null)", #"["in","x",1,"two",{"blob":"Aw=="},null]"#),
      ("x not in ()", #"["not",["in","x"]]"#),
      ("x between 1 and 2 and y != 3", #"["and",["and",[">=","x",1],["<=","x",2]],["<>","y",3]]"#),
      ("x not between 1 and 2", #"["not",["and",[">=","x",1],["<=","x",2]]]"#),
      ("x is null or x is not null", #"["or",["is null","x"],["is not null","x"]]"#),
      (#""two ""words""" > 'it''s'"#, #"[">","two \"words\"","it's"]"#),
      ("iD = 'r1'", #"["=",{"key":true},"r1"]"#),
      ("true", #"["always"]"#),
      ("false", #"["not",["always"]]"#),
      (
        "n in (9223372036854775807, -9223372036854775808, .5, 1., 1e2, -9e999)",
        #"["in","n",{"int":"9223372036854775807"},{"int":"-9223372036854775808"},0.5,"#
          + #"{"real":"1.0"},{"real":"100.0"},{"real":"-inf"}]"#
      ),
    ])
  func reading(text: String, json: String) throws {
    let predicate = try RecordPredicate(text, key: "id")
    #expect(predicate.written == json)
    #expect(try RecordPredicate.read(json) == predicate)
  }

  @Test(
    "an invalid text is refused with the expected token and the place",
    arguments: [
      ("", "a column, 'not' or '(' was expected, not the end", 1),
      ("due <", "a value was expected, not the end", 6),
      ("due < done", "a value was expected, not 'done'", 7),
      (#"due < "x""#, #"a value (text is in single quotes) was expected, not "x""#, 7),
      ("5 < due", "a column, 'not' or '(' was expected, not '5'", 1),
      ("due < 1 done", "'and', 'or' or the end was expected, not 'done'", 9),
      ("(due < 1", "')' was expected, not the end", 9),
      ("due is 1", "'null' or 'not null' was expected, not '1'", 8),
      ("due not 1", "'in' or 'between' was expected, not '1'", 9),
      ("due in 1", "'(' and a list of values was expected, not '1'", 8),
      ("due in (1", "',' or ')' was expected, not the end", 10),
      ("due between 1", "'and' and the upper end was expected, not the end", 14),
      (
        "due like 'x%'",
        "a comparison (= <> < <= > >=), 'is', 'in', 'between' or 'not' was "
          + "expected, not 'like'", 5
      ),
      ("due = 'x", "a text has no closing '", 7),
      ("due = x'0'", "a blob is an even number of hexadecimal digits: x'0aff'", 7),
      ("due = 1e", "a number's exponent has no digits", 7),
      ("due = 1x", "a number ends in a letter", 7),
      ("due = .", "a value was expected, not '.'", 7),
      ("due = 9223372036854775808", "the integer 9223372036854775808 does not fit 64 bits", 7),
      ("due = -'x'", "a number after the sign was expected, not the text 'x'", 8),
      ("due ; 1", "';' has no meaning here", 5),
      (#""" = 1"#, "a name in quotes is empty", 1),
    ])
  func refusing(text: String, reason: String, position: Int) {
    #expect(throws: RecordPredicateError(reason: reason, position: position)) {
      try RecordPredicate(text, key: "id")
    }
  }

  @Test(
    "an invalid message is refused with its reason",
    arguments: [
      ("[]", "a predicate is an array that begins with a word"),
      (#"["like","a","b"]"#, "'like' begins no predicate"),
      (#"["always",1]"#, "\"always\" takes no values"),
      (#"["and",["always"]]"#, "\"and\" and \"or\" join two or more"),
      (#"["not",["always"],["always"]]"#, "\"not\" takes one predicate"),
      (#"["="]"#, "a predicate names no column"),
      (#"["=","a"]"#, "a comparison takes one value"),
      (#"["=","a",1,2]"#, "a comparison takes one value"),
      (#"["is null","a",1]"#, "a test for NULL takes no value"),
      (#"["=","",1]"#, "a name is empty"),
      (#"["=",{"key":false},1]"#, "a predicate's column is a name or {\"key\":true}"),
      (#"["=",{},1]"#, "a predicate's column is a name or {\"key\":true}"),
      (#"["=",{"key":true,"key":true},1]"#, "a predicate's column is a name or {\"key\":true}"),
      (#"["=","a",true]"#, "true and false are not values; write 1 and 0"),
      (#"["=",1,1]"#, "an object was expected"),
      (#"{"=":1}"#, "an array was expected"),
    ])
  func malformed(json: String, reason: String) {
    #expect { try RecordPredicate.read(json) } throws: {
      ($0 as? MalformedMessage)?.reason == reason
    }
  }

  @Test("nesting and size are bounded in texts and in messages")
  func bounds() throws {
    var deep = RecordPredicate.isNull(Self.due)
    for _ in 1..<Limits.standard.predicateDepth { deep = .not(deep) }
    #expect(deep.fault() == nil)
    #expect(try RecordPredicate.read(deep.written) == deep)
    #expect(RecordPredicate.not(deep).fault() != nil)
    #expect(throws: MalformedMessage.self) {
      try RecordPredicate.read(RecordPredicate.not(deep).written)
    }
    let values = (0..<Int64(Limits.standard.predicateNodes)).map(Value.integer)
    let wide = RecordPredicate.among(Self.due, Array(values.dropLast()))
    #expect(wide.fault() == nil)
    #expect(try RecordPredicate.read(wide.written) == wide)
    #expect(RecordPredicate.among(Self.due, values).fault() != nil)
    #expect(throws: MalformedMessage.self) {
      try RecordPredicate.read(RecordPredicate.among(Self.due, values).written)
    }
    #expect(throws: RecordPredicateError.self) {
      try RecordPredicate(String(repeating: "(", count: 100_000), key: "id")
    }
  }

  @Test("an 'and' or 'or' of one part or none is encoded by its meaning")
  func normalizing() {
    let part = RecordPredicate.isNull(Self.due)
    #expect(RecordPredicate.and([.or([part])]).written == part.written)
    #expect(RecordPredicate.and([]).written == RecordPredicate.always.written)
    #expect(RecordPredicate.or([]).written == RecordPredicate.not(.always).written)
    #expect(!RecordPredicate.or([]).matches(record: "r", columns: []))
    #expect(RecordPredicate.and([]).matches(record: "r", columns: []))
  }

  @Test("a column that a record does not have is NULL, and NULL matches no comparison")
  func absence() throws {
    for text in [
      "due = 1", "due <> 1", "not due = 1", "due in (1)", "due not in (1)", "due = null",
    ] {
      let predicate = try RecordPredicate(text, key: "id")
      #expect(!predicate.matches(record: "r", columns: []), "\(text)")
      #expect(!predicate.matches(record: "r", columns: [Column("due", .null)]), "\(text)")
    }
    #expect(try RecordPredicate("due is null", key: "id").matches(record: "r", columns: []))
    #expect(try RecordPredicate("due in ()", key: "id") == .among(Self.due, []))
    #expect(RecordPredicate.not(.among(Self.due, [])).matches(record: "r", columns: []))
    #expect(try RecordPredicate("id = 'r'", key: "id").matches(record: "r", columns: []))
  }

  @Test("a record that was deleted or never inserted matches nothing")
  func living() {
    var state = RecordState([.insert(at: 1, ["done": 0].asColumns)])
    let predicate = RecordPredicate.compare(Self.done, .equal, 0)
    #expect(predicate.matches(record: "r", state))
    _ = state.merge(.delete(at: 2), at: 2)
    #expect(!predicate.matches(record: "r", state))
    #expect(!RecordPredicate.always.matches(record: "r", state))
    #expect(!RecordPredicate.always.matches(record: "r", RecordState([.update(at: 1, [])])))
  }

  @Test("the longest predicate stays within SQLite's limit of depth")
  func longest() {
    let parts = (0..<300).map { RecordPredicate.compare(Self.done, .equal, .integer($0)) }
    let sql = RecordPredicate.or(parts).sql(table: "t", key: "id")
    var (depth, deepest) = (0, 0)
    for byte in sql.text.utf8 {
      if byte == UInt8(ascii: "(") { depth += 1 }
      if byte == UInt8(ascii: ")") { depth -= 1 }
      deepest = max(deepest, depth)
    }
    #expect(deepest < 20)
    #expect(sql.values.count == 300)
  }
}

extension [Name: Value] {
  fileprivate var asColumns: [Column] {
    sorted { $0.key < $1.key }.map { Column($0.key, $0.value) }
  }
}
