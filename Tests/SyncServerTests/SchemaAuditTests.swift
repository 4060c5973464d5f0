import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The check of existing records against a new schema, by the machine alone.
@Suite(.hangLimit)
struct SchemaAuditTests {
  static func state(_ columns: [Name: Value], isAlive: Bool = true) -> RecordState {
    let stamp = Stamp(
      time: HybridTimestamp(milliseconds: 1), device: DeviceID(UniqueID(high: 7, low: 1)))
    return RecordState(
      inserted: isAlive ? SequencedStamp(stamp: stamp, sequence: 1) : nil,
      columns: columns.sorted { $0.key < $1.key }.map {
        ColumnState(name: $0.key, value: $0.value, stamp: stamp, sequence: 1)
      })
  }

  static func audit(keepsRecords: Bool = false) -> SchemaAudit {
    let rules = TableRules(
      columns: ["n": ColumnRules(type: .integer, isRequired: true)],
      unique: [["email"], ["code", "n"]])
    return SchemaAudit(
      from: .empty, to: SpaceSchema(tables: ["t": rules]), keepsRecords: keepsRecords)
  }

  /// Looks at records in their order, each with the claims of those before it.
  static func look(
    _ audit: inout SchemaAudit, _ records: [(Name, RecordState)]
  ) throws -> [UniqueClaim: Name] {
    let table = try #require(audit.tables.first)
    var holders: [UniqueClaim: Name] = [:]
    for (record, state) in records {
      for row in audit.look(at: record, state, of: table, holder: { holders[$0] }) {
        #expect(holders[row.claim] == nil && row.record == record)
        holders[row.claim] = row.record
      }
    }
    return holders
  }

  @Test("records that exist claim the new keys for which they have values")
  func claims() throws {
    var audit = Self.audit()
    let holders = try Self.look(
      &audit,
      [
        ("a", Self.state(["n": 1, "email": "x", "code": "c"])),
        ("b", Self.state(["n": 2, "email": "y"])),
        ("c", Self.state(["n": 3, "email": "x"], isAlive: false)),
        ("d", Self.state(["n": 2, "code": "c"])),
      ])
    #expect(audit.problem == nil)
    #expect(holders.values.sorted() == ["a", "a", "b", "d"])
  }

  @Test("of records with the same values the first holds the key, and the others are reported")
  func taken() throws {
    for keepsRecords in [false, true] {
      var audit = Self.audit(keepsRecords: keepsRecords)
      let same = Self.state(["n": 1, "email": "x"])
      let holders = try Self.look(&audit, [("a", same), ("b", same), ("c", same)])
      #expect(holders.values.sorted() == ["a"])
      let problem = try #require(audit.problem)
      #expect(problem.code == .schemaConflict && problem.violationCount == 2)
      #expect(problem.violations.map(\.record) == ["b", "c"])
      #expect(problem.violations.allSatisfy { $0.holder == "a" })
    }
  }

  @Test("records that break types or lack values are reported, unless they may go on doing so")
  func columns() throws {
    for keepsRecords in [false, true] {
      var audit = Self.audit(keepsRecords: keepsRecords)
      _ = try Self.look(
        &audit,
        [
          ("a", Self.state([:])), ("b", Self.state(["n": "one"])), ("c", Self.state(["n": 1])),
          ("d", Self.state([:], isAlive: false)),
        ])
      #expect(audit.problem?.violations.map(\.record) == (keepsRecords ? nil : ["a", "b"]))
    }
  }
}
