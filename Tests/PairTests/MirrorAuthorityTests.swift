import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Transactions of a company's programs enter the space whole, whatever its rules are.
@Suite("Transactions of programs against the rules of a space", .hangLimit)
struct MirrorAuthorityTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let notes = """
    SELECT CAST(id AS text), title, state, CAST(best AS text), tags FROM notes ORDER BY notes.id
    """

  /// Makes a company whose space has a rule of each kind.
  private static func make() async throws -> Company {
    let company = try await Company.make(
      """
      CREATE TABLE notes(id int PRIMARY KEY, title text, state text, best int, tags text, body text);
      INSERT INTO notes VALUES (1, 'one', 'open', 9, '[1,2]'), (2, 'two', 'open', 9, '[1,2]'),
        (3, 'three', 'open', 9, '[1,2]')
      """)
    try await company.adopt("--table", "notes")
    try await company.join()
    let replica = try await company.device.open()
    var schema = try await replica.schema()
    schema.tables["notes"]?.deletes = .editWins
    schema.tables["notes"]?.columns = [
      "title": ColumnRules(type: .text, isRequired: true),
      "state": ColumnRules(policy: .serverWins),
      "best": ColumnRules(policy: .max), "tags": ColumnRules(policy: .setUnion, type: .text),
    ]
    schema.version += 1
    _ = try await replica.applySchema(schema)
    try await company.stage.mirror(["verify", "crm"])
    return company
  }

  @Test("a committed transaction reaches the space whole, and devices' values give way")
  func whole() async throws {
    let company = try await Self.make()
    let (stage, device) = (company.stage, company.device)
    try await device.write(
      """
      UPDATE notes SET state = 'device', best = 12, tags = '[1,2,3]' WHERE id = 1;
      UPDATE notes SET state = 'device' WHERE id = 2
      """)
    try await device.exchangeAll()
    try stage.sql(
      """
      BEGIN; UPDATE notes SET title = NULL, state = 'closed', best = 5, tags = '[1]' WHERE id = 1;
      DELETE FROM notes WHERE id = 2; INSERT INTO notes(id, best) VALUES (4, 1); COMMIT
      """)
    let rows = [
      ["1", nil, "closed", "5", "[1]"], ["3", "three", "open", "9", "[1,2]"],
      ["4", nil, nil, "1", nil],
    ]
    let run = try stage.run()
    try await company.expectEqual(Self.notes, count: 3)
    #expect(try stage.rows(Self.notes) == rows)
    #expect(try stage.rows("SELECT tab FROM ferry_mirror.unsent") == [])
    try await stage.mirror(["status", "crm"])
    // The device has both values of each.
    let conflicts = try await device.open().conflicts()
    let lost = conflicts.map { "\($0.conflict.column?.text ?? "") \($0.conflict.lost)" }.sorted()
    #expect(lost.count >= 4, "\(lost)")
    // A device's later write meets the rules.
    try await device.write("UPDATE notes SET best = 3 WHERE id = 3")
    try await device.exchangeAll()
    try await MirrorRefusalTests.stop(run)
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try stage.rows(Self.notes)[1] == rows[1])
  }
}
