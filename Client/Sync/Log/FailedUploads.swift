import FerryProtocol
import FerrySQLite

/// Failed operations of upload-only tables: marked ones are in the queue still (`ferry_failed`),
/// others have left it (`ferry_unsent`) (SPEC.md §17).
struct FailedUploads {
  let connection: SQLiteConnection

  /// Selects rows of a table and a record; NULL for all.
  static let matches = "(?1 IS NULL OR tbl = ?1) AND (?2 IS NULL OR record = ?2)"

  /// Selects operations of the quarantine that the server has rejected, or that went along: no
  /// write that arrived and was overruled later.
  static let isRejected = "code IS NOT 'overruled'"

  // MARK: Marks

  /// Returns true if a pull must show the state of marked operations.
  func hasMarks() throws -> Bool { try connection.exists("SELECT 1 FROM ferry_failed LIMIT 1") }

  /// Marks operations of the queue. Returns how many were not marked before.
  func mark(_ orders: [Int64], _ detail: String) throws -> Int {
    let mark = try connection.statement(
      "INSERT OR IGNORE INTO ferry_failed(seq, detail) VALUES (?, ?)")
    return try orders.reduce(0) { try $0 + mark.run($1, detail) }
  }

  /// Returns the marked operations with the reasons.
  func marked() throws -> [(order: Int64, detail: String)] {
    try connection.rows("SELECT seq, detail FROM ferry_failed") { ($0.int64(0), $0.text(1)) }
  }

  /// Removes the marks of operations already on the server, and of operations no longer in the
  /// queue.
  func removeMarks(through confirmed: Int64) throws {
    try connection.run(
      "DELETE FROM ferry_failed WHERE seq <= ? OR seq NOT IN (SELECT seq FROM ferry_pending)",
      confirmed)
  }

  func removeMarks() throws { try connection.run("DELETE FROM ferry_failed") }

  /// Removes the marks on some records, and on operations that go with them.
  func removeMarks(where isChosen: (RecordKey) -> Bool) throws {
    let marked = "ferry_pending WHERE seq IN (SELECT seq FROM ferry_failed)"
    let remove = try connection.statement("DELETE FROM ferry_failed WHERE seq = ?")
    for order in try uploads(from: marked).returning(where: { isChosen($0.key) }) {
      try remove.run(order)
    }
  }

  /// Returns the number of the first unconfirmed packet with a marked operation.
  func firstMarkedPacket() throws -> Int64? {
    try connection.first(
      """
      SELECT min(number) FROM ferry_current_packets JOIN ferry_failed
      ON ferry_failed.seq BETWEEN from_order AND to_order WHERE state <> 'acknowledged'
      """
    ) { $0.optionalInt64(0) } ?? nil
  }

  // MARK: Operations

  /// Returns the operations of the queue, in order.
  func queue() throws -> UploadQueue { try uploads(from: "ferry_pending") }

  /// Returns the operations outside of the queue, in order.
  func unsent() throws -> UploadQueue { try uploads(from: "ferry_unsent") }

  private func uploads(from source: String) throws -> UploadQueue {
    UploadQueue(
      try connection.rows("SELECT seq, grp, tbl, record FROM \(source) ORDER BY seq") { row in
        UploadQueue.Operation(
          order: row.int64(0), group: row.int64(1),
          key: RecordKey(table: row.name(2), record: row.name(3)))
      })
  }

  func hasUnsent() throws -> Bool { try connection.exists("SELECT 1 FROM ferry_unsent LIMIT 1") }

  /// Returns the records with failed or rejected operations and later operations in no packet.
  /// A write that was overruled had arrived, so later ones do not depend on it.
  func recordsWithFollowers() throws -> Set<RecordKey> {
    var keys = Set<RecordKey>()
    for source in ["ferry_unsent", "(SELECT * FROM ferry_quarantine WHERE \(Self.isRejected))"] {
      try connection.forEach(
        """
        SELECT DISTINCT f.tbl, f.record FROM \(source) AS f JOIN ferry_pending AS p
        ON p.record = f.record AND p.tbl = f.tbl
        WHERE f.record <> '' AND p.seq > \(PacketTable.frozenOrder)
        """
      ) { keys.insert(RecordKey(table: $0.name(0), record: $0.name(1))) }
    }
    return keys
  }

  /// Moves operations out of the queue, with the reasons.
  func withhold(_ operations: [(order: Int64, detail: String)]) throws {
    let note = try connection.statement("INSERT INTO ferry_failures(seq, detail) VALUES (?, ?)")
    let move = try connection.statement("UPDATE ferry_operations SET state = 2 WHERE seq = ?")
    for (order, detail) in operations {
      try note.run(order, detail)
      try move.run(order)
    }
  }

  /// The base of an operation that returns to the queue.
  enum Base: String {
    /// The former base, or the cursor if it is lower.
    case former = "base = min(base, (SELECT applied FROM ferry_replica))"
    /// The cursor, in the transaction's group.
    case present = "grp = ferry_group(), base = ferry_base()"
  }

  /// Moves a failed or rejected operation to the queue's end, with the same identifier. The caller
  /// has stored the clock: afterwards the operation at the end has an old time.
  func requeue(_ order: Int64, _ base: Base) throws {
    try connection.run(
      """
      UPDATE ferry_operations SET state = 0, concurrent = 1, apart = 0, \(base.rawValue),
        seq = \(OperationRecorder.newestOrder) + 1
      WHERE seq = ?
      """, order)
    try connection.run("DELETE FROM ferry_failures WHERE seq = ?", order)
  }

  // MARK: Looking

  /// Returns the unconfirmed state of records, by table and record; `nil` for all tables.
  func states(of table: Name?, limit: Int) throws -> [UploadState] {
    try connection.rows(
      """
      SELECT tbl, record, is_dirty, is_deleted, failed, detail, identifier
      FROM ferry_uploads WHERE ?1 IS NULL OR tbl = ?1 ORDER BY tbl, record, identifier LIMIT ?2
      """, table, limit
    ) { row in
      UploadState(
        key: RecordKey(table: row.name(0), record: row.name(1)),
        identifier: OperationID(UniqueID(row.text(6)) ?? UniqueID(high: 0, low: 0)),
        isDirty: row.int64(2) != 0, isDeleted: row.int64(3) != 0, isFailed: row.int64(4) != 0,
        detail: row.optionalText(5))
    }
  }

  /// Returns the number of records with a failed operation; `nil` for all.
  func count(_ table: Name? = nil, _ record: Name? = nil) throws -> Int {
    guard try !TrackedTables(connection: connection).uploads().isEmpty else { return 0 }
    return try connection.first(
      "SELECT count(*) FROM ferry_uploads WHERE failed AND \(Self.matches)", table, record
    ) { Int($0.int64(0)) } ?? 0
  }
}
