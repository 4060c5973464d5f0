import FerryProtocol
import FerrySQLite

/// The archive of confirmed operations (SPEC.md §5). A server that was restored from a backup lacks
/// the newest operations, and perhaps only this device still has them.
extension ReplicaFile {
  /// How long they are kept, in milliseconds.
  static let archiveAgeMax = Limits.confirmedAgeMax
  /// How many of the newest recorded operations are kept.
  static let archiveLength: Int64 = 100_000

  /// Moves confirmed operations up to `order` from the pending ones to the archive.
  ///
  /// - Parameter now: the server's clock in milliseconds; this device's own may jump by years.
  func archive(through order: Int64, now: Int64) throws {
    try connection.run(
      """
      INSERT INTO ferry_archived_packets(number, dependency, tail, from_order, to_order, merged,
        continues, operations, last, schema, applied, at)
      SELECT number, dependency, tail, from_order, to_order, merged, continues, operations, last,
        schema, applied, ?2 FROM ferry_packets WHERE to_order <= ?1
      """, order, now)
    if !PlantedFault.archiveForgotten.isPlanted {
      try connection.run(
        """
        INSERT INTO ferry_archive(seq, id, grp, base, tbl, record, kind, data, concurrent, was,
          marks)
        SELECT seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks FROM ferry_pending
        WHERE seq > ?2 AND seq <= ?1
        """, order, order - Self.archiveLength)
    }
    for table in ["ferry_pending WHERE seq", "ferry_packets WHERE to_order"] {
      try connection.run("DELETE FROM \(table) <= ?", order)
    }
    try trimArchive(below: order - Self.archiveLength, now: now)
  }

  private func trimArchive(below order: Int64, now: Int64) throws {
    let last =
      try connection.first(
        "SELECT max(to_order) FROM ferry_archived_packets WHERE at < ?1 OR from_order <= ?2",
        now - Self.archiveAgeMax, order
      ) { $0.optionalInt64(0) } ?? nil
    guard let last else { return }
    let tables = [
      "ferry_archive WHERE seq", "ferry_archived_packets WHERE to_order", "ferry_apart WHERE seq",
    ]
    for table in tables { try connection.run("DELETE FROM \(table) <= ?", last) }
  }

  // MARK: The chain as the server knows it

  /// Compares the tail that a page names with the packets that were made here, and confirms those
  /// that the server has. Confirmed packets that the server lost are sent again. If a copy of this
  /// file has written under its device identifier, this one takes a new identifier.
  ///
  /// - Returns: Whether the cursor had to go back, so that the pull list is to be requested again.
  func settleChain(_ head: PageHead) throws -> Bool {
    let isSetBack = try syncState().replacement == .rescuing
    if isSetBack { try forgetBases() }
    guard let tail = head.appliedTail else {
      guard try lacksChain(isSetBack) else { return false }
      try sendAllAgain()
      return false
    }
    if isSetBack, try keepsEarlierChains() {
      try sendAllAgain()
      return false
    }
    if let number = try number(of: tail) {
      if try hasConfirmed(after: number, isSetBack) {
        try sendAgain(after: number)
        return false
      }
      return try acknowledge(through: tail, head: head)
    }
    if try isNewestKnown(tail) { return false }
    guard isSetBack else {
      if !PlantedFault.noForkDetection.isPlanted { try leaveToCopy() }
      return false
    }
    // The server was rolled back, and this device does not know how far. The server recognises
    // operations by their identifiers.
    try sendAllAgain()
    return false
  }

  /// Returns the number of the packet that ends with an operation.
  private func number(of tail: OperationID) throws -> Int64? {
    // If a packet is not kept any more, the next one has its place.
    return try connection.first(
      """
      SELECT number FROM ferry_packets WHERE tail = ?1
      UNION ALL SELECT number FROM ferry_archived_packets WHERE tail = ?1
      UNION ALL SELECT number - 1 FROM ferry_archived_packets WHERE dependency = ?1
      UNION ALL SELECT number - 1 FROM ferry_packets WHERE dependency = ?1 LIMIT 1
      """, tail
    ) { $0.int64(0) }
  }

