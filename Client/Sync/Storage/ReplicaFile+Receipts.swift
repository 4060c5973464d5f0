import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// The server's receipts for packets.
extension ReplicaFile {
  /// Stores the receipts of one answer. Returns the packets newly confirmed.
  func receive(_ answer: PacketAnswer) throws -> [PacketReceipt] {
    try connection.transaction {
      var confirmed: [PacketReceipt] = []
      for receipt in [answer.receipt] + answer.released {
        if try receive(receipt, head: answer.head) { confirmed.append(receipt) }
      }
      try connection.run("UPDATE ferry_replica SET head = max(head, ?)", answer.head)
      try advanceOverOwn(epoch: answer.epoch)
      try forgetCovered(now: answer.serverTime)
      return confirmed
    }
  }

  private func receive(_ receipt: PacketReceipt, head: SequenceNumber) throws -> Bool {
    let number = try connection.first(
      "SELECT number, state FROM ferry_packets WHERE tail = ? AND state <> 'acknowledged'",
      receipt.tail
    ) { $0.int64(0) }
    guard let number else { return false }
    let isConfirmed = receipt.status != .buffered
    // Only the server knows the effect of a batch.
    let isClean = !receipt.outcomes.contains { $0.isOverruled || $0.records != nil }
    // After a batch's effects, the packet's last operation is not at its last place.
    let placed = (receipt.outcomes.last?.records ?? 0) == 0 ? receipt : nil
    try connection.run(
      """
      UPDATE ferry_packets SET state = ?, first = ?, last = ?, clean = ?, history_hash_before = ?,
        history_hash = ?, timeline = ?, applied = ? WHERE number = ?
      """, isConfirmed ? "acknowledged" : "buffered", receipt.sequences?.lowerBound,
      receipt.sequences?.upperBound ?? head, isConfirmed && isClean, placed?.historyHashBefore,
      placed?.historyHash, placed?.timeline?.value, receipt.status == .applied, number)
    if isConfirmed {
      try noteConflicts(receipt, packet: number)
      try pullAgain(receipt, packet: number)
    }
    if isConfirmed && PlantedFault.acknowledgeByRecord.isPlanted {
      try connection.execute(
        """
        DELETE FROM ferry_pending WHERE seq > (SELECT max(to_order) FROM ferry_packets)
          AND record IN (SELECT record FROM ferry_pending JOIN ferry_packets
            ON seq BETWEEN from_order AND to_order WHERE number = \(number))
        """)
    }
    return isConfirmed
  }

  /// Moves the cursor back to the place at which these operations were made. A copy of this file
  /// may have sent them, so that they are behind the cursor. While the device pulled them, its own
  /// operations still shielded the records. The next pull fetches the server's values.
  private func pullAgain(_ receipt: PacketReceipt, packet number: Int64) throws {
    let state = try syncState()
    if let sequences = receipt.sequences, sequences.lowerBound > state.applied { return }
    let lowest = try connection.first(
      """
      SELECT min(base) FROM ferry_pending JOIN ferry_packets ON seq BETWEEN from_order AND to_order
      WHERE number = ? AND \(Self.isTwoWay)
      """, number
    ) { $0.optionalInt64(0) }
    guard let base = lowest ?? nil, base < state.applied else { return }
    try goBack(to: base)
    try connection.execute("UPDATE ferry_packets SET clean = 0 WHERE number = \(number)")
  }

  /// Moves the cursor back. A list from the start replaces the rows here, because it lacks old
  /// deletes.
  func goBack(to cursor: SequenceNumber) throws {
    try connection.run(
      """
      UPDATE ferry_replica SET applied = ?1, received = ?1,
        replacing = iif(?1 = 0 AND replacing = 0, ?2, replacing)
      """, cursor, Replacement.removing.rawValue)
    try connection.execute(
      "DELETE FROM ferry_to_apply; UPDATE ferry_refresh SET fetched = 0 WHERE fetched <> 0")
  }

  /// Confirms everything up to `tail`: it is in the history, even if the answer was lost on the
  /// way.
  ///
  /// - Returns: Whether the cursor had to go back. If the places are not known, they may be behind
  ///   the cursor, taken by a copy of this file. Then changes that came while the operations were
  ///   pending have to be pulled again.
  func acknowledge(through tail: OperationID?, head: PageHead) throws -> Bool {
    guard let tail else { return false }
    let base = try firstMet(
      "state <> 'acknowledged' AND number <= (SELECT number FROM ferry_packets WHERE tail = ?1)",
      tail)
    try connection.run(
      """
      UPDATE ferry_packets SET state = 'acknowledged', first = NULL, last = ?2, clean = 0
      WHERE state <> 'acknowledged'
        AND number <= (SELECT number FROM ferry_packets WHERE tail = ?1)
      """, tail, head.head)
    try connection.run(
      """
      UPDATE ferry_packets SET applied = 1 WHERE applied = 0
        AND number <= (SELECT number FROM ferry_packets WHERE tail = ?)
      """, tail)
    guard let base, base < (try syncState().applied) else { return false }
    try goBack(to: base)
    return true
  }

