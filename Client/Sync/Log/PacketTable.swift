import FerryProtocol
import FerrySQLite

/// The packets of a replica's file: `ferry_packets` (SPEC.md §4).
///
/// A packet is current until the cursor has passed it. Then it is in the archive, for a server
/// restored from a backup.
struct PacketTable {
  let connection: SQLiteConnection

  /// The place of the last operation in a packet; 0 without packets.
  static let frozenOrder =
    "coalesce((SELECT to_order FROM ferry_packets ORDER BY number DESC LIMIT 1), 0)"

  // MARK: Current packets

  /// Returns the packets after the cursor, in the order of their numbers.
  func current() throws -> [FrozenPacket] { try select(from: "ferry_current_packets") }

  /// Returns frozen packets and packets buffered by the server, oldest first.
  func open() throws -> [FrozenPacket] {
    try select(from: "ferry_current_packets WHERE state <> 'acknowledged'")
  }

  /// Returns the current packet with this number.
  func packet(_ number: Int64) throws -> FrozenPacket? {
    try select(from: "ferry_current_packets WHERE number = ?", number).first
  }

  private func select(from source: String, _ numbers: Int64...) throws -> [FrozenPacket] {
    try connection.rows(
      """
      SELECT number, dependency, tail, from_order, to_order, merged, continues, operations, schema,
        state, first, last, clean, applied, history_hash_before, history_hash, timeline,
        EXISTS (SELECT 1 FROM ferry_operations
          WHERE state = 0 AND concurrent <> 0 AND seq BETWEEN from_order AND to_order)
      FROM \(source) ORDER BY number
      """, SQLiteList(numbers)
    ) { try FrozenPacket($0) }
  }