  /// Whether a tail is the end of this device's chain.
  private func isNewestKnown(_ tail: OperationID) throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_replica WHERE tail = ?1", tail)
  }

  /// Whether a server that does not know this device's identifier has lost confirmed operations of
  /// it. It lost operations of an earlier identifier only if it reports a loss.
  private func lacksChain(_ isSetBack: Bool) throws -> Bool {
    let start =
      try connection.first("SELECT chain_start FROM ferry_replica") { $0.int64(0) } ?? 0
    if isSetBack { return try hasConfirmed(after: 0, isSetBack) }
    // The first packet of a chain is a duplicate only if the server knew the chain.
    return try connection.exists(
      """
      SELECT 1 FROM ferry_packets WHERE number > ?1 AND (applied = 1
        OR state = 'acknowledged' AND dependency IS NULL)
      UNION ALL SELECT 1 FROM ferry_archived_packets WHERE number > ?1 AND applied = 1 LIMIT 1
      """, start)
  }

  /// Whether packets are kept that were confirmed under an earlier identifier. The tail of the
  /// newest identifier shows nothing about them: its first packet may have arrived after the
  /// rollback.
  private func keepsEarlierChains() throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_archived_packets
      WHERE number <= (SELECT chain_start FROM ferry_replica) LIMIT 1
      """)
  }

  /// Whether packets after a place in the chain were confirmed, so that a server which names that
  /// place has lost them.
  ///
  /// If a packet is known only as a duplicate, a copy of this file may have it in its chain
  /// instead. To send it once more is harmless. The cursor has passed the packets in the archive:
  /// if the server accepts the cursor, they are in the history.
  private func hasConfirmed(after number: Int64, _ isSetBack: Bool) throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_packets WHERE number > ?1
        AND state = 'acknowledged'
      UNION ALL SELECT 1 FROM ferry_archived_packets WHERE number > ?1 AND (applied = 1 OR ?2)
      LIMIT 1
      """, number, isSetBack)
  }

  // MARK: Sending again

  /// Sends the packets after a given one again, unchanged. The server has that one.
  private func sendAgain(after number: Int64) throws {
    let count = try takeFromArchive(after: number)
    try connection.execute(
      """
      UPDATE ferry_packets SET state = 'frozen', first = NULL, last = NULL, clean = 0, applied = 0,
        history_hash_before = NULL, history_hash = NULL, timeline = NULL
      WHERE state = 'acknowledged' AND number > \(number);
      UPDATE ferry_pending SET concurrent = 2 WHERE concurrent = 0 AND seq <=
        (SELECT max(to_order) FROM ferry_packets WHERE number > \(number))
      """)
    try noteSetBack(count)
  }

  /// Sends everything that is still here again, in a new chain. The server does not know this
  /// device, or its chain ends at an unknown operation.
  private func sendAllAgain() throws {
    let count = try takeFromArchive(after: 0)
    _ = try beginChain(with: packets(where: "1 ORDER BY number"))
    try noteSetBack(count)
  }

  /// Takes a new identifier after a copy of this file has written under the present one, after
  /// packets unknown here.
  ///
  /// Those packets may or may not follow the confirmed packets of this device. If the server was
  /// rolled back to the time of the copy, it has lost the confirmed packets. The cursor does not
  /// show that until it gets that far.
  ///
  /// So the device sends everything beyond its cursor again, under a new identifier. It sends
  /// nothing before the cursor, not even expired operations: the server may have forgotten them,
  /// and would treat them as new.
  private func leaveToCopy() throws {
    try noteCopied(as: beginChain(with: packets(where: "1 ORDER BY number")))
  }

  /// Moves archived packets back to the queue, unchanged.
  ///
  /// - Parameter number: of the packet before them; 0 for all.
  /// - Returns: The number of their operations.
  private func takeFromArchive(after number: Int64) throws -> Int {
    let condition =
      "seq >= (SELECT min(from_order) FROM ferry_archived_packets WHERE number > \(number))"
    let base = try syncState().replacement == .rescuing ? "0" : "base"
    try connection.execute(
      """
      INSERT INTO ferry_pending(seq, id, grp, base, tbl, record, kind, data, concurrent, was,
        marks)
      SELECT seq, id, grp, \(base), tbl, record, kind, data, concurrent, was, marks
      FROM ferry_archive WHERE \(condition);
      DELETE FROM ferry_archive WHERE \(condition)
      """)
    let count = connection.changes
    try connection.execute(
      """
      INSERT INTO ferry_packets(number, dependency, tail, from_order, to_order, merged, continues,
        operations, state, schema)
      SELECT number, dependency, tail, from_order, to_order, merged, continues, operations, 'frozen',
        schema
      FROM ferry_archived_packets WHERE number > \(number);
      DELETE FROM ferry_archived_packets WHERE number > \(number)
      """)
    return count
  }

  /// Clears the bases after a rejected cursor. Its places belong to a lost history: the changes
  /// seen there may come to later places in the new one, or never. So the device claims no such
  /// knowledge.
  private func forgetBases() throws {
    try connection.execute("UPDATE ferry_pending SET base = 0 WHERE base <> 0")
  }

  private func noteSetBack(_ count: Int) throws {
    try note(
      "restored",
      "the server lost confirmed operations (was it restored from a backup?); this device "
        + "re-uploads its own, \(count) of them from its archive")
  }
}