  /// Returns the lowest base of these packets' operations for whose records a change has come.
  private func firstMet(
    _ condition: String, _ tail: OperationID? = nil
  ) throws -> SequenceNumber? {
    try connection.first(
      """
      SELECT min(base) FROM ferry_pending JOIN ferry_packets ON seq BETWEEN from_order AND to_order
      WHERE concurrent <> 0 AND \(Self.isTwoWay) AND \(condition)
      """, SQLiteList([tail].compactMap(\.self))
    ) { $0.optionalInt64(0) } ?? nil
  }

  /// Advances the cursor over this device's confirmed packets if no other device's change is
  /// between them. The replica then equals the server and need not pull its own operations. It does
  /// not advance if the server had changes of the same records.
  private func advanceOverOwn(epoch: Epoch) throws {
    let state = try syncState()
    guard state.epoch == epoch, state.received == state.applied else { return }
    var advance = OwnAdvance(applied: state.applied, anchor: state.anchor)
    let candidates = try packets(
      where: """
        state = 'acknowledged' AND first IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM ferry_pending WHERE concurrent <> 0 AND seq BETWEEN from_order AND to_order)
        ORDER BY first
        """)
    for packet in candidates { advance.take(packet) }
    guard advance.applied > state.applied else { return }
    let anchor = advance.anchor
    try connection.run(
      """
      UPDATE ferry_replica SET applied = ?1, received = ?1, anchor_head = ?2, anchor = ?3,
        anchor_history_hash = ?4, anchor_timeline = ?5
      """, advance.applied, anchor?.head, anchor?.operation, anchor?.historyHash,
      anchor?.timeline?.value)
  }

  /// Drops confirmed operations after the cursor has passed them. Until then they shield the user's
  /// values from older pages.
  func forgetCovered(now: Int64) throws {
    try releaseBatches()
    guard try connection.exists("SELECT 1 FROM ferry_packets LIMIT 1") else { return }
    let oldestOpen = "(SELECT min(number) FROM ferry_packets WHERE state <> 'acknowledged')"
    let covered = """
      SELECT max(to_order) FROM ferry_packets WHERE state = 'acknowledged'
        AND last <= (SELECT applied FROM ferry_replica)
        AND number < coalesce(\(oldestOpen), 9223372036854775807)
        AND number < coalesce((SELECT min(number) FROM ferry_packets
          WHERE state = 'acknowledged' AND last > (SELECT applied FROM ferry_replica)),
          9223372036854775807)
      """
    let order = try connection.first(covered) { $0.optionalInt64(0) } ?? nil
    guard let order else { return }
    try rememberClock()
    try archive(through: order, now: now)
  }

  /// Stores the clock: the newest pending operation has its time, and may be dropped.
  func rememberClock() throws {
    let newest = try connection.first("SELECT id FROM ferry_pending ORDER BY seq DESC LIMIT 1") {
      $0.uniqueID(0)
    }
    guard let time = newest??.timestamp else { return }
    try connection.run("UPDATE ferry_replica SET clock = max(clock, ?)", time.rawValue)
  }

  /// Takes a new device identifier and sends the unconfirmed operations again under it; nothing is
  /// lost. Another copy of this file has written under the present identifier, or it belongs to
  /// another user.
  ///
  /// - Parameters:
  ///   - why: ``ProblemCode/deviceForked`` or ``ProblemCode/deviceTaken``.
  ///   - reason: another reason, for the log.
  func takeNewIdentity(_ why: ProblemCode = .deviceForked, because reason: String? = nil) throws {
    try connection.transaction {
      let device = try leaveIdentity()
      if let reason {
        try note(
          "identity", "\(reason); this replica is now \(device) and sends these operations again")
      } else if why == .deviceTaken {
        try noteTaken(as: device)
      } else {
        try noteCopied(as: device)
      }
    }
  }

  private func leaveIdentity() throws -> DeviceID {
    // A packet before one in this device's chain is in the history as well. That does not hold for
    // a packet of a copy: the copy may have omitted the one before.
    let passed =
      "state <> 'acknowledged' AND number < (SELECT max(number) FROM ferry_packets "
      + "WHERE applied = 1)"
    if let base = try firstMet(passed), base < (try syncState().applied) { try goBack(to: base) }
    try connection.execute(
      """
      UPDATE ferry_packets SET state = 'acknowledged', first = NULL, clean = 0,
        last = (SELECT head FROM ferry_replica)
      WHERE \(passed)
      """)
    let open = try packets(
      where: """
        number >= (SELECT min(number) FROM ferry_packets WHERE state <> 'acknowledged')
        ORDER BY number
        """)
    return try beginChain(with: open)
  }

  private func noteTaken(as device: DeviceID) throws {
    try note(
      "identity",
      "this replica's former identifier belongs to another user: was the token changed? "
        + "The replica is now \(device)")
  }

  func noteCopied(as device: DeviceID) throws {
    try note("identity", "another copy of this replica has written; this copy is now \(device)")
  }

  private func noteConflicts(_ receipt: PacketReceipt, packet number: Int64) throws {
    guard receipt.outcomes.contains(where: { !$0.conflicts.isEmpty }),
      let row = try packets(where: "number = \(number)").first
    else { return }
    let operations = try packet(row).operations
    for (operation, outcome) in zip(operations, receipt.outcomes) {
      for conflict in outcome.conflicts { try note(conflict, of: operation.id, on: operation.key) }
    }
  }
}