  func hasCurrent() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_current_packets LIMIT 1")
  }

  /// Returns the end of the confirmed chain under the present identifier; `nil` without confirmed
  /// packets.
  func confirmedEnd() throws -> ConfirmedEnd? {
    try connection.first(
      """
      SELECT tail, applied FROM ferry_packets WHERE number > (SELECT chain_start FROM ferry_replica)
        AND state = 'acknowledged' ORDER BY number DESC LIMIT 1
      """
    ) { row in
      row.uniqueID(0).map { ConfirmedEnd(tail: OperationID($0), isProved: row.int64(1) != 0) }
    } ?? nil
  }

  /// Returns the place of the last operation in a packet; 0 if there is none.
  func lastFrozenOrder() throws -> Int64 {
    try connection.first("SELECT \(Self.frozenOrder)") { $0.int64(0) } ?? 0
  }

  /// Returns the place of the last confirmed operation of current packets; 0 if there is none.
  func lastConfirmedOrder() throws -> Int64 {
    try connection.first(
      """
      SELECT coalesce(max(to_order), 0) FROM ferry_current_packets WHERE state = 'acknowledged'
      """
    ) { $0.int64(0) } ?? 0
  }

  func openCount() throws -> Int {
    try connection.first(
      "SELECT count(*) FROM ferry_current_packets WHERE state <> 'acknowledged'"
    ) { Int($0.int64(0)) } ?? 0
  }

  /// Returns the number of operations buffered by the server until their predecessors arrive.
  func bufferedCount() throws -> Int {
    try connection.first(
      "SELECT coalesce(sum(operations), 0) FROM ferry_current_packets WHERE state = 'buffered'"
    ) { Int($0.int64(0)) } ?? 0
  }

  /// Returns true if the chain restarts with packets perhaps sent under a former identifier.
  func isChainSentAgain() throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_current_packets WHERE state <> 'acknowledged' AND dependency IS NULL
        AND EXISTS (SELECT 1 FROM ferry_former_names) LIMIT 1
      """)
  }

  /// Returns the anchor at the newest confirmed packet after a place.
  ///
  /// - Parameter ofFormerNames: true if only packets of earlier identifiers count.
  func newestAnchor(
    after place: SequenceNumber, ofFormerNames: Bool
  ) throws -> Cursor.Anchor? {
    try connection.first(
      """
      SELECT last, tail, history_hash, timeline FROM ferry_current_packets
      WHERE state = 'acknowledged' AND history_hash IS NOT NULL AND last > ?1
        AND (NOT ?2 OR number <= (SELECT chain_start FROM ferry_replica))
      ORDER BY last DESC LIMIT 1
      """, place, ofFormerNames
    ) { row in
      row.uniqueID(1).map {
        Cursor.Anchor(
          head: row.int64(0), operation: OperationID($0),
          historyHash: UInt64(bitPattern: row.int64(2)), timeline: row.timeline(3))
      }
    } ?? nil
  }

  // MARK: Writing

  /// Freezes a packet at the end of the chain.
  func append(_ plan: PacketPlanner.Plan, tail: OperationID) throws {
    try connection.run(
      """
      INSERT INTO ferry_packets
        (dependency, tail, from_order, to_order, merged, continues, operations, state, schema)
      VALUES ((SELECT tail FROM ferry_replica), ?, ?, ?, ?, ?, ?, 'frozen',
        (SELECT schema FROM ferry_replica))
      """, tail, plan.orders.lowerBound, plan.orders.upperBound, plan.isMerged, plan.continues,
      plan.operations.count)
    try connection.run("UPDATE ferry_replica SET tail = ?", tail)
  }

  /// Stores a machine's changes.
  func save(_ packets: [FrozenPacket], before: [FrozenPacket]) throws {
    for (packet, old) in zip(packets, before) where packet != old {
      try connection.run(
        """
        UPDATE ferry_packets SET dependency = ?, state = ?, first = ?, last = ?, clean = ?,
          applied = ?, history_hash_before = ?, history_hash = ?, timeline = ? WHERE number = ?
        """, packet.dependency, packet.state.rawValue, packet.first, packet.last, packet.isClean,
        packet.isInChain, packet.hashBefore, packet.hashAfter, packet.timeline?.value,
        packet.number)
    }
  }

  /// Changes a packet after a loss of operations, so it is sent again.
  func perform(_ change: PacketGaps.Change) throws {
    switch change {
    case .replace(let number, let dependency, let tail, let operations):
      try connection.run(
        """
        UPDATE ferry_packets SET dependency = ?, tail = ?, operations = ?, state = 'frozen'
        WHERE number = ?
        """, dependency, tail, operations, number)
    case .remove(let number):
      try connection.run("DELETE FROM ferry_packets WHERE number = ?", number)
    }
  }

  func remove(from number: Int64) throws {
    try connection.run("DELETE FROM ferry_packets WHERE number >= ?", number)
  }

  /// Forgets the places of current packets, because their history is lost.
  func forgetPlaces() throws {
    let before = try current()
    var after = before
    for index in after.indices { after[index].forgetPlaces() }
    try save(after, before: before)
  }

  // MARK: Archive

  /// Moves the packets with operations up to `order` to the archive.
  ///
  /// - Parameters:
  ///   - now: the server's clock in milliseconds.
  ///   - wall: this device's clock in milliseconds.
  /// - Returns: The place of the last operation in the archive before.
  func archive(through order: Int64, now: Int64, wall: Int64) throws -> Int64 {
    // Until now the archive ended here; the queue begins after it.
    let last = try connection.first(
      "SELECT to_order, archived FROM ferry_archived_packets ORDER BY number DESC LIMIT 1"
    ) { (order: $0.int64(0), at: $0.int64(1)) }
    // The server's clock was ahead: earlier packets are no younger than these.
    if let last, last.at > now {
      try connection.run("UPDATE ferry_packets SET archived = ?1 WHERE archived > ?1", now)
    }
    try connection.run(
      """
      UPDATE ferry_packets SET archived = ?2, archived_here = ?3
      WHERE archived IS NULL AND to_order <= ?1
      """, order, now, wall)
    return last?.order ?? 0
  }

  /// Removes archived packets older than an age, and packets that begin up to `order`. Returns the
  /// place of their last operation; `nil` without any.
  ///
  /// The age must have passed by the server's clock and by this device's: a server with a false
  /// time makes no device drop its work. If this device's clock was put back, the server's decides.
  ///
  /// - Parameters:
  ///   - age: in milliseconds.
  ///   - now: the server's clock in milliseconds.
  ///   - wall: this device's clock in milliseconds.
  func trimArchive(
    olderThan age: Int64, now: Int64, wall: Int64, below order: Int64
  ) throws -> Int64? {
    let isOldHere = "archived_here < ?3 - ?4 OR archived_here > ?3"
    let isOld = "(archived < ?1 - ?4 AND (\(isOldHere))) OR from_order <= ?2"
    let oldest = "(SELECT min(number) FROM ferry_packets)"
    let isDue = "SELECT 1 FROM ferry_archived_packets WHERE number = \(oldest) AND (\(isOld))"
    guard try connection.exists(isDue, now, order, wall, age) else { return nil }
    let last = try connection.first(
      "SELECT max(to_order) FROM ferry_archived_packets WHERE \(isOld)", now, order, wall, age
    ) { $0.int64(0) }
    guard let last else { return nil }
    try connection.run(
      "DELETE FROM ferry_packets WHERE archived IS NOT NULL AND to_order <= ?", last)
    return last
  }

  /// Returns the place of the first archived operation after the packet with this number; `nil` if
  /// the archive has none.
  func firstArchivedOrder(after number: Int64) throws -> Int64? {
    try connection.first(
      "SELECT min(from_order) FROM ferry_archived_packets WHERE number > ?", number
    ) { $0.optionalInt64(0) } ?? nil
  }

  /// Records that a page names a packet, or one after it: the server has all up to it.
  func markProved(through number: Int64) throws {
    try connection.run(
      """
      UPDATE ferry_packets SET applied = 1 WHERE applied = 0 AND state = 'acknowledged'
        AND number <= ?1 AND number > (SELECT chain_start FROM ferry_replica)
      """, number)
  }

  /// Returns the number of the first packet under the present identifier confirmed only by
  /// receipts, after the last one named by a page; `nil` if there is none.
  func firstUnproved() throws -> Int64? {
    let chain = "number > (SELECT chain_start FROM ferry_replica)"
    return try connection.first(
      """
      SELECT min(number) FROM ferry_packets WHERE \(chain) AND state = 'acknowledged'
        AND number > coalesce((SELECT max(number) FROM ferry_packets WHERE \(chain)
          AND applied = 1), 0)
      """
    ) { $0.optionalInt64(0) } ?? nil
  }

  /// Makes archived packets current again, to be sent.
  ///
  /// - Parameter number: of the packet before them; 0 for all.
  func restoreArchived(after number: Int64) throws {
    try connection.run(
      """
      UPDATE ferry_packets SET archived = NULL, archived_here = NULL, state = 'frozen',
        first = NULL, last = NULL,
        clean = 0, applied = 0, history_hash_before = NULL, history_hash = NULL, timeline = NULL
      WHERE archived IS NOT NULL AND number > ?
      """, number)
  }

  // MARK: Facts about the chain

  /// Returns the number of the packet with this last operation.
  func number(ofTail tail: OperationID) throws -> Int64? {
    // If a packet is not kept any more, the next one has its place.
    try connection.first(
      """
      SELECT number FROM ferry_packets WHERE tail = ?1
      UNION ALL SELECT number - 1 FROM ferry_packets WHERE dependency = ?1 LIMIT 1
      """, tail
    ) { $0.int64(0) }
  }

  /// Returns true if packets after a place in the chain were confirmed: a server that names this
  /// place has lost them.
  ///
  /// If a packet is known only as a duplicate, a copy of this file may have it in the copy's chain
  /// instead. Another upload is harmless.
  func hasConfirmed(after number: Int64) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_packets WHERE number > ?1 AND state = 'acknowledged' LIMIT 1", number)
  }

  /// Returns true if the server knew the chain under the present identifier.
  func hasChain() throws -> Bool {
    // The first packet of a chain is a duplicate only if the server knew the chain.
    try connection.exists(
      """
      SELECT 1 FROM ferry_packets WHERE number > (SELECT chain_start FROM ferry_replica)
        AND (applied = 1 OR state = 'acknowledged' AND dependency IS NULL) LIMIT 1
      """)
  }

  /// Returns true if the file keeps packets confirmed under an earlier identifier.
  func keepsEarlierChains() throws -> Bool {
    try connection.exists(
      """
      SELECT 1 FROM ferry_archived_packets
      WHERE number <= (SELECT chain_start FROM ferry_replica) LIMIT 1
      """)
  }
}

extension FrozenPacket {
  fileprivate init(_ row: SQLiteStatement) throws {
    guard let tail = row.uniqueID(2), row.int64(3) <= row.int64(4),
      let state = State(rawValue: row.text(9))
    else {
      throw ReplicaError.database("ferry_packets contains a row that is not a packet", code: 11)
    }
    self.init(
      number: row.int64(0), dependency: row.uniqueID(1).map(OperationID.init),
      tail: OperationID(tail), orders: row.int64(3)...row.int64(4), isMerged: row.int64(5) != 0,
      continues: row.int64(6) != 0, operations: Int(row.int64(7)), schema: row.int64(8))
    self.state = state
    (first, last) = (row.optionalInt64(10), row.optionalInt64(11))
    (isClean, isInChain) = (row.int64(12) != 0, row.int64(13) != 0)
    hashBefore = row.optionalInt64(14).map(UInt64.init(bitPattern:))
    hashAfter = row.optionalInt64(15).map(UInt64.init(bitPattern:))
    timeline = row.timeline(16)
    hasMet = row.int64(17) != 0
  }
}
