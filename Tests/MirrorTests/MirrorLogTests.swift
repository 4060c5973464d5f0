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
      for statement in MirrorLog.capture([sql], ["tasks"], 1) {
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
  }
}
