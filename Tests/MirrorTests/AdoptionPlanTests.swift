import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The decisions about a company's tables, without a database.
@Suite("Plans of adoption", .hangLimit)
struct AdoptionPlanTests {
  private static func column(
    _ name: String, _ type: String?, precision: Int? = nil, required: Bool = false,
    default sql: String? = nil
  ) -> CompanyColumn {
    CompanyColumn(
      name: name, type: type, shownType: type ?? "mood", precision: precision,
      isRequired: required, defaultSQL: sql)
  }

  private static var lists: CompanyTable {
    CompanyTable(
      name: "lists", columns: [column("id", "uuid", required: true), column("name", "varchar")],
      key: ["id"])
  }

  private static var tasks: CompanyTable {
    CompanyTable(
      name: "tasks",
      columns: [
        column("id", "int4", required: true), column("title", "text", required: true),
        column("done", "bool", required: true, default: "false"), column("list", "uuid"),
      ], key: ["id"],
      references: [CompanyReference(columns: ["list"], table: "lists", to: ["id"], onDelete: "c")])
  }

  private func plan(
    _ tables: CompanyTable..., chosen: [String: MirrorAdoption] = [:]
  ) throws -> AdoptionPlan {
    try AdoptionPlan(tables, chosen)
  }

  private func fault(
    _ table: CompanyTable, _ chosen: MirrorAdoption = MirrorAdoption()
  ) -> String? {
    do {
      _ = try plan(table, chosen: [table.name: chosen])
      return nil
    } catch {
      return "\(error)"
    }
  }

