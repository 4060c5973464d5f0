import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Unique values exchanged by rows on a device, in a company's tables with immediate checks.
@Suite("Exchanged values in adopted tables", .hangLimit)
struct MirrorExchangeTests {
  @Test("rows that exchange unique values on a device exchange them in a company's table")
  func exchange() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE slots(id int PRIMARY KEY, shelf varchar(9) NOT NULL, place int NOT NULL, code text,
        UNIQUE(shelf, place), UNIQUE(code));
      INSERT INTO slots SELECT i, 'top', i, 'c' || i FROM generate_series(1, 4) i
      """)
    try await company.adopt("--table", "slots")
    try await company.join()
    let run = try company.stage.run()
    // SQLite checks each row, too.
    try await company.device.write(
      """
      UPDATE slots SET place = place + 100, code = NULL WHERE id < 4;
      UPDATE slots SET place = (id % 3) + 1, code = 'c' || (id % 3 + 1) WHERE id < 4
      """)
    try await company.device.exchange()
    try await company.stage.eventuallyRows(
      "SELECT id::text, place::text, code FROM slots ORDER BY id",
      [["1", "2", "c2"], ["2", "3", "c3"], ["3", "1", "c1"], ["4", "4", "c4"]])
    let status = try await company.stage.mirror(["status", "crm"])
    #expect(status.output.contains("deferred   0 rows"), "\(status.output)")
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
  }

  @Test("rows with a condition that exchange unique values get theirs back, and lose none")
  func exchangeWithCondition() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE slots(id int PRIMARY KEY, code text UNIQUE);
      INSERT INTO slots SELECT i, 'c' || i FROM generate_series(1, 3) i
      """)
    try await company.adopt("--table", "slots", "--where", "slots=code IS NOT NULL")
    try await company.join()
    try await company.device.write(
      """
      UPDATE slots SET code = 'x' || code WHERE id < 3;
      UPDATE slots SET code = 'c' || (3 - id) WHERE id < 3
      """)
    try await company.device.exchange()
    try await company.stage.mirror(["verify", "crm"])
    #expect(
      try company.stage.rows("SELECT id::text, code FROM slots ORDER BY id")
        == [["1", "c1"], ["2", "c2"], ["3", "c3"]])
    let status = try await company.stage.mirror(["status", "crm"])
    #expect(status.output.contains("deferred   0 rows"), "\(status.output)")
    try await company.device.exchangeAll()
    #expect(
      try await company.device.rows("SELECT code FROM slots ORDER BY id") == [
        ["c1"], ["c2"], ["c3"],
      ])
  }
}
