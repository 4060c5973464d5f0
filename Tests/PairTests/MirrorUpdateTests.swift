import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Statements of a mirror in a company's tables: an update of a device is an update there, and
/// devices get the row that PostgreSQL has made of it.
@Suite("Statements of mirrors in companies' tables", .hangLimit)
struct MirrorUpdateTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let counted = """
    CREATE TABLE tasks(id int PRIMARY KEY, title text);
    INSERT INTO tasks VALUES (1, 'one'), (2, 'two');
    CREATE SEQUENCE numbers;
    CREATE FUNCTION number() RETURNS trigger LANGUAGE plpgsql AS '
      BEGIN PERFORM nextval(''public.numbers''); RETURN NEW; END';
    CREATE TRIGGER number BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION number()
    """

  @Test("a device's update runs no trigger of an insert, and needs no column unknown to devices")
  func update() async throws {
    let company = try await Company.make(Self.counted)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "tasks")
    try await company.join()
    let run = try stage.run()
    try await device.write("UPDATE tasks SET title = title || '!'")
    try await device.exchange()
    let titles = "SELECT title FROM tasks ORDER BY id"
    try await stage.eventuallyRows(titles, [["one!"], ["two!"]])
    #expect(try stage.rows("SELECT is_called::text FROM numbers") == [["false"]])
    try await device.write("INSERT INTO tasks VALUES (3, 'three')")
    try await device.exchange()
    try await stage.eventuallyRows(titles, [["one!"], ["two!"], ["three"]])
    #expect(try stage.rows("SELECT last_value::text FROM numbers") == [["1"]])
    // A trigger that refuses inserts, and a later column that an insert needs.
    try stage.sql(
      """
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '
        BEGIN RAISE EXCEPTION ''no inserts''; END';
      CREATE TRIGGER refuse BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION refuse();
      ALTER TABLE tasks ADD owner text NOT NULL DEFAULT 'x'; ALTER TABLE tasks ALTER owner DROP DEFAULT
      """)
    try await device.write("UPDATE tasks SET title = 'new ' || id")
    try await device.exchange()
    try await stage.eventuallyRows(titles, [["new 1"], ["new 2"], ["new 3"]])
    try await stage.mirror(["status", "crm"])
    try await MirrorRefusalTests.stop(run)
  }

  private static let made = """
    CREATE TABLE items(id int PRIMARY KEY, price numeric(10,2), code varchar(20), weight real,
      updated_at timestamptz);
    CREATE SEQUENCE writes;
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS '
      BEGIN
        PERFORM nextval(''public.writes'');
        IF NEW.code = ''drop'' THEN RETURN NULL; END IF;
        NEW.updated_at := clock_timestamp(); NEW.code := upper(NEW.code); RETURN NEW;
      END';
    CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION touch();
    CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS '
      BEGIN UPDATE items SET code = ''gone'' WHERE id = OLD.id; RETURN NULL; END';
    CREATE TRIGGER keep BEFORE DELETE ON items FOR EACH ROW EXECUTE FUNCTION keep();
    INSERT INTO items VALUES (1, 1, 'a', 0.1, NULL), (2, 2, 'b', 0.2, NULL)
    """
  private static let items =
    "SELECT CAST(id AS text), code, CAST(price AS text) FROM items ORDER BY items.id"

  @Test("devices get the row that triggers, types and rules of the table have made of theirs")
  func madeRows() async throws {
    let company = try await Company.make(Self.made)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "items")
    try await company.join()
    let before = try await device.rows("SELECT updated_at FROM items WHERE id = 1")
    let run = try stage.run()
    try await device.write(
      """
      INSERT INTO items(id, price, code, weight) VALUES (3, 1.005, 'abc', 0.1), (4, 1.5, 'drop', 1);
      UPDATE items SET code = 'xyz' WHERE id = 1
      """)
    try await device.exchange()
    try await eventually("the device has the table's rows", from: run) {
      try await device.exchange()
      return try await device.rows(Self.items) == [
        ["1", "XYZ", "1"], ["2", "B", "2"], ["3", "ABC", "1.01"],
      ]
    }
    #expect(try await device.rows("SELECT updated_at FROM items WHERE id = 1") != before)
    #expect(
      try await device.rows("SELECT count(*) FROM items WHERE updated_at IS NULL") == [[0]])
    // A delete that the table answers with another row.
    try await device.write("DELETE FROM items WHERE id = 2")
    try await device.exchange()
    try await eventually("the row is back", from: run) {
      try await device.exchange()
      return try await device.rows("SELECT code FROM items WHERE id = 2") == [["GONE"]]
    }
    // Nothing is written again: two inserts of the company, three writes of the device, one of the
    // trigger.
    try await device.write("UPDATE items SET weight = 0.5 WHERE id = 3")
    try await device.exchange()
    try await stage.eventuallyRows("SELECT weight::text FROM items WHERE id = 3", [["0.5"]])
    try await stage.quiet()
    try await MirrorRefusalTests.stop(run)
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try stage.rows("SELECT last_value::text FROM writes") == [["7"]])
    try await stage.mirror(["status", "crm"])
  }
}
