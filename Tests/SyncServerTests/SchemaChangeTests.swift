import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// How a schema is put in force, by the machine alone.
@Suite(.hangLimit)
struct SchemaChangeTests {
  private let space = SpaceState(epoch: Epoch(7), head: 41, historyHash: 9)

  private func decide(
    _ document: SpaceSchema, current: SpaceSchema = .empty, record: RecordState? = nil,
    in state: SpaceState? = nil, now: Int64 = 1_000, random: UInt64 = 5
  ) throws -> SchemaChange.Decision {
    try SchemaChange.decide(
      document, current: current, record: record, in: state ?? space, now: now, random: random
    ).get()
  }

  private func record(_ decision: SchemaChange.Decision) throws -> RecordState {
    let row = try #require(decision.effects.records.first)
    return try row.state.withUnsafeBytes { try RecordState(stored: $0, limits: .standard) }
  }

  @Test("a schema takes the next sequence as an operation of the server")
  func operation() throws {
    let decision = try decide(SpaceSchema(minimumProtocol: 4))
    #expect(decision.schema.version == 1)
    #expect(decision.effects.space.head == 42)
    #expect(decision.effects.space.schemaVersion == 1)
    #expect(decision.effects.space.minimumProtocol == 4)
    let row = try #require(decision.effects.operations.first)
    #expect(row.sequence == 42 && row.device == SchemaChange.author)
    #expect(decision.effects.space.newest == row.id)
    #expect(row.historyHash == HistoryHash.appending(row.id, at: row.time, base: 41, to: 9))
    #expect(decision.effects.space.historyHash == row.historyHash)
    #expect(row.key == RecordKey(table: "ferry_schema", record: "schema"))
    #expect(row.id.value.timestamp == row.time && row.id.value.low & 0xFFFF == 5)
    #expect(row.id.value.high >> 12 & 0xF == 7, "a UUID of version 7")
    #expect(try SpaceSchema(stored: record(decision)) == decision.schema)
  }

  @Test("a later schema wins even if the server's clock went back")
  func clock() throws {
    let first = try decide(SpaceSchema(), now: 1_000_000)
    let second = try decide(
      SpaceSchema(version: 2, tables: ["t": TableRules(write: .admin)]), current: first.schema,
      record: record(first), in: first.effects.space, now: 5)
    #expect(try SpaceSchema(stored: record(second)) == second.schema)
    #expect(second.effects.operations.map(\.kind) == [.update])
    #expect(second.effects.records.map(\.isNew) == [false])
  }

  @Test("a document that drops rules is refused: the first are named, and all are counted")
  func losses() throws {
    let columns = Dictionary(
      uniqueKeysWithValues: (0..<1_002).map { number in
        (Name("c\(10_000 + number)"), ColumnRules(type: .integer))
      })
    let current = SpaceSchema(version: 3, tables: ["t": TableRules(columns: columns)])
    func decide(
      _ document: SpaceSchema, dropsRules: Bool = false
    ) -> Result<SchemaChange.Decision, Problem> {
      SchemaChange.decide(
        document, current: current, record: nil, in: space, dropsRules: dropsRules, now: 1,
        random: 1)
    }
    guard case .failure(let problem) = decide(.empty) else {
      Issue.record("rules were dropped")
      return
    }
    #expect(problem.code == .schemaLosses && problem.lossCount == 1_002)
    #expect(problem.losses.count == SchemaChange.lossesNamed)
    #expect(problem.losses.first == "the type of column c10000 of t")
    #expect(problem.detail.contains("version 3 of the schema has 1,002 rules"))
    #expect(problem.detail.contains("c10004 of t and 997 more"))
    #expect(try decide(.empty, dropsRules: true).get().schema.version == 4)
    // Another version in force counts first.
    guard case .failure(let stale) = decide(SpaceSchema(version: 3)) else {
      Issue.record("another version was replaced")
      return
    }
    #expect(stale.code == .schemaConflict)
    var changed = current
    changed.version = 4
    changed.tables["t"]?.columns["c10000"] = ColumnRules(type: .text)
    #expect(try decide(changed).get().schema == changed)
  }

  @Test("added and removed keys are distinguished from unchanged ones")
  func keys() {
    let old = SpaceSchema(tables: [
      "a": TableRules(unique: [["x"], ["y"]]), "b": TableRules(unique: [["z"]]),
    ])
    let new = SpaceSchema(tables: ["a": TableRules(unique: [["y"], ["y", "x"]])])
    let added = SchemaChange.keysAdded(from: old, to: new)
    #expect(added.map(\.table) == ["a"] && added.map(\.keys) == [[["y", "x"]]])
    let gone = SchemaChange.keysAdded(from: new, to: old)
    #expect(gone.map(\.table) == ["a", "b"] && gone.map(\.keys) == [[["x"]], [["z"]]])
  }
}
