import FerryProtocol
import FerryTestSupport
import Testing

@Suite("The schema document", .hangLimit)
struct SpaceSchemaTests {
  static func read(_ text: String, _ limits: Limits = .standard) throws -> SpaceSchema {
    try SpaceSchema(decoding: Array(text.utf8), limits: limits)
  }

  @Test("a document is read as the schema that it declares, and written back byte for byte")
  func roundTrip() throws {
    #expect(try Self.read(Self.document) == Self.schema)
    #expect(String(decoding: Self.schema.encoded(), as: UTF8.self) == Self.document)
    #expect(try SpaceSchema(decoding: SpaceSchema.empty.encoded()) == .empty)
  }

  @Test(
    "a definition's key of other kinds is read and written back byte for byte",
    arguments: [
      (#"{"mapped":"n"}"#, .mapped("n")),
      (
        #"{"value":[{"name":"a","type":"text"},{"name":"b","type":"blob"}]}"#,
        .value([DeclaredKeyColumn("a", .text), DeclaredKeyColumn("b", .blob)])
      ),
    ] as [(String, DeclaredKey)])
  func keys(text: String, key: DeclaredKey) throws {
    let document =
      #"{"version":1,"minimumProtocol":1,"tables":{"t":{"definition":{"key":\#(text),"columns":[]}}}}"#
    let schema = try Self.read(document)
    #expect(schema.tables["t"]?.definition?.key == key)
    let again = String(decoding: schema.encoded(), as: UTF8.self)
    #expect(again.contains(#""key":\#(text)"#))
  }

  @Test("a definition's options are read and written back byte for byte")
  func options() throws {
    let definition = """
      {"key":{"mapped":"id"},"columns":[{"name":"a","type":"any"}],"references":[{"columns":["a"],\
      "table":"p","deferred":true}],"strict":true,"autoincrement":true}
      """
    let document =
      #"{"version":1,"minimumProtocol":1,"tables":{"t":{"definition":\#(definition)}}}"#
    let table = try #require(try Self.read(document).tables["t"]?.definition)
    #expect(table.isStrict && table.isAutoincrement && !table.isWithoutRowID)
    #expect(table.references.map(\.isDeferred) == [true])
    #expect(table.columns.map(\.affinity) == [.any])
    let again = String(decoding: try Self.read(document).encoded(), as: UTF8.self)
    #expect(again.contains(definition))
  }

  @Test("a column's default is the device's time, or a constant")
  func currentTime() throws {
    func table(_ column: String) throws -> DeclaredColumn? {
      let document = """
        {"version":1,"minimumProtocol":1,"tables":{"t":{"definition":{"key":"id","columns":[\(column)]}}}}
        """
      let schema = try Self.read(document)
      #expect(String(decoding: schema.encoded(), as: UTF8.self) == document)
      return schema.tables["t"]?.definition?.columns.first
    }
    for moment in DeclaredColumn.Moment.allCases {
      let column = try table(#"{"name":"a","type":"text","now":"\#(moment.rawValue)"}"#)
      #expect(column == DeclaredColumn("a", .text, now: moment))
    }
    for wrong in [#""now":"never""#, #""default":"x","now":"date""#] {
      #expect(throws: MalformedMessage.self) { try table(#"{"name":"a","type":"text",\#(wrong)}"#) }
    }
  }

  @Test(
    "a rule whose values a definition always converts is refused",
    arguments: [
      (#""counter""#, "real", false), (#""counter""#, "text", false),
      (#""counter""#, "integer", true),
      (#""counter""#, "numeric", true), (#"{"type":"integer"}"#, "real", false),
      (#"{"type":"real"}"#, "text", false), (#"{"type":"real"}"#, "integer", true),
      (#"{"type":"text"}"#, "numeric", true),
    ])
  func convertedTypes(rule: String, type: String, isRight: Bool) {
    let document = """
      {"tables":{"t":{"columns":{"n":\(rule)},"definition":{"key":"id","columns":[{"name":"n","type":"\(type)"}]}}}}
      """
    #expect(((try? Self.read(document)) != nil) == isRight)
  }

  @Test("the places of a key's columns give the order of all columns")
  func keyPlaces() throws {
    func table(_ places: String) throws -> DeclaredTable? {
      let definition = """
        {"key":{"value":[{"name":"b","type":"text"},{"name":"a","type":"text"}]},\
        "columns":[{"name":"x"},{"name":"y"}],"keyPlaces":\(places)}
        """
      let document =
        #"{"version":1,"minimumProtocol":1,"tables":{"t":{"definition":\#(definition)}}}"#
      let schema = try Self.read(document)
      let again = String(decoding: schema.encoded(), as: UTF8.self)
      #expect(again.contains("keyPlaces") == (places != "[0,1]"))
      #expect(try Self.read(again) == schema)
      return schema.tables["t"]?.definition
    }
    let keys = ["b", "a"]
    #expect(try table("[3,1]")?.inOrder(keys, ["x", "y"]) == ["x", "a", "y", "b"])
    #expect(try table("[0,1]")?.inOrder(keys, ["x", "y"]) == ["b", "a", "x", "y"])
    for wrong in ["[1]", "[1,1]", "[0,4]", "[0,-1]", "[0,1,2]"] {
      #expect(throws: MalformedMessage.self) { try table(wrong) }
    }
    // A reader does not know the key yet.
    func early(_ places: String) throws -> SpaceSchema {
      try Self.read(
        #"{"version":1,"minimumProtocol":1,"tables":{"t":{"definition":{"keyPlaces":\#(places),"#
          + #""key":{"value":[{"name":"b","type":"text"},{"name":"a","type":"text"}]}}}}}"#)
    }
    #expect(throws: MalformedMessage.self) { try early("[0]") }
    #expect(try early("[0,1]").tables["t"]?.definition?.keyPlaces == [])
    #expect(try early("[1,0]").tables["t"]?.definition?.keyPlaces == [1, 0])
  }

  @Test("documents with the same meaning are written the same")
  func canonical() throws {
    let other = """
      { "tables" : { "tasks" : { "definition" : {"indexes":[["list","email"]],"key":"id",
        "references":[{"table":"lists","columns":["list"],"to":["code"],"onUpdate":"set-null",
        "onDelete":"cascade"},{"table":"users","columns":["email"],"to":[],"onDelete":"no-action"}],
        "columns":[{"type":"text","name":"email","required":true,"default":"a@b"},
        {"name":"list","type":"blob","default":null}],"unique":[["email"]]},
        "aliases" : ["todos"], "clashes" : [{"rule":"ask","columns":["list"]}], "unique" : [["email"],["project","number"]],
        "columns" : { "votes" : {"type":"integer","policy":"counter","required":false},
          "email" : {"aliases":["mail","e"],"type":"text"}, "due" : {"required":true,"type":"integer","policy":"max"},
          "body" : {"policy":"text-merge"} },
        "write":"admin", "deletes":"edit-wins", "policy":"server-wins" },
        "\\u006eotes":{"policy":"last-writer-wins","deletes":"delete-wins","write":"writer",
        "columns":{},"unique":[]} },
        "version":3 }
      """
    #expect(try Self.read(other).encoded() == Array(Self.document.utf8))
    #expect(try Self.read("{}") == .empty)
  }

  @Test("a table or column without rules follows the standard rules, or its table's policy")
  func lookups() {
    let schema = Self.schema
    #expect(schema.rules(for: "elsewhere") == .standard)
    #expect(schema.policy(of: "a", in: "elsewhere") == .lastWriterWins)
    #expect(schema.policy(of: "votes", in: "tasks") == .counter)
    #expect(schema.policy(of: "email", in: "tasks") == .serverWins)
    #expect(schema.policy(of: "a", in: "tasks") == .serverWins)
    #expect(schema.rules(for: "tasks").type(of: "votes") == .integer)
    #expect(schema.rules(for: "tasks").type(of: "a") == .any)
  }

  @Test("rules are plain if they do not change how conflicts are decided")
  func plain() {
    #expect(TableRules.standard.isPlain)
    let typed = ColumnRules(policy: .lastWriterWins, type: .text, isRequired: true)
    #expect(TableRules(write: .admin, columns: ["a": typed], unique: [["a"]]).isPlain)
    #expect(!TableRules(policy: .ask).isPlain)
    #expect(!TableRules(deletes: .editWins).isPlain)
    #expect(!TableRules(columns: ["a": ColumnRules(policy: .max)]).isPlain)
    var rules = TableRules.standard
    rules.columns["a"] = ColumnRules(policy: .max)
    #expect(!rules.isPlain)
  }

  @Test("each type accepts its own class and NULL; reals accept integers")
  func types() {
    let values: [Value] = [.text("a"), .integer(1), .real(0.5), .blob([1]), .null]
    let admitted: [(ColumnType, [Bool])] = [
      (.text, [true, false, false, false, true]), (.integer, [false, true, false, false, true]),
      (.real, [false, true, true, false, true]), (.blob, [false, false, false, true, true]),
      (.any, [true, true, true, true, true]),
    ]
    for (type, expected) in admitted { #expect(values.map { type.admits($0) } == expected) }
  }

  @Test("a fault is reported with its place and the expected value", arguments: wrong)
  func refused(text: String, reason: String) {
    do {
      Issue.record("accepted: \(try Self.read(text))")
    } catch {
      #expect("\(error)".contains(reason), "\(error)")
    }
  }

  static let wrong: [(String, String)] = [
    ("", "ends too early"),
    ("[]", "an object was expected"),
    ("{} {}", "more after"),
    (
      #"{"table":{}}"#,
      "the schema: 'table' is none of version, minimumProtocol, requireCursor, tables"
    ),
    (#"{"version":"3"}"#, "version: a number was expected"),
    (#"{"version":-1}"#, "version: -1 is not within 0"),
    (#"{"version":1.5}"#, "not a 64-bit integer"),
    (#"{"version":9007199254740992}"#, "is not within 0"),
    (#"{"version":1,"version":1}"#, "version is a duplicate"),
    (#"{"minimumProtocol":0}"#, "minimumProtocol: 0 is not within 1"),
    (#"{"tables":[]}"#, "tables: an object"),
    (#"{"tables":{"":{}}}"#, "tables: a name is empty"),
    (#"{"tables":{"a\u0000":{}}}"#, "control character"),
    (#"{"tables":{"Ferry_x":{}}}"#, "tables: Ferry_x belongs to the server"),
    (#"{"tables":{"sqlite_master":{}}}"#, "belongs to the server"),
    (#"{"tables":{"t":{},"t":{}}}"#, "tables: t is a duplicate"),
    (#"{"tables":{"t":"ask"}}"#, "tables.t: an object of rules was expected"),
    (#"{"tables":{"t":{"policies":"ask"}}}"#, "tables.t: 'policies' is none of policy, deletes"),
    (#"{"tables":{"t":{"policy":"ask","policy":"ask"}}}"#, "tables.t: policy is a duplicate"),
    (
      #"{"tables":{"t":{"policy":"maximum"}}}"#,
      "tables.t.policy: 'maximum' is not one of last-writer-wins, server-wins, client-wins, max"
    ),
    (#"{"tables":{"t":{"policy":null}}}"#, "tables.t.policy: one of last-writer-wins"),
    (
      #"{"tables":{"t":{"deletes":"last-writer-wins"}}}"#,
      "tables.t.deletes: 'last-writer-wins' is not one of delete-wins, edit-wins, ask"
    ),
    (
      #"{"tables":{"t":{"write":"reader"}}}"#,
      "tables.t.write: 'reader' is not one of writer, admin"
    ),
    (#"{"tables":{"t":{"columns":["a"]}}}"#, "tables.t.columns: an object"),
    (#"{"tables":{"t":{"columns":{"a":1}}}}"#, "tables.t.columns.a: a policy's name or an object"),
    (#"{"tables":{"t":{"columns":{"a":"sum"}}}}"#, "tables.t.columns.a: 'sum' is not one of"),
    (#"{"tables":{"t":{"columns":{"a":"max","a":"min"}}}}"#, "tables.t.columns: a is a duplicate"),
    (#"{"tables":{"t":{"columns":{"":"max"}}}}"#, "tables.t.columns: a name is empty"),
    (
      #"{"tables":{"t":{"columns":{"a":{"kind":"text"}}}}}"#,
      "tables.t.columns.a: 'kind' is none of policy, type, required"
    ),
    (
      #"{"tables":{"t":{"columns":{"a":{"type":"int"}}}}}"#,
      "tables.t.columns.a.type: 'int' is not one of text, integer, real, blob, any"
    ),
    (#"{"tables":{"t":{"columns":{"a":{"required":1}}}}}"#, "a.required: true or false"),
    (
      #"{"tables":{"t":{"columns":{"a":{"policy":"counter","type":"real"}}}}}"#,
      "tables.t.columns.a: a column that is counter has type integer"
    ),
    (
      #"{"tables":{"t":{"columns":{"a":{"policy":"set-union","type":"blob"}}}}}"#,
      "a column that is set-union has type text or any"
    ),
    (#"{"tables":{"t":{"definition":{}}}}"#, "tables.t.definition: the key is missing"),
    (#"{"tables":{"t":{"definition":[]}}}"#, "tables.t.definition: an object"),
    (
      #"{"tables":{"t":{"clashes":[{"columns":["a"]}]}}}"#, "tables.t.clashes: the rule is missing"
    ),
    (
      #"{"tables":{"t":{"clashes":[{"columns":["a"],"rule":"x"}]}}}"#,
      "tables.t.clashes.rule: 'x' is not one of parent-returns, child-goes, ask"
    ),
    (
      #"{"tables":{"t":{"clashes":[{"columns":["a","a"],"rule":"ask"}]}}}"#,
      "tables.t.clashes.columns: a foreign key has 1 to 16 different columns"
    ),
    (
      #"{"tables":{"t":{"clashes":[{"columns":["a"],"rule":"ask"},{"columns":["a"],"rule":"ask"}]}}}"#,
      "tables.t.clashes: a foreign key is a duplicate"
    ),
    (#"{"tables":{"t":{"definition":{"key":7}}}}"#, "tables.t.definition.key: a name or an object"),
    (
      #"{"tables":{"t":{"definition":{"key":{}}}}}"#,
      "tables.t.definition.key: it names neither mapped nor value"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":{"mapped":"n","value":[]}}}}}"#,
      "tables.t.definition.key: mapped and value exclude each other"
    ),
    (#"{"tables":{"t":{"definition":{"key":{"value":[]}}}}}"#, "a key has 1 to 16 columns"),
    (
      #"{"tables":{"t":{"definition":{"key":{"value":[{"name":"a","default":1}]}}}}}"#,
      "tables.t.definition.key.value: a column has a name and a type"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","columns":[{"name":"K","type":"text"}]}}}}"#,
      "tables.t.definition: column K is a duplicate, or is of the key"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","columns":[{"name":"a","type":"date"}]}}}}"#,
      "tables.t.definition.columns.type: 'date' is not one of text, integer"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","strict":true,"columns":[{"name":"a","type":"numeric"}]}}}}"#,
      "tables.t.definition: column a is numeric, which no strict table has"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","autoincrement":true}}}}"#,
      "tables.t.definition: autoincrement needs a mapped key"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","columns":[{"type":"text"}]}}}}"#,
      "tables.t.definition.columns: a column has no name"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","sql":"DROP TABLE x"}}}}"#,
      "tables.t.definition: 'sql' is none of key, columns"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","indexes":[["a"]]}}}}"#,
      "tables.t.definition: there is no column a"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","unique":[[]]}}}}"#,
      "tables.t.definition: a list of columns has 1 to 16 of them"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","references":[{"columns":["k"],"table":"ferry_t"}]}}}}"#,
      "tables.t.definition.references: a reference names no table that may be tracked"
    ),
    (
      #"{"tables":{"t":{"definition":{"key":"k","references":[{"columns":["k"],"table":"u","onDelete":"x"}]}}}}"#,
      "tables.t.definition.references.onDelete: 'x' is not one of no-action"
    ),
    (#"{"tables":{"t":{"aliases":"a"}}}"#, "tables.t.aliases: a list of names"),
    (#"{"tables":{"t":{"aliases":[""]}}}"#, "tables.t.aliases: a name is empty"),
    (#"{"tables":{"t":{"aliases":["ferry_t"]}}}"#, "tables.t.aliases: ferry_t is reserved"),
    (#"{"tables":{"t":{"aliases":["T"]}}}"#, "tables.t.aliases: T stands for another one"),
    (
      #"{"tables":{"s":{"aliases":["u"]},"t":{"aliases":["U"]}}}"#,
      "tables.t.aliases: U stands for another one"
    ),
    (
      #"{"tables":{"t":{"columns":{"a":{"aliases":["b"]},"b":"counter"}}}}"#,
      "tables.t.columns.a.aliases: b stands for another one"
    ),
    (#"{"tables":{"t":{"unique":"a"}}}"#, "tables.t.unique: a list of keys"),
    (#"{"tables":{"t":{"unique":["a"]}}}"#, "tables.t.unique: a key that is a list"),
    (#"{"tables":{"t":{"unique":[[1]]}}}"#, "tables.t.unique: a column's name"),
    (#"{"tables":{"t":{"unique":[[]]}}}"#, "tables.t.unique: a key names at least one column"),
    (#"{"tables":{"t":{"unique":[["a","a"]]}}}"#, "a key names a twice"),
    (#"{"tables":{"t":{"unique":[["a"],["a"]]}}}"#, "a key is a duplicate"),
    (#"{"tables":{"t":{"unique":[[""]]}}}"#, "tables.t.unique: a name is empty"),
    (
      #"{"tables":{"t":{"unique":[["a"]],"columns":{"a":"counter"}}}}"#,
      "tables.t.unique: column a is counter"
    ),
  ]

  @Test("documents, tables, columns and keys are bounded")
  func bounds() throws {
    let long = "{}" + String(repeating: " ", count: Limits.standard.schemaBytes - 1)
    #expect(throws: MalformedMessage.self) { try Self.read(long) }
    #expect(try Self.read(String(long.dropLast())) == .empty)
    var limits = Limits.standard
    limits.schemaTables = 1
    limits.columns = 1
    #expect(throws: MalformedMessage.self) {
      try Self.read(#"{"tables":{"a":{},"b":{}}}"#, limits)
    }
    #expect(throws: MalformedMessage.self) {
      try Self.read(#"{"tables":{"a":{"columns":{"a":"max","b":"max"}}}}"#, limits)
    }
    let columns = (0..<17).map { "\"c\($0)\"" }.joined(separator: ",")
    #expect(throws: MalformedMessage.self) {
      try Self.read("{\"tables\":{\"a\":{\"unique\":[[\(columns)]]}}}")
    }
    let keys = (0..<33).map { "[\"c\($0)\"]" }.joined(separator: ",")
    #expect(throws: MalformedMessage.self) {
      try Self.read("{\"tables\":{\"a\":{\"unique\":[\(keys)]}}}")
    }
  }

  @Test("a document that is cut off at any byte is refused")
  func cut() {
    for count in Self.document.indices {
      #expect(throws: MalformedMessage.self) { try Self.read(String(Self.document[..<count])) }
    }
  }
}
