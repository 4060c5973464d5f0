import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

@Suite("The tables of a mirror", .hangLimit)
struct MirrorPlanTests {
  private static let long = String(repeating: "x", count: 64)
  private static let broad = (0..<1_000).map { #"{"name":"c\#($0)","type":"text"}"# }
    .joined(separator: ",")

  private func schema(key: String, columns: String) throws -> SpaceSchema {
    try SpaceSchema(
      decoding: Array(
        #"""
        {"tables":{
          "lists":{"definition":{"key":"id","columns":[{"name":"title","type":"text"}]}},
          "tasks":{"definition":{\#(key),"columns":[\#(columns)]}}}}
        """#.utf8), limits: .standard)
  }

  @Test(
    "a table that PostgreSQL cannot have is left out, with the reason and the next step",
    arguments: [
      (#""key":"id""#, broad, "more than 1,000 columns", "define it with fewer columns"),
      (#""key":"id""#, #"{"name":"\#(long)","type":"text"}"#, long, "shorter names"),
      (#""key":"id""#, #"{"name":"xmin","type":"text"}"#, "a column xmin", "another name"),
      (
        #""key":{"mapped":"id"}"#, #"{"name":"a","type":"text"}"#, "counts its key", "define a text"
      ),
    ])
  func leftOut(key: String, columns: String, reason: String, next: String) throws {
    let plan = try MirrorPlan(try schema(key: key, columns: columns))
    #expect(plan.tables.map(\.name) == ["lists"])
    let omitted = try #require(plan.omitted.first)
    #expect(plan.omitted.count == 1 && omitted.hasPrefix("table tasks"))
    #expect(omitted.contains(reason) && omitted.contains(next), "\(omitted)")
  }

  @Test("a default of the device's time becomes one of PostgreSQL for texts, and none for numbers")
  func currentTime() throws {
    let schema = try schema(
      key: #""key":"id""#,
      columns: #"{"name":"at","type":"text","required":true,"now":"timestamp"},"#
        + #"{"name":"n","type":"numeric","now":"date"}"#)
    let table = try #require(try MirrorPlan(schema).tables.first { $0.name == "tasks" })
    let sql = MirrorSQL(table: table, schema: "public", mirror: 1)
    let statement = try #require(MirrorDefinition(sql: sql).statements.first)
    let time = "to_char(timezone('UTC', now()), 'YYYY-MM-DD HH24:MI:SS')"
    #expect(statement.contains(#""at" text NOT NULL DEFAULT \#(time)"#), "\(statement)")
    #expect(statement.contains(#""n" numeric,"#), "\(statement)")
  }
}
