import FerryPostgres
import FerryProtocol

/// A lock of the writers of a table, for a role without rights on the whole table. To make a trigger
/// again needs the right TRIGGER alone, and waits for all writers.
extension MirrorSQL {
  /// Locks out the writers of the table until the end of the transaction.
  ///
  /// - Throws: ``PostgresError`` if a program writes for too long; see ``PostgresError/isWait``.
  func lockWriters(_ connection: PostgresConnection) throws {
    let found = try connection.query(
      .once(Self.ownTriggers), [.int8(mirror), .text(table.name.text)]
    ).map { try $0.text(0) }
    guard !found.isEmpty else {
      throw MirrorFault(
        description: "table \(table.name): the triggers of the mirror are gone or disabled")
    }
    for statement in found { try connection.execute(single: statement) }
  }

  /// The statements to make a trigger again: one for the table, and for each partition. A disabled
  /// trigger would be enabled by it.
  private static let ownTriggers = """
    SELECT DISTINCT ON (g.tgrelid) 'CREATE OR REPLACE' || substr(pg_get_triggerdef(g.oid), 7)
    FROM ferry_mirror.recorded r JOIN pg_catalog.pg_trigger g ON g.tgfoid = to_regproc(r.function)
    WHERE r.mirror = $1 AND r.tab = $2 AND g.tgenabled = 'O'
      AND (g.tgrelid = to_regclass(r.target)
        OR g.tgrelid IN (SELECT p.relid FROM pg_partition_tree(to_regclass(r.target)) p))
    ORDER BY g.tgrelid, g.tgtype & 32 DESC
    """
}
