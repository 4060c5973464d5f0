import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The writes of devices beyond the rights of a mirror's role, without a database.
@Suite("Limits of a mirror's role", .hangLimit)
struct WriteLimitTests {
  /// A table in which the role may do all.
  private static var staff: CompanyTable {
    CompanyTable(
      name: "staff",
      columns: ["id", "name", "salary"].map {
        CompanyColumn(name: $0, type: "text", shownType: "text")
      },
      key: ["id"])
  }

  /// Returns the planned limits, and the parts left behind.
  private func plan(
    _ change: (inout CompanyTable) -> Void, _ adoption: MirrorAdoption = MirrorAdoption()
  ) throws -> (limits: WriteLimits, left: [String]) {
    var table = Self.staff
    change(&table)
    let plan = try AdoptionPlan([table], ["staff": adoption])
    return (plan.tables[0].adoption.limits, plan.omitted)
  }

  @Test(
    "a role with all rights has no limits, and one that may change keys makes a read-only table")
  func whole() throws {
    let all = try plan { _ in }
    #expect(all.limits == WriteLimits() && all.left == [])
    let none = try plan { table in
      table.missingRights = ["INSERT", "DELETE"]
      for place in table.columns.indices {
        (table.columns[place].isUpdatable, table.columns[place].isInsertable) = (place == 0, false)
      }
    }
    #expect(none.limits.missing == [.insert, .delete])
    #expect(none.limits.readOnly == ["name", "salary"] && none.limits.unset == [])
    #expect(
      none.left == [
        "writes of devices to table staff: the user of the database lacks INSERT, DELETE on it",
        "writes of devices (name, salary) of table staff: the user of the database lacks UPDATE on it",
      ])
    let kept = try plan { $0.missingRights = ["DELETE"] }
    #expect(kept.limits.missing == [.delete] && kept.limits.readOnly == [])
  }

  @Test("columns without a right are read-only, and a key without one takes no new rows")
  func columns() throws {
    let salary = try plan { $0.columns[2].isUpdatable = false }
    #expect(salary.limits.readOnly == ["salary"] && salary.limits.missing == [])
    #expect(
      salary.left == [
        "writes of devices (salary) of table staff: the user of the database lacks UPDATE on it"
      ])
    let part = try plan({ $0.columns[2].isUpdatable = false }, MirrorAdoption(columns: ["name"]))
    #expect(part.limits == WriteLimits())
    let key = try plan { $0.columns[0].isInsertable = false }
    #expect(key.limits.missing == [.insert] && key.limits.unset == [])
    #expect(
      key.left.count == 1 && key.left[0].contains("INSERT on a column that each new row needs"))
  }

  private func limits(
    _ missing: [WriteLimits.Right], readOnly: [String] = [], unset: [String] = []
  ) -> WriteLimits {
    var limits = WriteLimits()
    (limits.missing, limits.readOnly, limits.unset) = (missing, readOnly, unset)
    return limits
  }

  @Test("the changes of rights are named once, whole ones instead of their columns")
  func changes() {
    let (none, salary) = (limits([]), limits([], readOnly: ["salary"], unset: ["salary"]))
    let all = limits([.insert, .update, .delete], readOnly: ["name", "salary"])
    #expect(none.changes(since: none) == "")
    #expect(salary.changes(since: none) == "UPDATE (salary), INSERT (salary) withdrawn")
    #expect(none.changes(since: salary) == "UPDATE (salary), INSERT (salary) granted")
    #expect(all.changes(since: none) == "INSERT, UPDATE, DELETE withdrawn")
    #expect(none.changes(since: all) == "INSERT, UPDATE, DELETE granted")
    #expect(
      limits([.delete], readOnly: ["name"]).changes(since: salary)
        == "UPDATE (salary), INSERT (salary) granted; DELETE, UPDATE (name) withdrawn")
  }

  @Test("statements beyond the rights are left out")
  func statements() throws {
    var schema = SpaceSchema.empty
    schema.tables["staff"] = TableRules(
      definition: DeclaredTable(key: "id", columns: [DeclaredColumn("name", .text)]))
    func sql(_ limits: WriteLimits) throws -> MirrorSQL {
      var adoption = MirrorAdoption(columns: ["name"])
      adoption.limits = limits
      let plan = try MirrorPlan(schema).adopting(["staff": adoption])
      return MirrorSQL(table: plan.tables[0], schema: "public", mirror: 1)
    }
    let free = StepSQL(sql: try sql(WriteLimits()))
    #expect(free.insert != nil && free.update != nil)
    let fixed = try sql(limits([.insert, .update, .delete], readOnly: ["name"]))
    let step = StepSQL(sql: fixed)
    #expect(step.insert == nil && step.update == nil)
    let answer = AnswerSQL(sql: fixed).captureMade(isDelete: false)
    #expect(answer.contains("'permission denied for table staff'"))
    for isDelete in [false, true] {
      #expect(throws: MirrorFault.self) { try fixed.table.checkRights(isDelete: isDelete) }
    }
    let kept = try sql(limits([.insert, .delete])).table
    try kept.checkRights(isDelete: false)
    #expect(throws: MirrorFault.self) { try kept.checkRights(isDelete: true) }
  }

  @Test("settings that differ in rights alone are of one mirror")
  func settings() {
    var settings = MirrorConfiguration(
      name: "crm", server: "http://a", space: "s", database: "postgres://a/b", schema: "public")
    settings.adoptions["staff"] = MirrorAdoption(columns: ["name"])
    var other = settings
    other.adoptions["staff"]?.limits = limits([.delete])
    #expect(other.isSame(as: settings) && other != settings)
    #expect(other.withLimits(of: settings) == settings)
  }
}
