import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The settings by which a company's triggers know the author of a row.
@Suite("The author of a row in a company's triggers", .hangLimit)
struct MirrorAuthorTests {
  private static let shop = """
    CREATE TABLE tasks(id int PRIMARY KEY, title text CHECK (title <> 'bad'));
    CREATE TABLE audits(task int, device text, author text, space text);
    CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO public.audits VALUES (coalesce(NEW.id, OLD.id),
        current_setting('ferry.device', true), current_setting('ferry.user', true),
        current_setting('ferry.space', true));
      RETURN NULL; END $$;
    CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON tasks
      FOR EACH ROW EXECUTE FUNCTION audit();
    INSERT INTO tasks VALUES (1, 'a'); DELETE FROM audits
    """

  @Test("triggers know the space, and for each row the device, beside refused rows as well")
  func devices() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.shop)
    let (stage, first, second) = (company.stage, company.device, try Device())
    try await company.adopt("--table", "tasks")
    try await company.join()
    try await second.ferry("init", "--server", company.server.url, "--space", Device.space)
    try await second.exchange()
    try await second.ferry("track", "--create", "--all")
    try await second.exchange()
    // The rows of both alternate.
    try await first.write(
      "INSERT INTO tasks VALUES (2, 'b'), (4, 'bad'), (6, 'f'); UPDATE tasks SET title = 'A' WHERE id = 1"
    )
    try await first.exchangeAll()
    try await second.write(
      "INSERT INTO tasks VALUES (3, 'c'), (5, 'e'); UPDATE tasks SET title = 'AA' WHERE id = 1")
    try await second.exchangeAll()
    let run = try stage.run()
    let (one, two) = (
      "\(try await first.status().device)", "\(try await second.status().device)"
    )
    let audits = "SELECT DISTINCT task::text, device, author, space FROM audits ORDER BY 1"
    try await stage.eventuallyRows(
      audits,
      [
        ["1", two, "anonymous", "demo"], ["2", one, "anonymous", "demo"],
        ["3", two, "anonymous", "demo"], ["5", two, "anonymous", "demo"],
        ["6", one, "anonymous", "demo"],
      ])
    try await first.exchangeAll()
    try stage.sql("DELETE FROM audits")
    try await first.write("DELETE FROM tasks WHERE id = 5")
    try await first.exchangeAll()
    try await stage.eventuallyRows(audits, [["5", one, "anonymous", "demo"]])
    // A write of the company's own has neither.
    try stage.sql("DELETE FROM audits; UPDATE tasks SET title = 'own' WHERE id = 2")
    #expect(
      try stage.rows(
        "SELECT DISTINCT coalesce(device, ''), coalesce(author, ''), coalesce(space, '') FROM audits"
      )
        == [["", "", ""]])
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
  }
}
