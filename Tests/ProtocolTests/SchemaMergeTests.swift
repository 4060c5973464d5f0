import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Schemas that replace others", .hangLimit)
struct SchemaMergeTests {
  private static let former = SpaceSchema(
    version: 4, minimumProtocol: 2, requiresCursor: true,
    tables: [
      "a": TableRules(
        policy: .serverWins, deletes: .ask, write: .admin,
        columns: [
          "v": ColumnRules(policy: .counter), "w": ColumnRules(isRequired: true, aliases: ["x"]),
        ], unique: [["v"], ["w", "v"]], clashes: [DeclaredClash(["w"], .ask)], aliases: ["b"],
        definition: DeclaredTable(key: "id", columns: []))
    ])

  @Test("an empty document loses every rule, and the same document none")
  func losses() {
    #expect(
      SpaceSchema.empty.losses(replacing: Self.former) == [
        "requireCursor", "minimumProtocol", "the definition of a", "policy of a", "deletes of a",
        "write of a", "the policy of column v of a", "the type of column v of a",
        "required of column w of a", "the alias x of column w of a", "the unique key (v) of a",
        "the unique key (w, v) of a", "the clash rule for (w) of a", "the alias b of a",
      ])
    #expect(Self.former.losses(replacing: Self.former).isEmpty)
    #expect(Self.former.losses(replacing: .empty).isEmpty)
  }

  @Test("a rule with another value is no loss")
  func changed() {
    var next = Self.former
    next.tables["a"]?.policy = .max
    next.tables["a"]?.columns["v"] = ColumnRules(policy: .max, type: .real)
    next.tables["a"]?.clashes = [DeclaredClash(["w"], .childGoes)]
    #expect(next.losses(replacing: Self.former).isEmpty)
  }

  @Test("a merged document has all rules of both, and its own count first")
  func merged() {
    var next = SpaceSchema(version: 5)
    #expect(next.merged(into: Self.former).tables == Self.former.tables)
    next.tables["a"] = TableRules(
      deletes: .editWins, columns: ["v": ColumnRules(policy: .min, type: .integer)],
      unique: [["v"], ["z"]], clashes: [DeclaredClash(["w"], .childGoes)])
    next.tables["c"] = TableRules(write: .admin)
    let merged = next.merged(into: Self.former)
    #expect(merged.version == 5 && merged.requiresCursor && merged.minimumProtocol == 2)
    #expect(merged.losses(replacing: Self.former).isEmpty)
    #expect(merged.losses(replacing: next).isEmpty)
    #expect(merged.rules(for: "a").deletes == .editWins)
    #expect(merged.rules(for: "a").policy == .serverWins)
    #expect(merged.rules(for: "a").policy(of: "v") == .min)
    #expect(merged.rules(for: "a").unique == [["v"], ["w", "v"], ["z"]])
    #expect(merged.rules(for: "a").clashes == [DeclaredClash(["w"], .childGoes)])
  }
}
