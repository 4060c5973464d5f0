import FerryConformance
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The product's own client and store under the workload, judged by all oracles.
@Suite(.hangLimit)
struct DirectWorldTests {
  private func run(_ seed: Int, _ faults: DirectWorld.Faults = .init()) throws {
    let world = try DirectWorld(seed: UInt64(seed), devices: 4, faults: faults)
    let found = try world.run(operations: 150)
    #expect(found.isEmpty, "\(found.map(\.description).joined(separator: "\n"))")
  }

  @Test("devices that sync without faults pass", arguments: 1...8)
  func calm(_ seed: Int) throws { try run(seed) }

  @Test("lost answers, copies, rollbacks and clock jumps pass", arguments: 1...16)
  func faulty(_ seed: Int) throws {
    try run(
      seed,
      .init(lostAnswers: 20, copies: 8, setBacks: 15, upgrades: 20, clockJumps: 30_000))
  }

  @Test("the oracles' names are in kebab-case and unique")
  func names() {
    let names = OracleBench().names
    #expect(Set(names).count == names.count && names.count == 18)
    #expect(names.allSatisfy { $0.allSatisfy { $0.isLowercase || $0 == "-" } })
  }

  /// Changes to the store behind the server's back, and the oracles to find them.
  private static let harm: [(sql: String, oracles: Set<String>)] = [
    (
      "DELETE FROM operations WHERE sequence = 40",
      ["acknowledged-operations"]
    ),
    (
      "UPDATE operations SET data = replace(data, '\"n\":', '\"n\":1') WHERE tbl = 'beats'",
      ["acknowledged-operations", "reference-state"]
    ),
    (
      """
      UPDATE record_rows SET state = CAST(x'10' || substr(state, 2) AS BLOB) -- no insert any more
      WHERE record = (SELECT min(record) FROM records WHERE tbl = 'ledger')
      """,
      ["reference-state", "convergence", "whole-transactions"]
    ),
    (
      "UPDATE operations SET outcome = NULL",
      ["conflicts-accounted"]
    ),
    (
      """
      UPDATE operations SET sequence = -sequence WHERE sequence BETWEEN 30 AND 60;
      UPDATE operations SET sequence = 90 + sequence WHERE sequence < 0
      """,
      ["own-order"]
    ),
    ("DELETE FROM record_rows WHERE tbl = 'beats'", ["reference-state", "convergence"]),
  ]

  @Test("the oracles find damage to a correct store", arguments: harm.indices)
  func harmed(_ index: Int) throws {
    let world = try DirectWorld(seed: 2, devices: 4)
    #expect(try world.run(operations: 150).isEmpty)
    let harm = Self.harm[index]
    try SQLiteConnection(path: world.storePath, mode: .readWrite).execute(harm.sql)
    let found = Set(world.bench.judge(try world.final()).map(\.oracle))
    #expect(found.isSuperset(of: harm.oracles), "\(found.sorted())")
  }

  @Test(
    "the oracles find damage to a correct replica",
    arguments: [
      "DELETE FROM notes WHERE id = (SELECT max(id) FROM notes)",
      "UPDATE notes SET title = 'other' WHERE id = (SELECT max(id) FROM notes)",
      "DELETE FROM ledger WHERE id = (SELECT max(id) FROM ledger)",
      "UPDATE beats SET n = n - 1",
    ])
  func harmedReplica(_ sql: String) throws {
    let world = try DirectWorld(seed: 2, devices: 4)
    #expect(try world.run(operations: 150).isEmpty)
    let device = world.devices[1]
    // Like a program, after it put the triggers back as they were.
    let connection = device.file.connection
    let triggers = try connection.prepare(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
    ).rows { ($0.text(0), $0.text(1)) }
    for (name, _) in triggers { try connection.execute("DROP TRIGGER \"\(name)\"") }
    try connection.execute(sql)
    for (_, sql) in triggers { try connection.execute(sql) }
    let found = Set(
      world.bench.see(.read(device: device.name, try device.evidence())).map(\.oracle))
    let left = Set(world.bench.judge(try world.final()).map(\.oracle))
    #expect(left.isSuperset(of: ["convergence", "no-skipped-change"]), "\(left.sorted())")
    if sql.contains("ledger") {
      #expect(found.isSuperset(of: ["whole-transactions", "monotonic-reads"]))
    }
    if sql.contains("beats") {
      #expect(found.isSuperset(of: ["monotonic-reads", "read-your-writes"]))
    }
  }
}
