import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The slots of mirrors that read PostgreSQL's log, in a real database.
@Suite("Slots of mirrors", .hangLimit)
struct MirrorLogTests {
  /// A slot begins behind the transactions of a whole cluster, so this one is separate.
  private let cluster: PostgresCluster
  private let url: String
  private let connection: PostgresConnection

  init() throws {
    cluster = try PostgresCluster()
    url = try cluster.createDatabase()
    connection = try PostgresConnection(url: url)
    try connection.execute(MirrorLedger.tables)
    try connection.execute(
      """
      INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES ('crm', 'demo', 'public');
      CREATE TABLE tasks(id int PRIMARY KEY); CREATE PUBLICATION ferry_mirror_1 FOR TABLE tasks
      """)
    try MirrorLog.enter(1, connection)
  }

  @Test("a slot that a former process still reads is dropped, and that connection ends")
  func readSlot() throws {
    let log = try #require(try MirrorLog.makeSlot(1, connection))
    let stream = try ReplicationStream(url: url, wakePipe: WakePipe())
    try stream.start(slot: log.slot, publication: MirrorLog.publication(1), from: .zero)
    #expect(try log.slotState(connection)?.isActive == true)
    try MirrorLedger(number: 1).remove(connection)
    #expect(try log.slotState(connection) == nil)
    #expect(throws: PostgresError.self) {
      while true { _ = try stream.next(within: .seconds(600)) }
    }
    #expect(try MirrorLedger("crm", connection) == nil)
  }

  @Test("a slot made during the removal of its mirror is dropped as well")
  func removedMeanwhile() throws {
    let log = try #require(try MirrorLog.makeSlot(1, connection))
    try connection.execute("SELECT pg_create_logical_replication_slot('spare', 'pgoutput')")
    // Between both drops, another connection makes the slot again.
    try connection.execute(
      """
      CREATE EXTENSION dblink;
      CREATE FUNCTION make() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM * FROM dblink(
          format('dbname=%s port=%s host=%s user=%s', current_database(), current_setting('port'),
            current_setting('unix_socket_directories'), current_user),
          format('SELECT 1 FROM pg_copy_logical_replication_slot(%L, %L)', 'spare', OLD.slot)) t(n int);
        RETURN OLD;
      END $$;
      CREATE TRIGGER make BEFORE DELETE ON ferry_mirror.logs FOR EACH ROW EXECUTE FUNCTION make()
      """)
    try MirrorLedger(number: 1).remove(connection)
    #expect(try log.slotState(connection) == nil)
    #expect(try MirrorLog(1, connection) == nil)
  }

  @Test("a mirror removed while its slot is made again leaves no slot")
  func removedBefore() throws {
    let log = try #require(try MirrorLog.makeSlot(1, connection))
    // The entry is gone when the new slot is stored.
    try connection.execute(
      """
      CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RETURN CASE NEW.lsn WHEN ''0/0'' THEN NEW END; END';
      CREATE TRIGGER lose BEFORE UPDATE ON ferry_mirror.logs FOR EACH ROW EXECUTE FUNCTION lose()
      """)
    #expect(throws: MirrorFault.self) { try log.replaceSlot(connection) }
    #expect(try log.slotState(connection) == nil)
    // And before the former one is dropped.
    try connection.execute("DELETE FROM ferry_mirror.logs")
    #expect(throws: MirrorFault.self) { try log.replaceSlot(connection) }
    #expect(try log.slotState(connection) == nil)
  }

  @Test("a publication dropped and made again is not the mirror's, and stops no mirror")
  func otherPublication() throws {
    func isPublished() throws -> Bool? { try MirrorLog(1, connection)?.isPublished(connection) }
    // Not known before the tables are published.
    #expect(try isPublished() == true)
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(key: "id", columns: [DeclaredColumn("title", .text)]))
    let table = try MirrorPlan(schema).tables[0]
    let publish = {
      let sql = MirrorSQL(table: table, schema: "public", mirror: 1, capture: .log)
      for statement in MirrorLog.capture([sql.target], ["tasks"], 1) {
        try connection.execute(single: statement)
      }
    }
    try publish()
    #expect(try isPublished() == true)
    try connection.execute(
      """
      INSERT INTO ferry_mirror.recorded
        VALUES (1, 'tasks', '"public"."tasks"', '', 0, '{}', '');
      BEGIN; DROP PUBLICATION ferry_mirror_1; CREATE PUBLICATION ferry_mirror_1; COMMIT
      """)
    #expect(try isPublished() == false)
    #expect(try MirrorLog.stops(1, connection) == [])
    // A definition followed meanwhile does not hide it.
    try publish()
    #expect(try isPublished() == false)
    try MirrorLog(1, connection)?.forgetPublication(connection)
    #expect(try isPublished() == false)
    try publish()
    #expect(try isPublished() == true)
    try connection.execute("ALTER PUBLICATION ferry_mirror_1 DROP TABLE tasks")
    #expect(try MirrorLog.stops(1, connection).map(\.table) == ["tasks"])
    // The owner of the other one has to drop it.
    let log = try #require(try MirrorLog(1, connection))
    try connection.execute("CREATE ROLE plain; SET ROLE plain")
    #expect(throws: MirrorFault.self) { try log.forgetPublication(connection) }
  }
}
