import FerryProtocol
import FerrySQLite

/// The archive of confirmed operations (SPEC.md §5). A server that was restored from a backup lacks
/// the newest operations, and perhaps only this device still has them.
extension ReplicaFile {
  /// How long they are kept, in milliseconds.
  static let archiveAgeMax = Limits.confirmedAgeMax
  /// How many of the newest recorded operations are kept.
  static let archiveLength: Int64 = 100_000

  /// Confirms the pending operations up to `order`: they are the archive now.
  ///
  /// - Parameter now: the server's clock in milliseconds; this device's own may jump by years.
  func archive(through order: Int64, now: Int64) throws {
    // Until now the archive ended here; the queue begins after it.
    let last = try connection.first(
      "SELECT to_order, archived FROM ferry_archived_packets ORDER BY number DESC LIMIT 1"
    ) { (order: $0.int64(0), at: $0.int64(1)) }
    // The server's clock was ahead: earlier packets are no younger than these.
    if let last, last.at > now {
      try connection.run("UPDATE ferry_packets SET archived = ?1 WHERE archived > ?1", now)
    }
    try connection.run(
      "UPDATE ferry_packets SET archived = ?2 WHERE archived IS NULL AND to_order <= ?1",
      order, now)
    let confirmed = "WHERE state = 0 AND seq > ?1 AND seq <= ?2"
    try connection.run(
      PlantedFault.archiveForgotten.isPlanted
        ? "DELETE FROM ferry_operations \(confirmed)"
        : "UPDATE ferry_operations SET state = 1 \(confirmed)", last?.order ?? 0, order)
    try trimArchive(below: order - Self.archiveLength, now: now)
  }

  /// Removes packets that are older than ``archiveAgeMax``, or that begin up to `order`.
  private func trimArchive(below order: Int64, now: Int64) throws {
    let isOld = "archived < ?1 OR from_order <= ?2"
    let oldest = "(SELECT min(number) FROM ferry_packets)"
    let age = now - Self.archiveAgeMax
    let isDue = "SELECT 1 FROM ferry_archived_packets WHERE number = \(oldest) AND (\(isOld))"
    guard try connection.exists(isDue, age, order) else { return }
    let last = try connection.first(
      "SELECT max(to_order) FROM ferry_archived_packets WHERE \(isOld)", age, order
    ) { $0.int64(0) }
    try connection.run("DELETE FROM ferry_operations WHERE state = 1 AND seq <= ?", last ?? 0)
    try connection.run(
      "DELETE FROM ferry_packets WHERE archived IS NOT NULL AND to_order <= ?", last ?? 0)
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
    switch ChainDecision(try chainFacts(head.appliedTail, isSetBack)) {
    case .goOn: return false
    case .confirm: return try acknowledge(through: head.appliedTail, head: head)
    case .sendAgain(let number): try sendAgain(after: number)
    case .sendAllAgain: try sendAllAgain()
    case .leaveToCopy:
      if !PlantedFault.noForkDetection.isPlanted { try leaveToCopy() }
    }
    return false
  }

  private func chainFacts(_ tail: OperationID?, _ isSetBack: Bool) throws -> ChainDecision.Facts {
    var facts = ChainDecision.Facts(
      isSetBack: isSetBack, keepsEarlierChains: try keepsEarlierChains())
    guard let tail else {
      facts.hasConfirmedLater = try lacksChain(isSetBack)
      return facts
    }
    if let number = try number(of: tail) {
      facts.tail = .packet(number)
      facts.hasConfirmedLater = try hasConfirmed(after: number, isSetBack)
    } else {
      facts.tail = try isNewestKnown(tail) ? .newest : .unknown
    }
    return facts
  }

  /// Returns the number of the packet that ends with an operation.
  private func number(of tail: OperationID) throws -> Int64? {
    // If a packet is not kept any more, the next one has its place.
    return try connection.first(
      """
      SELECT number FROM ferry_packets WHERE tail = ?1
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
      SELECT 1 FROM ferry_packets WHERE number > ? AND (applied = 1
        OR archived IS NULL AND state = 'acknowledged' AND dependency IS NULL) LIMIT 1
      """, start)
  }

  /// Whether packets are kept that were confirmed under an earlier identifier.
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
      SELECT 1 FROM ferry_packets WHERE number > ?1 AND state = 'acknowledged'
        AND (archived IS NULL OR applied = 1 OR ?2) LIMIT 1
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
      WHERE archived IS NULL AND state = 'acknowledged' AND number > \(number);
      UPDATE ferry_operations SET concurrent = 2 WHERE concurrent = 0 AND seq IN (
        SELECT seq FROM ferry_pending
        WHERE seq <= (SELECT max(to_order) FROM ferry_current_packets WHERE number > \(number)))
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
    let base = try syncState().replacement == .rescuing ? "0" : "base"
    try connection.execute(
      """
      UPDATE ferry_operations SET state = 0, base = \(base) WHERE state = 1 AND seq >=
        (SELECT min(from_order) FROM ferry_archived_packets WHERE number > \(number))
      """)
    let count = connection.changes
    try connection.execute(
      """
      UPDATE ferry_packets SET archived = NULL, state = 'frozen', first = NULL, last = NULL,
        clean = 0, applied = 0, history_hash_before = NULL, history_hash = NULL, timeline = NULL
      WHERE archived IS NOT NULL AND number > \(number)
      """)
    return count
  }

  /// Clears the bases after a rejected cursor. Its places belong to a lost history: the changes
  /// seen there may come to later places in the new one, or never. So the device claims no such
  /// knowledge.
  private func forgetBases() throws {
    try connection.execute("UPDATE ferry_operations SET base = 0 WHERE state = 0 AND base <> 0")
  }

  private func noteSetBack(_ count: Int) throws {
    try note(
      "restored",
      "the server lost confirmed operations (was it restored from a backup?); this device "
        + "re-uploads its own, \(count) of them from its archive")
  }
}
