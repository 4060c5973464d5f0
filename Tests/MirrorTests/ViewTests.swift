import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// Views of a company as read-only tables, without a database.
@Suite("Views as tables of a space", .hangLimit)
struct ViewTests {
  private static let second = Duration.seconds(1)

  @Test("a view is compared when a table below it has changed, and not too often")
  func schedule() {
    var schedule = ViewSchedule()
    let start = ContinuousClock.now
    #expect(schedule.isDue("a", at: start))
    schedule.record("a", from: start, to: start + Self.second)
    #expect(!schedule.isDue("b", at: start + Self.second * (ViewSchedule.shareMax - 1)))
    #expect(schedule.isDue("b", at: start + Self.second * ViewSchedule.shareMax))
    #expect(!schedule.isDue("a", at: start + Self.second * ViewSchedule.shareMax))
    #expect(schedule.isDue("a", at: start + ViewSchedule.restMax))
  }

  private static var totals: CompanyTable {
    CompanyTable(
      name: "totals", kind: "v",
      columns: [
        CompanyColumn(name: "customer", type: "int4", shownType: "integer"),
        CompanyColumn(name: "total", type: "numeric", shownType: "numeric"),
      ], missingRights: ["INSERT", "UPDATE", "DELETE", "TRIGGER"])
  }

  private func shown(_ key: String...) throws -> CompanyTable {
    var table = Self.totals
    try table.show(ViewSource(key: key))
    return table
  }

  @Test("a view with a named key is a read-only table")
  func planned() throws {
    var adoption = MirrorAdoption()
    adoption.view = ViewSource(key: ["customer"])
    let plan = try AdoptionPlan([try shown("customer")], ["totals": adoption])
    let table = plan.tables[0]
    #expect(table.definition.key == .value([DeclaredKeyColumn("customer", .integer)]))
    #expect(table.definition.columns.map(\.name) == ["total"])
    #expect(table.adoption.limits.missing == WriteLimits.Right.allCases)
    #expect(plan.omitted == ["writes of devices to table totals: it is a view"])
    adoption.condition = "total > 0"
    #expect(throws: MirrorFault.self) {
      try AdoptionPlan([try shown("customer")], ["totals": adoption])
    }
  }

  @Test("a view without a key, or with an unknown column as the key, is refused")
  func keys() throws {
    for key in [[], ["year"]] {
      var table = Self.totals
      #expect(throws: MirrorFault.self) { try table.show(ViewSource(key: key)) }
    }
    var table = Self.totals
    (table.kind, table.key) = ("r", ["customer"])
    try table.show(ViewSource(key: []))
    #expect(table.key == ["customer"] && table.lackingRights == [])
    table.missingRights.append("SELECT")
    #expect(table.lackingRights == ["SELECT"])
  }

  @Test("the copy is a table of the mirror, and a plan reads the view itself")
  func copy() throws {
    var schema = SpaceSchema.empty
    schema.tables["totals"] = TableRules(
      definition: DeclaredTable(key: "customer", columns: [DeclaredColumn("total", .text)]))
    var adoption = MirrorAdoption(columns: ["total"])
    adoption.view = ViewSource(key: ["customer"])
    let table = try MirrorPlan(schema).adopting(["totals": adoption]).tables[0]
    let sql = [0, 7].map { MirrorSQL(table: table, schema: "public", mirror: $0) }
    #expect(sql[0].target == sql[0].view)
    #expect(sql[1].target.hasPrefix("ferry_mirror.view_7_") && sql[1].view == sql[0].target)
    #expect(sql[1].makeCopy.count == 2 && sql[1].refresh?.contains("DO UPDATE SET") == true)
  }
}
