import FerryConformance
import FerryProtocol
import FerrySQLite
import Foundation

/// A replica's file as other programs may read it: without Ferry's library, during the work of
/// Ferry's processes on it.
///
/// Beside the application's tables it has a journal, a table that does not sync. In it each
/// transaction stores its recorded operations. So the file itself shows whether a killed process
/// had committed, also after its operations were sent and pruned. No SQL records a batch, so a
/// trigger stores it.
struct DeviceFile: Sendable {
  let path: String

  static let journalSchema = """
    CREATE TABLE chaos_upgrades(step INTEGER PRIMARY KEY);
    CREATE TABLE chaos_actions(action INTEGER PRIMARY KEY, mark INTEGER NOT NULL);
    CREATE TABLE chaos_journal(
      action INTEGER NOT NULL, seq INTEGER NOT NULL, id BLOB NOT NULL, tbl TEXT NOT NULL,
      record TEXT NOT NULL, kind TEXT NOT NULL, data TEXT, base INTEGER NOT NULL,
      marks TEXT,
      PRIMARY KEY(action, seq));
    CREATE TABLE chaos_batches(
      seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, tbl TEXT NOT NULL, record TEXT NOT NULL,
      base INTEGER NOT NULL);
    CREATE TRIGGER chaos_batch AFTER INSERT ON ferry_operations WHEN NEW.kind = 'batch' BEGIN
      INSERT OR IGNORE INTO chaos_batches(id, tbl, record, base)
        VALUES (NEW.id, NEW.tbl, NEW.record, NEW.base);
    END
    """

  /// Returns the statements of one transaction, with the journal's statements around them.
  static func journalled(_ statements: String, action: Int) -> String {
    """
    INSERT INTO chaos_actions SELECT \(action),
      max(ifnull((SELECT max(seq) FROM ferry_operations), 0), removed_order) FROM ferry_replica;
    \(statements);
    INSERT INTO chaos_journal
      SELECT \(action), seq, id, tbl, record, kind, data, base, marks FROM ferry_pending
      WHERE seq > (SELECT mark FROM chaos_actions WHERE action = \(action));
    """
  }

  /// Returns the number of upgrades of the application's schema.
  static func level(_ connection: SQLiteConnection) throws -> Int {
    try connection.prepare("SELECT count(*) FROM chaos_upgrades").first { Int($0.int64(0)) } ?? 0
  }

  /// Returns all evidence for the oracles. Blocks.
  ///
  /// - Parameter withArchive: true to read the confirmed operations, too.
  func evidence(withArchive: Bool = false) throws -> ReplicaEvidence {
    try read { try ReplicaEvidence.read($0, withArchive: withArchive) }
  }

  /// Opens the file for one look at one moment of it. Blocks.
  func read<T>(_ body: (SQLiteConnection) throws -> T) throws -> T {
    let connection = try SQLiteConnection(path: path, mode: .readOnly)
    return try connection.transaction(.deferred) { try body(connection) }
  }

  /// Returns the operations recorded by an action; `nil` if it was not committed. Blocks.
  func recorded(by action: Int) throws -> [LocalOperation]? {
    try read { connection in
      guard try connection.prepare("SELECT 1 FROM chaos_actions WHERE action = \(action)").exists()
      else { return nil }
      return try connection.prepare(
        """
        SELECT id, tbl, record, kind, data, base, marks FROM chaos_journal WHERE action = \(action)
        ORDER BY seq
        """
      ).rows { row in
        guard let id = UniqueID(bytes: row.blobBytes(0)),
          let kind = OperationKind(rawValue: row.text(3))
        else { throw ChaosError("\(path): the journal of action \(action) cannot be read") }
        var columns: [Column] = []
        if kind != .delete && !row.isNull(4) {
          var reader = JSONReader(row.textBytes(4))
          columns = try reader.columns(limits: .standard)
        }
        return LocalOperation(
          id: OperationID(id), key: RecordKey(table: row.text(1), record: row.text(2)),
          kind: kind, columns: columns, base: row.int64(5),
          increments: row.isNull(6)
            ? [] : try RecordedOperations.increments(marked: row.textBytes(6)))
      }
    }
  }

  /// Returns the batches recorded after so many of them. Blocks.
  func batches(after count: Int) throws -> [LocalOperation] {
    try read { connection in
      try connection.prepare(
        "SELECT id, tbl, record, base FROM chaos_batches ORDER BY seq LIMIT -1 OFFSET \(count)"
      ).rows { row in
        guard let id = UniqueID(bytes: row.blobBytes(0)) else {
          throw ChaosError("\(path): a batch has no identifier")
        }
        return LocalOperation(
          id: OperationID(id), key: RecordKey(table: row.text(1), record: row.text(2)),
          kind: .batch, columns: [], base: row.int64(3))
      }
    }
  }

  /// Returns the rows of the operations rejected by the server or overruled with a reason. Blocks.
  func quarantined() throws -> Set<RowName> { try rows(in: "ferry_quarantine") }

  /// Returns the rows with lost values. Blocks.
  func conflicting() throws -> Set<RowName> { try rows(in: "ferry_conflicts") }

  private func rows(in table: String) throws -> Set<RowName> {
    try read { connection in
      Set(
        try connection.prepare("SELECT tbl, record FROM \(table)").rows {
          RowName($0.text(0), $0.text(1))
        })
    }
  }

  /// Returns the device's progress. Blocks.
  func progress() throws -> Progress {
    let progress = try read { connection in
      try connection.prepare(
        """
        SELECT (SELECT count(*) FROM ferry_pending) + (SELECT count(*) FROM ferry_refresh)
            + (SELECT count(*) FROM ferry_tables WHERE since IS NOT NULL), applied
        FROM ferry_replica
        """
      ).first { Progress(pending: Int($0.int64(0)), applied: $0.int64(1)) }
    }
    guard let progress else { throw ChaosError("\(path) contains no replica's state") }
    return progress
  }

  struct Progress: Sendable, Equatable {
    /// Operations not yet in any pull list, records to fetch whole, and tables to compare with the
    /// server after a step of the schema.
    var pending: Int
    var applied: SequenceNumber
  }
}