  @Test("each table gets a key, columns with types, defaults and foreign keys")
  func tables() throws {
    let plan = try plan(Self.lists, Self.tasks)
    #expect(plan.omitted == [])
    #expect(
      plan.tables[0].definition
        == DeclaredTable(key: "id", columns: [DeclaredColumn("name", .text)]))
    #expect(plan.tables[0].types == ["id": .uuid])
    #expect(
      plan.tables[1].definition
        == DeclaredTable(
          key: .value([DeclaredKeyColumn("id", .integer)]),
          columns: [
            DeclaredColumn("title", .text, isRequired: true),
            DeclaredColumn("done", .integer, isRequired: true, defaultValue: 0),
            DeclaredColumn("list", .text),
          ], references: [DeclaredReference(["list"], to: "lists", onDelete: .cascade)]))
    #expect(plan.tables[1].types == ["done": .boolean, "list": .uuid])
  }

  @Test(
    "each type of PostgreSQL has a type on devices that keeps its values",
    arguments: [
      ("int2", nil, "integer", "bigint"), ("int8", nil, "integer", "bigint"),
      ("float4", nil, "real", "double precision"), ("numeric", 15, "numeric", "numeric"),
      // More digits than a real number of SQLite keeps.
      ("numeric", 16, "text", "numeric"), ("numeric", nil, "text", "numeric"),
      ("bpchar", nil, "text", "text"), ("bytea", nil, "blob", "bytea"),
      ("json", nil, "text", "json"), ("jsonb", nil, "text", "jsonb"),
      ("timestamptz", nil, "text", "timestamptz"), ("timestamp", nil, "text", "timestamp"),
      ("date", nil, "text", "date"), ("uuid", nil, "text", "uuid"),
    ] as [(String, Int?, String, String)])
  func types(_ type: String, _ precision: Int?, _ affinity: String, _ mirrored: String) throws {
    let found = Self.column("c", type, precision: precision).mirrored
    #expect(found?.affinity.rawValue == affinity)
    #expect(found?.type.rawValue == mirrored)
    if let found { #expect(found.type.suits(found.affinity)) }
  }

  private static func type(
    _ name: String, _ parts: [String], kind: String = "b", element: String? = nil
  ) -> CompanyType {
    CompanyType(schema: "pg_catalog", name: name, parts: parts, kind: kind, element: element)
  }

  @Test(
    "values of other types travel as texts, arrays as JSON, and independent of settings",
    arguments: [
      (type("mood", ["enum"], kind: "e"), .text, false, true),
      (type("tsvector", ["tsvector"]), .text, false, false),
      (type("interval", ["interval"]), .text, true, true),
      (type("inet", ["inet"]), .output, false, true),
      (type("xml", ["xml"]), .xml, false, false),
      (type("geometry", [".geometry"]), .text, true, false),
      (type("_text", ["text"], element: "text"), .texts, false, false),
      (type("_int4", ["int4"], element: "int4"), .json, false, false),
      (type("_float8", ["float8"], element: "float8"), .json, true, false),
      (type("_pair", ["int4"], element: ".pair"), .texts, false, false),
      (type("tstzrange", ["timestamptz"], kind: "r"), .text, true, true),
      (type("tstzmultirange", ["timestamptz"], kind: "m"), .text, true, false),
      (type("pair", ["int4", "text"], kind: "c"), .text, false, false),
    ] as [(CompanyType, CarriedType.Form, Bool, Bool)])
  func carried(_ type: CompanyType, _ form: CarriedType.Form, _ follows: Bool, _ isShort: Bool) {
    #expect(
      type.carried
        == CarriedType(
          schema: "pg_catalog", name: type.name, form: form, followsSettings: follows,
          isShort: isShort))
  }

  @Test(
    "a type whose text follows the locale or other objects has no counterpart, nor has one with it")
  func uncarried() {
    for parts in [["money"], ["int4", "money"], ["regclass"], []] {
      #expect(Self.type("t", parts, kind: "c").carried == nil)
    }
    #expect(Self.type("_xml", ["xml"], element: "xml").carried == nil)
    var table = Self.lists
    table.columns[1] = Self.column("name", "money", required: true)
    table.columns[1].origin = Self.type("money", ["money"])
    #expect(fault(table)?.contains("money depends on the locale") == true)
  }

  @Test("names of types are quoted, and a column of words for a search is filled by a trigger")
  func carriedColumns() throws {
    var table = Self.lists
    table.columns[1] = Self.column("name", nil, required: true, default: "'b'::\"x y\".\"a\"\"b\"")
    table.columns[1].origin = CompanyType(
      schema: "x y", name: "a\"b", parts: ["enum"], kind: "e")
    table.columns.append(Self.column("words", "tsvector", required: true))
    table.columns[2].origin = Self.type("tsvector", ["tsvector"])
    let made = try plan(table).tables[0]
    #expect(
      made.definition.columns == [
        DeclaredColumn("name", .text, isRequired: true, defaultValue: "b"),
        DeclaredColumn("words", .text),
      ])
    #expect(made.adoption.carried.map(\.name) == ["name", "words"])
    #expect(made.adoption.carried[0].type.decoded("x.c0") == "x.c0::\"x y\".\"a\"\"b\"")
    let schema = try #require(try plan(table).added(to: .empty))
    let mirrored = try MirrorPlan(schema).adopting(["lists": made.adoption])
    #expect(mirrored.tables[0].columns[0].type == .carried(made.adoption.carried[0].type))
  }

  @Test("a key of a fixed length has no blanks at the end")
  func paddedKey() throws {
    var table = Self.lists
    table.columns[0] = Self.column("id", "bpchar", required: true)
    let made = try plan(table).tables[0]
    #expect(made.definition.key == .text("id"))
    let schema = try #require(try plan(table).added(to: .empty))
    let mirrored = try MirrorPlan(schema).adopting(["lists": made.adoption]).tables[0]
    #expect(try mirrored.texts(ofKey: ["ALFKI"]) == ["ALFKI"])
    #expect(throws: MirrorFault.self) { try mirrored.texts(ofKey: ["ALF "]) }
  }

  @Test("a column that devices cannot have stays behind, unless no row could be added without it")
  func columns() throws {
    var table = Self.tasks
    table.references = []
    table.columns += [
      Self.column("price", "money"),
      Self.column("mood", nil, required: true, default: "'calm'::mood"),
      CompanyColumn(name: "sum", type: "int4", shownType: "integer", isGenerated: true),
      CompanyColumn(
        name: "number", type: "int8", shownType: "bigint", isRequired: true, identity: "a"),
    ]
    let plan = try plan(table)
    #expect(plan.tables[0].adoption.columns == ["title", "done", "list"])
    #expect(
      plan.omitted == [
        "column tasks.price: its type money has no counterpart",
        "column tasks.mood: its type mood has no counterpart",
        "column tasks.sum: PostgreSQL computes it",
        "column tasks.number: PostgreSQL alone counts it",
      ])
    table.columns.append(Self.column("spirit", nil, required: true))
    #expect(fault(table)?.contains("column spirit does not travel") == true)
  }

  @Test("chosen columns alone travel")
  func chosen() throws {
    let plan = try plan(Self.tasks, chosen: ["tasks": MirrorAdoption(columns: ["title"])])
    #expect(plan.tables[0].definition.columns.map(\.name) == ["title"])
    #expect(fault(Self.tasks, MirrorAdoption(columns: ["nil"])) == "table tasks has no column nil")
    #expect(fault(Self.tasks, MirrorAdoption(columns: ["done"]))?.contains("column title") == true)
  }

  @Test("a table that devices cannot have is refused with the reason")
  func refused() {
    var table = Self.lists
    table.key = []
    #expect(fault(table)?.hasSuffix("it has no primary key") == true)
    for (kind, reason) in [("v", "a view"), ("f", "a foreign table")] {
      table.kind = kind
      #expect(fault(table)?.hasSuffix("it is \(reason)") == true)
    }
    table = Self.lists
    table.isDivided = true
    #expect(fault(table)?.contains("divided") == true)
    table = Self.lists
    table.isKeyDeferrable = true
    #expect(fault(table)?.contains("deferrable") == true)
    table = Self.lists
    table.missingRights = ["UPDATE", "TRIGGER"]
    #expect(fault(table)?.hasSuffix("lacks UPDATE, TRIGGER on it") == true)
    table.grantRequiredRights()
    #expect(fault(table) == nil)
    table = Self.lists
    table.columns[0].type = "float8"
    #expect(fault(table)?.contains("a key consists of integers, texts, UUIDs and times") == true)
    table.name = "ferry_lists"
    #expect(fault(table)?.contains("belongs to Ferry") == true)
  }

  @Test("a partitioned table is adopted by its name, with all rows")
  func partitioned() throws {
    var table = Self.lists
    table.kind = "p"
    #expect(try plan(table).tables[0].adoption.isPartitioned)
    #expect(try !plan(Self.lists).tables[0].adoption.isPartitioned)
    #expect(fault(table, MirrorAdoption(condition: "true"))?.contains("--where") == true)
    let space = MirrorAdoption(space: SpaceColumn("name", value: "a"))
    #expect(fault(table, space)?.contains("--space-column") == true)
    table.partitionFault = "old is a foreign table"
    #expect(fault(table)?.contains("partition old is a foreign table") == true)
    table = Self.lists
    table.parent = "all_lists"
    #expect(fault(table)?.contains("adopt table all_lists") == true)
  }

  @Test(
    "a time in a key has the form of PostgreSQL, and is a time",
    arguments: [
      (MirrorType.date, "2024-02-29", true), (.date, "2026-02-29", false),
      (.date, "2026-04-31", false), (.date, "0000-01-01", false), (.date, "2026-1-01", false),
      (.date, "infinity", false), (.timestamp, "2026-01-01T23:59:59.000001", true),
      (.timestamp, "2026-01-01T24:00:00.000000", false), (.timestamp, "2026-01-01", false),
      (.timestamptz, "2026-01-01T00:00:00.000000Z", true),
      (.timestamptz, "2026-01-01T00:00:00.000000+00", false),
      (.timestamptz, "2026-01-01 00:00:00.000000Z", false),
    ] as [(MirrorType, String, Bool)])
  func times(_ type: MirrorType, _ text: String, _ isKey: Bool) {
    let column = MirrorColumn(name: "at", affinity: .text, type: type)
    let table = MirrorTable(
      name: "t", key: [column], columns: [], unique: [], indexes: [], references: [])
    #expect(((try? table.texts(ofKey: [.text(text)])) != nil) == isKey)
  }

  @Test("a foreign key that devices cannot keep is left out with the reason")
  func references() throws {
    let alone = try plan(Self.tasks)
    #expect(
      alone.omitted == [
        "foreign key (list) of table tasks: it refers to a table that is not adopted"
      ])
    let limited = try plan(
      Self.lists, Self.tasks, chosen: ["lists": MirrorAdoption(condition: "name <> ''")])
    #expect(
      limited.omitted == ["foreign key (list) of table tasks: not all rows of table lists travel"])
    #expect(limited.tables[1].definition.references == [])
    var other = Self.tasks
    other.references[0].to = ["name"]
    #expect(
      try plan(Self.lists, other).omitted == [
        "foreign key (list) of table tasks: it does not refer to the key of table lists"
      ])
    other.references[0].to = ["id"]
    other.columns[3].type = "text"
    #expect(try plan(Self.lists, other).omitted.first?.contains("other types") == true)
  }

  @Test("the column that names a row's space does not travel, unless it is a part of the key")
  func spaces() throws {
    var tasks = Self.tasks
    tasks.columns.append(Self.column("account", "int4", required: true))
    let chosen = MirrorAdoption(space: SpaceColumn("account", value: "7"))
    let made = try plan(tasks, chosen: ["tasks": chosen])
    #expect(made.tables[0].definition.columns.map(\.name) == ["title", "done", "list"])
    #expect(made.tables[0].adoption.space == SpaceColumn("account", value: "7"))
    #expect(made.omitted.first == "column tasks.account: it names the space of a row")
    // Without the option, no device could add a row with it.
    #expect(fault(tasks, MirrorAdoption(columns: ["title"]))?.contains("column account") == true)
    var parent = Self.lists
    parent.columns.append(Self.column("account", "int4"))
    let both = try plan(parent, tasks, chosen: ["lists": chosen, "tasks": chosen])
    #expect(
      both.omitted.last == "foreign key (list) of table tasks: not all rows of table lists travel")
    tasks.key = ["account", "id"]
    let keyed = try plan(tasks, chosen: ["tasks": chosen])
    #expect(keyed.tables[0].definition.key.names == ["account", "id"])
    #expect(fault(Self.tasks, chosen)?.contains("has no column account") == true)
    tasks.columns[4].type = "float8"
    tasks.key = ["id"]
    #expect(fault(tasks, chosen)?.contains("cannot name the space of a row") == true)
  }

  @Test("keys of several columns and unique keys travel")
  func keys() throws {
    let seats = CompanyTable(
      name: "seats",
      columns: [
        Self.column("hall", "uuid", required: true), Self.column("place", "int2", required: true),
        Self.column("guest", "text"), Self.column("price", "money"),
      ], key: ["hall", "place"], unique: [["guest"], ["price"]])
    let table = try plan(seats).tables[0]
    #expect(
      table.definition.key
        == .value([DeclaredKeyColumn("hall", .text), DeclaredKeyColumn("place", .integer)]))
    #expect(table.types == ["hall": .uuid])
    #expect(table.definition.unique == [["guest"]])
  }

  @Test(
    "a default value that is a constant is the devices' as well",
    arguments: [
      ("text", "'it''s'::text", Value.text("it's")), ("varchar", "'a'::character varying", "a"),
      ("int4", "42", 42), ("int4", "'-1'::integer", -1), ("bool", "true", 1),
      ("timestamptz", "now()", .null), ("int4", "nextval('s'::regclass)", .null),
      ("text", "('a'::text || 'b'::text)", .null),
    ] as [(String, String, Value)])
  func defaults(_ type: String, _ sql: String, _ value: Value) throws {
    var table = Self.lists
    table.columns[1] = Self.column("name", type, default: sql)
    #expect(try plan(table).tables[0].definition.columns[0].defaultValue == value)
  }

  @Test("a definition of the space has to agree, in whatever order")
  func agreement() throws {
    let plan = try plan(Self.lists, Self.tasks)
    let added = try #require(try plan.added(to: SpaceSchema(version: 3)))
    #expect(added.version == 4)
    #expect(added.tables["tasks"]?.definition == plan.tables[1].definition)
    #expect(try plan.added(to: added) == nil)
    var other = added
    other.tables["tasks"]?.definition?.columns.reverse()
    #expect(try plan.added(to: other) == nil)
    other.tables["tasks"]?.definition?.columns[0].affinity = .blob
    #expect(throws: MirrorFault.self) { try plan.added(to: other) }
    other = added
    other.tables["tasks"]?.definition?.columns.append(DeclaredColumn("more", .text))
    #expect(throws: MirrorFault.self) { try plan.added(to: other) }
    other = added
    other.tables["lists"]?.definition?.key = .mapped("id")
    #expect(throws: MirrorFault.self) { try plan.added(to: other) }
    other = added
    other.tables["tasks"]?.definition?.references = []
    #expect(throws: MirrorFault.self) { try plan.added(to: other) }
  }

  @Test("one plan names the reasons against all tables, and keeps the suitable ones")
  func refusals() throws {
    var view = Self.lists
    (view.name, view.kind) = ("view", "v")
    var bare = Self.lists
    (bare.name, bare.key) = ("bare", [])
    let plan = AdoptionPlan(suitable: [view, Self.lists, bare, Self.tasks], [:])
    #expect(plan.tables.map(\.name) == ["lists", "tasks"])
    #expect(plan.tables[1].definition.references.map(\.table) == ["lists"])
    #expect(
      plan.refused.map(\.description) == [
        "table view cannot be adopted: it is a view",
        "table bare cannot be adopted: it has no primary key",
      ])
    #expect(
      throws: MirrorFault(
        description: plan.refused.map(\.description).joined(separator: "; "))
    ) { try AdoptionPlan([view, Self.lists, bare], [:]) }
  }

  @Test("a unique key without all its columns stays behind with the reason")
  func unique() throws {
    var table = Self.tasks
    table.references = []
    table.columns.append(
      CompanyColumn(name: "size", type: "int4", shownType: "integer", isGenerated: true))
    table.unique = [["title"], ["title", "size"]]
    let plan = try plan(table)
    #expect(plan.tables[0].definition.unique == [["title"]])
    #expect(
      plan.omitted.last == "unique key (title, size) of table tasks: column size does not travel")
  }
}
