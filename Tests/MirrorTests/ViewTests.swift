import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Synchronization
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
    schedule.begin(at: start)
    schedule.record("a", at: start + Self.second)
    #expect(!schedule.isDue("b", at: start + Self.second * (ViewSchedule.shareMax - 1)))
    #expect(schedule.isDue("b", at: start + Self.second * ViewSchedule.shareMax))
    #expect(!schedule.isDue("a", at: start + Self.second * ViewSchedule.shareMax))
    #expect(schedule.isDue("a", at: start + ViewSchedule.restMax))
  }

  @Test("all views share the time for comparisons, and the oldest comparison is the next one")
  func shares() {
    let (start, views) = (ContinuousClock.now, 10)
    var slow = ViewSchedule()
    slow.begin(at: start)
    slow.record("a", at: start + Self.second)
    #expect(!slow.isDue("b", at: start + Self.second * ViewSchedule.shareMax, among: views))
    #expect(slow.isDue("b", at: start + Self.second * ViewSchedule.shareMax * views, among: views))
    // A slow one delays no fast one.
    var fast = ViewSchedule()
    fast.begin(at: start)
    fast.record("a", at: start)
    #expect(fast.isDue("b", at: start + Self.second, among: views))
    // A rest has a limit, however long a comparison was. Waits before it do not count.
    slow.begin(at: start)
    slow.record("a", at: start + ViewSchedule.restMax)
    #expect(slow.isDue("b", at: start + ViewSchedule.restMax))
    slow.record("a", at: start + ViewSchedule.restMax)
    #expect(slow.isDue("b", at: start + ViewSchedule.restMax))
    var late = ViewSchedule()
    late.record("a", at: start + Self.second)
    let names = ["late", "new", "fast", "other"].map { Name($0) }
    #expect(
      ViewSchedule.order(names, [names[0]: late, names[2]: fast])
        == [names[1], names[3], names[2], names[0]])
  }

  private static let words = PostgresError(.server, "division by zero", sqlState: "22012")

  @Test("a failed comparison is tried again without a change, and a long one after a long rest")
  func retries() {
    var schedule = ViewSchedule()
    let start = ContinuousClock.now
    _ = schedule.record(Self.words, "a", at: start)
    #expect(!schedule.isDue("a", at: start + Self.second))
    #expect(schedule.isDue("b", at: start + Self.second))
    #expect(schedule.isDue("a", at: start + ViewSchedule.retryPause))
    let limit = ViewSchedule.durationMax
    schedule.begin(at: start)
    _ = schedule.record(Self.words, "a", at: start + limit)
    #expect(!schedule.isDue("b", at: start + limit * (ViewSchedule.shareMax - 1)))
    #expect(schedule.isDue("b", at: start + limit * ViewSchedule.shareMax))
    schedule.record("a", at: start)
    #expect(!schedule.isDue("a", at: start + ViewSchedule.retryPause))
  }

  /// The reasons of failures in a row.
  private func reasons(
    of errors: [any Error], after duration: Duration = .zero
  ) -> [String?] {
    var schedule = ViewSchedule()
    let start = ContinuousClock.now
    return errors.map { error in
      schedule.begin(at: start)
      return schedule.record(error, "a", at: start + duration)
    }
  }

  @Test("lasting errors have PostgreSQL's words, and passing ones are no fault of a view at first")
  func reasons() {
    func reason(_ state: String, _ words: String, after duration: Duration = .zero) -> String? {
      reasons(of: [PostgresError(.server, words, sqlState: state)], after: duration)[0]
    }
    for (state, words) in [
      ("22012", "division by zero"), ("42501", "permission denied for view totals"),
      ("42P01", "relation \"totals\" does not exist"), ("55000", "has not been populated"),
    ] {
      #expect(reason(state, words) == words)
    }
    for state in ["55P03", "40P01", "40001", "53300", "57P01", "57014"] {
      #expect(reason(state, "passing") == nil, "\(state)")
    }
    let limit = ViewSchedule.durationMax
    #expect(
      reason("57014", "canceling", after: limit) == "a comparison takes longer than 30 seconds")
    #expect(reasons(of: [MirrorFault(description: "gone")]) == ["gone"])
  }

  @Test("a passing error that comes with each try becomes a fault, and a cancelled task does not")
  func lasting() {
    let most = ViewSchedule.passingTriesMax
    let none = [String?](repeating: nil, count: most - 1)
    for error in [
      PostgresError(.server, "no such server", sqlState: "08001"),
      PostgresError(.server, "disk full", sqlState: "53100"),
      PostgresError(.connectionLost, "the connection broke"),
    ] {
      #expect(reasons(of: Array(repeating: error, count: most)) == none + [error.message])
    }
    let cancelled = [any Error](repeating: CancellationError(), count: most)
    #expect(reasons(of: cancelled) == none + [nil])
    var schedule = ViewSchedule()
    let lost = PostgresError(.connectionLost, "the connection broke")
    for _ in 1..<most { _ = schedule.record(lost, "", at: .now) }
    schedule.record("a", at: .now)
    #expect(schedule.record(lost, "", at: .now) == nil)
  }

  @Test("rows with an ambiguous key are named by the first key, with the number of others")
  func ambiguous() {
    var rows = AmbiguousRows(keys: 1, first: ["north", "3"], rows: 2)
    #expect(rows.reason == "several rows of one key do not travel: 2 with the key north, 3")
    (rows.keys, rows.first) = (4, ["north", nil])
    #expect(
      rows.reason
        == "rows without a key do not travel: 2 with the key north, NULL, and 3 other keys")
  }

  @Test("rows that no device can hold are named by the part and the key of the first one")
  func unfit() {
    var rows = UnfitRows(rows: 1, fault: "column at", first: ["north", nil])
    #expect(
      rows.reason
        == "rows that no device can hold do not travel: column at of the row with the key north, NULL"
    )
    rows = UnfitRows(rows: 3, fault: "the key", first: ["north"])
    #expect(
      rows.reason
        == "rows that no device can hold do not travel: the key north, and 2 other rows")
  }

  // MARK: Adopting

  private static func totals(_ total: String = "int8") -> CompanyTable {
    CompanyTable(
      name: "totals", kind: "v",
      columns: [
        CompanyColumn(name: "customer", type: "int4", shownType: "integer"),
        CompanyColumn(name: "total", type: total, shownType: total),
        CompanyColumn(name: "at", type: "timestamptz", shownType: "timestamptz"),
      ], missingRights: ["INSERT", "UPDATE", "DELETE", "TRIGGER"])
  }

  private func shown(_ key: String..., kind: String = "v") throws -> CompanyTable {
    var table = Self.totals()
    table.kind = kind
    try table.show(ViewSource(key: key))
    return table
  }

  @Test("a view with a named key is a read-only table with the types of devices")
  func planned() throws {
    var adoption = MirrorAdoption()
    let plan = try AdoptionPlan([try shown("customer")], ["totals": adoption])
    let table = plan.tables[0]
    #expect(table.definition.key == .value([DeclaredKeyColumn("customer", .integer)]))
    #expect(table.definition.columns.map(\.name) == ["total", "at"])
    #expect(table.adoption.limits.missing == WriteLimits.Right.allCases)
    #expect(table.adoption.view == ViewSource(key: ["customer"]))
    #expect(table.types.isEmpty && table.adoption.carried.isEmpty)
    #expect(plan.omitted == ["writes of devices to table totals: the mirror only reads it"])
    #expect(try plan.added(to: .empty)?.tables["totals"]?.write == .admin)
    let ordinary = try AdoptionPlan(
      [CompanyTable(name: "t", columns: Self.totals().columns, key: ["customer"])], [:])
    #expect(try ordinary.added(to: .empty)?.tables["t"]?.write == .writer)
    adoption.condition = "total > 0"
    #expect(throws: MirrorFault.self) {
      try AdoptionPlan([try shown("customer")], ["totals": adoption])
    }
  }

  @Test("a view without a key, or with an unknown column as the key, is refused")
  func keys() throws {
    for (key, words) in [([], "it is a view without a key"), (["year"], "has no column year")] {
      var table = Self.totals()
      let fault = #expect(throws: MirrorFault.self) { try table.show(ViewSource(key: key)) }
      #expect(fault?.description.contains(words) == true)
    }
    var table = Self.totals()
    (table.kind, table.key) = ("r", ["customer"])
    try table.show(ViewSource())
    #expect(table.key == ["customer"] && table.lackingRights == [])
    table.missingRights.append("SELECT")
    #expect(table.lackingRights == ["SELECT"])
  }

  @Test("a view is recognised by the kind, and no log captures for one")
  func recognised() throws {
    var configuration = MirrorConfiguration(
      name: "crm", server: "", space: "s", database: "", schema: "public")
    var table = Self.totals()
    #expect(configuration.view(of: table) == ViewSource())
    table.kind = "r"
    #expect(configuration.view(of: table) == nil && !configuration.hasViews)
    configuration.adoptions["totals"] = MirrorAdoption()
    configuration.adoptions["totals"]?.view = ViewSource(key: ["customer"])
    #expect(configuration.view(of: table) == ViewSource(key: ["customer"]))
    #expect(configuration.hasViews)
    var suitability = LogSuitability(
      version: 150_000, level: "logical", mayReplicate: true, mayPublish: true)
    suitability.views = ["totals"]
    #expect(suitability.obstacle?.contains("the changes of totals") == true)
  }

  // MARK: The copy

  private func sql() throws -> [MirrorSQL] {
    var schema = SpaceSchema.empty
    let plan = try AdoptionPlan([try shown("customer")], [:])
    schema = try #require(try plan.added(to: schema))
    let tables = try MirrorPlan(schema).adopting(["totals": plan.tables[0].adoption]).tables
    return [0, 7].map { MirrorSQL(table: tables[0], schema: "public", mirror: $0) }
  }

  @Test("the copy is an empty table of the mirror, and a plan looks at the view itself")
  func copy() throws {
    let sql = try sql()
    #expect(sql[0].target == sql[0].view && sql[1].view == sql[0].target)
    #expect(sql[1].target.hasPrefix("ferry_mirror.view_7_"))
    let make = ViewSQL(sql: sql[1]).makeCopy
    // Programs wait for the transaction that makes it.
    #expect(!make.contains("SELECT") && !make.contains("\"public\""))
    #expect(sql[1].estimate == "0::bigint" && sql[0].check.hasSuffix("LIMIT 0"))
    #expect(make.contains("\"total\" bigint") && make.contains("\"at\" text COLLATE \"C\""))
  }

  @Test("a query is read in the place of a view")
  func query() throws {
    var sql = try sql()[1]
    sql.table.adoption?.view = ViewSource(key: ["customer"], query: "SELECT 1 -- all")
    #expect(sql.view == "(SELECT 1 -- all\n)" && sql.target.hasPrefix("ferry_mirror.view_7_"))
    // A comparison finds the names in a query by the role's path, and so does the check.
    #expect(sql.checkPath == nil)
    sql.table.adoption?.view = nil
    #expect(sql.checkPath == "pg_catalog, pg_temp")
    var table = Self.totals()
    try table.show(ViewSource(key: ["customer"], query: "SELECT 1"))
    #expect(table.view?.query == "SELECT 1")
  }

  @Test("another type of a view's column is followed if devices have the same, and else a fault")
  func retyped() throws {
    let read = ViewSQL(sql: try sql()[1])
    let view = "public.totals"
    #expect(try read.refresh(view, Self.totals()) == read.refresh(view, Self.totals("int2")))
    for type in ["numeric", "float8", "text"] {
      let fault = #expect(throws: MirrorFault.self) { try read.refresh(view, Self.totals(type)) }
      #expect(fault?.description.contains("column total is integer on devices") == true)
    }
    var lacking = Self.totals()
    lacking.columns.remove(at: 1)
    let fault = #expect(throws: MirrorFault.self) { try read.refresh(view, lacking) }
    #expect(fault?.description == "column total is gone")
  }

  @Test("a comparison leaves out keys without room in an index, and times that devices do not have")
  func unfitValues() throws {
    let read = ViewSQL(sql: try sql()[1])
    var found = Self.totals()
    let statement = try read.refresh("public.totals", found)
    // The triggers of the copy see a text only.
    #expect(statement.contains("NOT isfinite(t.\"at\")"))
    #expect(statement.contains("> 512 THEN 'the key'"))
    #expect(statement.contains("r.\"ferry_fault\" IS NULL"))
    found.columns[2].type = "text"
    #expect(try !read.refresh("public.totals", found).contains("isfinite"))
    var named = try sql()[1]
    named.table.columns[1].name = "ferry_fault"
    found.columns[2].name = "ferry_fault"
    let other = try ViewSQL(sql: named).refresh("public.totals", found)
    #expect(other.contains("r.\"ferry_fault_\" IS NULL"))
  }

  /// A database that refuses everything with one error.
  private final class Refusing: MirrorConnections {
    let error: PostgresError
    let tries = Mutex(0)

    init(error: PostgresError) { self.error = error }

    func run<Value: Sendable>(
      _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
      tries.withLock { $0 += 1 }
      throw error
    }
  }

  @Test("a failing view stops no other one, and each is reported once")
  func failing() async throws {
    let sql = try sql()[1]
    var other = sql
    other.table.name = "others"
    let lines = Mutex<[String]>([])
    let views = MirrorViews(
      "public", MirrorLedger(number: 7), Refusing(error: Self.words),
      { _, detail in lines.withLock { $0.append(detail) } })
    for _ in 0..<2 { await views.refresh([sql, other], all: true) }
    #expect(
      lines.withLock { $0 } == ["view totals: division by zero", "view others: division by zero"])
  }

  @Test("a reason that cannot be stored for the status is stored later")
  func storing() async throws {
    let database = Refusing(error: Self.words)
    let views = MirrorViews("public", MirrorLedger(number: 7), database, { _, _ in })
    let sql = try sql()[1]
    // The view, the reason, and the reason once more: a process may look once only.
    await views.refresh([sql], all: true)
    #expect(database.tries.withLock { $0 } == 3)
    // A next look, also without any view.
    await views.refresh([])
    #expect(database.tries.withLock { $0 } == 5)
  }
}
