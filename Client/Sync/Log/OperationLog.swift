import FerryProtocol
import FerrySQLite

/// The recorded operations of a space, and the packets made of them (SPEC.md §4).
struct OperationLog {
  let queue: OperationTable
  let packets: PacketTable
  let schemas: SpaceSchemas

  private var connection: SQLiteConnection { queue.connection }

  // MARK: Operations of a record

  /// Returns own operations on a record without an effect in the server's changes so far, merged as
  /// for sending. Marks them: a change from the server concerns their record now.
  ///
  /// An insert and its delete no longer cancel each other out, since the server has a record to
  /// delete. The server's result for such operations is pulled, not predicted.
  func markConcurrent(_ key: RecordKey) throws -> [SyncOperation] {
    var sent: [SyncOperation] = []
    var schema = try schemas.deciding()
    var merger = OperationMerger(limits: queue.limits, schema: schema)
    var packet: Int64?
    var isNews = false
    try connection.forEach(
      """
      SELECT seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks, reason,
        apart, (SELECT iif(merged, number, -number) FROM ferry_current_packets
         WHERE seq BETWEEN from_order AND to_order)
      FROM ferry_pending WHERE \(OperationTable.concernsRecord)
      ORDER BY seq
      """, key.record, key.table
    ) { row in
      let pending = try queue.pending(row)
      let operation = pending.operation
      if let effect = operation.batchEffect(on: key.record) {
        sent += merger.operations + [effect]
        merger = OperationMerger(limits: queue.limits, schema: schema)
        return
      }
      let number = row.optionalInt64(13)
      isNews = isNews || row.int64(8) == 0
      if number != packet {
        sent += merger.operations
        schema = try self.schema(ofPacket: number.map { abs($0) })
        merger = OperationMerger(limits: queue.limits, schema: schema)
        packet = number
      }
      // A packet of a large transaction has unmerged operations.
      if let number, number < 0 {
        sent.append(operation)
      } else {
        merger.add(
          operation, isConcurrent: number == nil || pending.isConcurrent,
          isApart: row.int64(12) == 1)
      }
    }
    if isNews { try queue.markMet(key) }
    return sent + merger.operations
  }

  /// Returns the schema at the time of a packet's merge; the present one for operations in no
  /// packet.
  private func schema(ofPacket number: Int64?) throws -> SpaceSchema {
    guard let number else { return try schemas.deciding() }
    let version = try connection.first("SELECT schema FROM ferry_packets WHERE number = ?", number)
    {
      $0.int64(0)
    }
    return try schemas.deciding(version: version ?? 0)
  }

  // MARK: Packets

  /// Freezes waiting operations into packets until `limit` of them are open. A packet's content
  /// never changes; later edits are new operations.
  ///
  /// - Parameter cut: special sizes of the packets.
  func freeze(limit: Int, _ cut: PacketCut) throws {
    while try packets.openCount() < limit {
      guard try queue.freezeNext(cut, schema: schemas.deciding()) else { return }
    }
  }

  /// Returns the frozen packet: the same operations however often it is sent.
  ///
  /// - Throws: ``ReplicaError/database(_:code:)`` if the operations differ from the frozen ones.
  ///   Such a packet would get a receipt without a match here, and later packets would wait for
  ///   ever.
  func packet(_ row: FrozenPacket, of device: DeviceID) throws -> Packet {
    let operations = try operations(of: row)
    guard operations.last?.id == row.tail && operations.count == row.operations else {
      throw ReplicaError.database(
        "packet \(row.number) in ferry_packets differs from its frozen state: it has "
          + "\(operations.count.counted("operation")) instead of \(row.operations.grouped)",
        code: 11)
    }
    return Packet(
      device: device, dependency: row.dependency, operations: operations,
      continues: row.continues, isAuthoritative: schemas.isAuthority)
  }

  /// Returns a packet's operations in the queue, merged by the schema at the time of the freeze.
  func operations(of row: FrozenPacket) throws -> [SyncOperation] {
    try queue.operations(of: row, schema: schemas.deciding(version: row.schema))
  }

  /// Returns the number of a packet's transactions.
  func transactionCount(ofPacket number: Int64) throws -> Int {
    try connection.count(
      """
      SELECT count(DISTINCT grp) FROM ferry_pending JOIN ferry_current_packets
      ON seq BETWEEN from_order AND to_order WHERE number = \(number)
      """)
  }

  // MARK: Recording

  /// Stores the clock: the newest pending operation has its time, and may be dropped.
  func rememberClock() throws {
    let newest = try connection.first("SELECT id FROM ferry_operations ORDER BY seq DESC LIMIT 1") {
      $0.uniqueID(0)
    }
    guard let time = newest??.timestamp else { return }
    try connection.run("UPDATE ferry_replica SET clock = max(clock, ?)", time.rawValue)
  }

  /// Records an update already visible in the row.
  func recordUpdate(of key: RecordKey, _ columns: [Column], former: [Column]) throws {
    try connection.run(
      """
      INSERT INTO ferry_operations(seq, id, grp, base, tbl, record, kind, data, was)
      VALUES (\(OperationRecorder.newestOrder) + 1, ferry_operation(), ferry_group(), ferry_base(), ?, ?,
        'update', ?, ?)
      """, key.table, key.record, SQLiteText(Self.json(columns)),
      SQLiteText(Self.json(former)))
  }

  private static func json(_ columns: [Column]) -> [UInt8] {
    var json = JSONWriter()
    json.columns(columns)
    return json.finish()
  }

  /// Records an increment with the same identifier on all devices.
  ///
  /// - Parameter base: the newest sequence seen by the author; `nil` for the cursor.
  func recordIncrement(
    _ amount: Int64, of column: Name, in key: RecordKey, id: OperationID,
    base: SequenceNumber? = nil
  ) throws {
    var (data, marks) = (JSONWriter(), JSONWriter())
    data.columns([Column(column, .integer(amount))])
    marks.array(of: ["+\(column)"])
    try connection.run(
      """
      INSERT INTO ferry_operations(seq, id, grp, base, tbl, record, kind, data, marks)
      SELECT \(OperationRecorder.newestOrder) + 1, ?1, ferry_group(), ifnull(?6, ferry_base()), ?2, ?3, 'update', ?4, ?5
      WHERE NOT EXISTS (SELECT 1 FROM ferry_pending WHERE record = ?3 AND tbl = ?2 AND id = ?1)
      """, id.value, key.table, key.record, String(decoding: data.finish(), as: UTF8.self),
      String(decoding: marks.finish(), as: UTF8.self), base)
  }
}
