import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// The pending operations and the packets made of them (SPEC.md §4).
extension ReplicaFile {
  var queue: OperationTable {
    OperationTable(connection: connection, limits: limits, capture: capture)
  }

  /// Returns own operations on a record without an effect in the server's changes so far, merged as
  /// for sending. Marks them: a change from the server concerns their record now.
  ///
  /// An insert and its delete no longer cancel each other out, since the server has a record to
  /// delete. The server's result for such operations is pulled, not predicted.
  func markConcurrent(_ key: RecordKey) throws -> [SyncOperation] {
    var sent: [SyncOperation] = []
    var schema = try spaceSchema()
    var merger = OperationMerger(limits: limits, schema: schema)
    var packet: Int64?
    var isNews = false
    try connection.forEach(
      """
      SELECT seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks,
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
        merger = OperationMerger(limits: limits, schema: schema)
        return
      }
      let number = row.optionalInt64(12)
      isNews = isNews || row.int64(8) == 0
      if number != packet {
        sent += merger.operations
        schema = try spaceSchema(ofPacket: number.map { abs($0) })
        merger = OperationMerger(limits: limits, schema: schema)
        packet = number
      }
      // A packet of a large transaction has unmerged operations.
      if let number, number < 0 {
        sent.append(operation)
      } else {
        merger.add(
          operation, isConcurrent: number == nil || pending.isConcurrent,
          isApart: row.int64(11) == 1)
      }
    }
    if isNews { try queue.markMet(key) }
    return sent + merger.operations
  }

  /// Returns the schema at the time of a packet's merge; the present one for operations in no
  /// packet.
  private func spaceSchema(ofPacket number: Int64?) throws -> SpaceSchema {
    guard let number else { return try spaceSchema() }
    let version = try connection.first("SELECT schema FROM ferry_packets WHERE number = ?", number)
    {
      $0.int64(0)
    }
    return try spaceSchema(version: version ?? 0)
  }

  // MARK: Packets

  /// Freezes waiting operations into packets until `limit` of them are open. A packet's content
  /// never changes; later edits are new operations.
  ///
  /// - Parameter cut: special sizes of the packets.
  func freezePackets(limit: Int, _ cut: PacketCut = PacketCut()) throws {
    try connection.transaction {
      try withholdFollowers()
      while try packets.openCount() < limit {
        guard try queue.freezeNext(cut, schema: spaceSchema()) else { return }
      }
    }
  }

  /// Returns the frozen packet: the same operations however often it is sent.
  ///
  /// - Throws: ``ReplicaError/database(_:code:)`` if the operations differ from the frozen ones.
  ///   Such a packet would get a receipt without a match here, and later packets would wait for
  ///   ever.
  func packet(_ row: FrozenPacket) throws -> Packet {
    let operations = try operations(of: row)
    guard operations.last?.id == row.tail && operations.count == row.operations else {
      throw ReplicaError.database(
        "packet \(row.number) in ferry_packets differs from its frozen state: it has "
          + "\(operations.count.counted("operation")) instead of \(row.operations.grouped)",
        code: 11)
    }
    return Packet(
      device: try identity().device, dependency: row.dependency, operations: operations,
      continues: row.continues)
  }

  /// Returns a packet's operations in the queue, merged by the schema at the time of the freeze.
  func operations(of row: FrozenPacket) throws -> [SyncOperation] {
    try queue.operations(of: row, schema: spaceSchema(version: row.schema))
  }
}
