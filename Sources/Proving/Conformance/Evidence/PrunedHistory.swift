import FerryPostgres
import FerryProtocol
import FerrySQLite

/// A missing record forgotten by the server: the tombstone was pruned.
package struct ForgottenRecord: Sendable, Equatable {
  package var key: RecordKey
  /// The head at this moment: for every later operation the record never existed.
  package var head: SequenceNumber

  package init(key: RecordKey, head: SequenceNumber) { (self.key, self.head) = (key, head) }
}

/// Makes a store keep pruned rows, for the oracles alone.
///
/// Triggers copy each row within the transaction that deletes it, into tables unknown to the
/// product. So a rolled-back or lost transaction, or a restored backup, affects these tables as
/// well.
package enum PrunedHistory {
  private static let columns = """
    space, sequence, id, device, tbl, record, kind, time, base, data, times, outcome, marks,
    former
    """

  /// Creates missing tables and triggers. The store's own tables have to exist.
  package static func install(in connection: SQLiteConnection) throws {
    try connection.transaction {
      try connection.execute(
        """
        CREATE TABLE IF NOT EXISTS pruned_operations(
          space INTEGER, sequence INTEGER, id BLOB, device BLOB, tbl TEXT, record,
          kind INTEGER, time INTEGER, base INTEGER, data TEXT, times TEXT, outcome TEXT, marks TEXT,
          former TEXT, head INTEGER, PRIMARY KEY(space, sequence)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS forgotten_records(
          space INTEGER, tbl TEXT, record, head INTEGER);
        CREATE TRIGGER IF NOT EXISTS keep_operations BEFORE DELETE ON operations
        WHEN OLD.sequence <= (SELECT head FROM spaces WHERE id = OLD.space) BEGIN
          INSERT INTO pruned_operations(\(columns), head)
          SELECT \(columns), (SELECT head FROM spaces WHERE id = OLD.space) FROM operations
          WHERE space = OLD.space AND id = OLD.id;
        END;
        CREATE TRIGGER IF NOT EXISTS keep_records BEFORE DELETE ON record_rows
        WHEN OLD.sequence <= (SELECT head FROM spaces WHERE id = OLD.space) AND NOT EXISTS (
          SELECT 1 FROM record_rows AS n JOIN spaces AS s ON s.id = n.space
          WHERE n.space = OLD.space AND n.tbl = OLD.tbl AND n.record = OLD.record
            AND n.rowid <> OLD.rowid AND +n.sequence <= s.head)
        BEGIN
          INSERT INTO forgotten_records VALUES (
            OLD.space, OLD.tbl, OLD.record, (SELECT head FROM spaces WHERE id = OLD.space));
        END;
        """)
    }
  }

  /// Does the same in PostgreSQL. Blocks.
  package static func install(in connection: PostgresConnection) throws {
    let values = columns.split { ", \n".contains($0) }.map { "OLD.\($0)" }.joined(separator: ", ")
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS pruned_operations AS
        SELECT \(columns), base AS head FROM operations WHERE false;
      CREATE TABLE IF NOT EXISTS forgotten_records(
        space bigint, tbl text COLLATE "C", record bytea, head bigint);
      CREATE OR REPLACE FUNCTION keep_operation() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO pruned_operations
          VALUES (\(values), (SELECT head FROM spaces WHERE id = OLD.space));
        RETURN OLD;
      END $$;
      CREATE OR REPLACE FUNCTION keep_record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO forgotten_records VALUES (
          OLD.space, OLD.tbl, OLD.record, (SELECT head FROM spaces WHERE id = OLD.space));
        RETURN OLD;
      END $$;
      CREATE OR REPLACE TRIGGER keep_operations BEFORE DELETE ON operations
        FOR EACH ROW EXECUTE FUNCTION keep_operation();
      CREATE OR REPLACE TRIGGER keep_records BEFORE DELETE ON records
        FOR EACH ROW EXECUTE FUNCTION keep_record();
      """)
  }

  /// Returns the source of the history: present operations, and the stored pruned ones. The last
  /// column is the head at which an operation was pruned.
  static func source(hasPruned: Bool) -> String {
    let kept = "SELECT \(columns), NULL AS head FROM operations"
    return hasPruned
      ? "(\(kept) UNION ALL SELECT \(columns), head FROM pruned_operations) AS history"
      : "(\(kept)) AS history"
  }

  static func isKept(in connection: SQLiteConnection) throws -> Bool {
    try connection.exists("SELECT 1 FROM sqlite_schema WHERE name = 'pruned_operations'")
  }

  static func isKept(in connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT 1 FROM pg_class WHERE oid = to_regclass('pruned_operations')")
    ).isEmpty
  }

  static func forgotten(
    in space: Int64, _ connection: SQLiteConnection
  ) throws -> [ForgottenRecord] {
    try connection.rows(
      "SELECT tbl, record, head FROM forgotten_records WHERE space = ? ORDER BY head, tbl, record",
      space
    ) { row in
      ForgottenRecord(
        key: RecordKey(table: row.name(0), record: row.recordName(1).name), head: row.int64(2))
    }
  }

  static func forgotten(
    in space: Int64, _ connection: PostgresConnection
  ) throws -> [ForgottenRecord] {
    try connection.query(
      .once(
        """
        SELECT tbl, record, head FROM forgotten_records WHERE space = $1 ORDER BY head, tbl, record
        """), [.int8(space)]
    ).map { row in
      ForgottenRecord(key: try row.recordKey(0, 1), head: try row.int8(2))
    }
  }
}
