import FerryProtocol
import FerrySQLite

/// The driver of the ``Outbox``: it loads the packets and the cursor, runs the machine, and stores
/// the result.
///
/// A frozen packet keeps the merged operations, under each identifier and however often it is sent.
/// The server may know them already, from this device or from a copy of its file, and ignores a
/// known operation identifier. After a second merge, one operation could carry content that the
/// server then never reads.
struct PacketChain: OutboxLedger {
  private let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }
  private var packets: PacketTable { file.packets }

  init(_ file: ReplicaFile) { self.file = file }

  func lowestBase(in orders: ClosedRange<Int64>, metOnly: Bool) throws -> SequenceNumber? {
    try connection.first(
      """
      SELECT min(base) FROM ferry_pending WHERE seq BETWEEN ?1 AND ?2
        AND (concurrent <> 0 OR NOT ?3) AND \(TrackedTables.isTwoWay)
      """, orders.lowerBound, orders.upperBound, metOnly
    ) { $0.optionalInt64(0) } ?? nil
  }

  private func withOutbox<T>(_ decide: (inout Outbox) throws -> T) throws -> T {
    let before = try Outbox(packets.current(), file.syncState())
    var outbox = before
    let result = try decide(&outbox)
    try packets.save(outbox.packets, before: before.packets)
    if outbox.state != before.state { try file.state.save(outbox.state) }
    if outbox.isPulledAgain { try file.incoming.removeAll() }
    return result
  }

  /// Freezes waiting operations into packets until `limit` of them are open, without those that wait
  /// for a failed upload.
  ///
  /// - Parameter cut: special sizes of the packets.
  func freeze(limit: Int, _ cut: PacketCut = PacketCut()) throws {
    try durably {
      try connection.transaction {
        try file.uploads.withholdFollowers()
        try file.operations.freeze(limit: limit, cut)
      }
    }
  }

  /// Runs a transaction. If operations are durable before they are sent, so are this transaction and
  /// all before it.
  private func durably(_ body: () throws -> Void) throws {
    guard file.sendsDurably else { return try body() }
    try connection.execute("PRAGMA synchronous=FULL")
    defer { try? connection.execute("PRAGMA synchronous=NORMAL") }
    try body()
  }

  // MARK: Receipts

  /// Stores the receipts of one answer. Returns the packets newly confirmed.
  func receive(_ answer: PacketAnswer) throws -> [PacketReceipt] {
    try connection.transaction {
      let (confirmed, covered) = try withOutbox { (try $0.apply(answer, self), $0.coveredOrder) }
      try file.settings.setWritesRefused(nil)
      for (receipt, packet) in confirmed { try confirm(receipt, of: packet) }
      try file.queue.releaseBatches()
      try archive(through: covered, now: answer.serverTime)
      return confirmed.map(\.receipt)
    }
  }

  /// Records the conflicts of a packet. The next pull fetches records with an operation overruled
  /// without a conflict, because later pull lists may not name them (SPEC.md §6).
  private func confirm(_ receipt: PacketReceipt, of packet: FrozenPacket) throws {
    let outcomes = receipt.outcomes
    guard outcomes.contains(where: { $0.isOverruled || !$0.conflicts.isEmpty }) else { return }
    // In these tables perhaps only this device has the row. A comparison decides about it.
    let omitted = try file.unrecordedWrites.tablesWithUnknownRows().union(
      file.tables.tracked.uploads())
    let schema = try file.tables.schemas.deciding()
    for (operation, outcome) in zip(try file.operations.operations(of: packet), outcomes) {
      let key = operation.key
      for conflict in outcome.conflicts
      // A row deleted with a parent is listed since then.
      where try operation.kind != .delete
        || !file.conflicts.has(conflict, of: operation.id, on: key)
      {
        try file.conflictLog.store(conflict, of: operation.id, on: key)
      }
      guard outcome.isOverruled, outcome.conflicts.isEmpty, operation.kind != .batch,
        !omitted.contains(key.table)
      else { continue }
      // If values were merged, the next list contains them.
      let rules = schema.rules(for: key.table)
      let isListed = receipt.sequences != nil && !rules.isPlain && rules.deletes != .editWins
      try file.refreshes.addOverruled(key, isListed: isListed)
    }
  }

  /// Moves confirmed operations to the archive after the cursor has passed them.
  ///
  /// - Parameter now: the server's clock in milliseconds; this device's own may jump by years.
  func forgetCovered(now: Int64) throws {
    try file.queue.releaseBatches()
    guard try packets.hasCurrent() else { return }
    try archive(through: Outbox(packets.current(), file.syncState()).coveredOrder, now: now)
  }

  private func archive(through order: Int64?, now: Int64) throws {
    guard let order else { return }
    try file.conflictLog.resolveQuestionsByOwnWrites()
    try file.operations.rememberClock()
    let last = try packets.archive(through: order, now: now, wall: file.wallClock())
    try refreshOverwritten(after: last, through: order)
    try connection.run(
      "UPDATE ferry_operations SET state = 1 WHERE state = 0 AND seq > ? AND seq <= ?", last, order)
    try trimArchive(below: order - Self.archiveLength, now: now)
  }

  /// Fetches records again after these own operations have overwritten their deferred values. The
  /// server has decided between the two, and later pull lists do not name the decision.
  private func refreshOverwritten(after last: Int64, through order: Int64) throws {
    if try file.kept.isEmpty() { return }
    let keys = try connection.rows(
      """
      SELECT DISTINCT k.tbl, k.record
      FROM ferry_kept AS k JOIN ferry_operations AS o ON o.record = k.record AND o.tbl = k.tbl
      WHERE o.state = 0 AND o.seq > ? AND o.seq <= ? AND json_valid(k.state) AND json_valid(o.data)
        AND EXISTS (
          SELECT 1 FROM json_each(k.state) AS write, json_each(write.value, '$.data') AS held
          JOIN json_each(o.data) AS own ON own.key = held.key)
      """, last, order
    ) { RecordKey(table: $0.name(0), record: $0.name(1)) }
    try file.refreshes.add(keys)
  }

  // MARK: The archive

  /// How long confirmed operations are kept, in milliseconds. A server restored from a backup lacks
  /// the newest ones, and perhaps only this device still has them.
  static let archiveAgeMax = Limits.confirmedAgeMax
  /// How many of the newest recorded operations are kept.
  static let archiveLength: Int64 = 100_000

  /// Removes operations older than ``archiveAgeMax``, or in a packet that begins up to `order`.
  private func trimArchive(below order: Int64 = 0, now: Int64) throws {
    let last = try packets.trimArchive(
      olderThan: Self.archiveAgeMax, now: now, wall: file.wallClock(), below: order)
    guard let last else { return }
    try file.queue.storeNewestOrder()
    try connection.run("DELETE FROM ferry_operations WHERE state = 1 AND seq <= ?", last)
  }

  // MARK: The chain as the server knows it

  /// Compares the tail named by a page with the packets made here, and confirms those on the
  /// server. Confirmed packets lost by the server are sent again. If a copy of this file has
  /// written under this device's identifier, this one uses a new identifier.
  ///
  /// - Returns: True if the cursor had to go back: the pull list is to be requested again.
  func confirm(_ head: PageHead) throws -> Bool {
    let replacement = try file.syncState().replacement
    let isSetBack = replacement?.followsLoss == true
    if isSetBack {
      try forgetBases()
    } else {
      // A server forgets a device after a long absence, and the device's old operations. Those
      // would count once more. After a loss they are perhaps nowhere else.
      try trimArchive(now: head.serverTime)
    }
    switch ChainDecision(try chainFacts(head.appliedTail, isSetBack)) {
    case .goOn: return false
    case .confirm:
      guard let tail = head.appliedTail else { return false }
      let isBack = try withOutbox { try $0.confirm(through: tail, head: head.head, self) }
      if let number = try packets.number(ofTail: tail) { try packets.markProved(through: number) }
      return isBack
    case .sendAgain(let number): try sendAgain(after: number)
    case .sendAllAgain: try sendAllAgain()
    case .leaveToCopy: try leaveToCopy()
    }
    return false
  }

  private func chainFacts(_ tail: OperationID?, _ isSetBack: Bool) throws -> ChainDecision.Facts {
    var facts = ChainDecision.Facts(
      isSetBack: isSetBack, keepsEarlierChains: try packets.keepsEarlierChains())
    guard let tail else {
      // The server lost operations of an earlier identifier only if it reports a loss.
      facts.hasConfirmedLater =
        try isSetBack ? packets.hasConfirmed(after: 0) : packets.hasChain()
      return facts
    }
    if let number = try packets.number(ofTail: tail) {
      facts.tail = .packet(number)
      facts.hasConfirmedLater = try packets.hasConfirmed(after: number)
    } else {
      facts.tail = try isNewestKnown(tail) ? .newest : .unknown
    }
    return facts
  }

  /// Returns true if a tail is the end of this device's chain.
  private func isNewestKnown(_ tail: OperationID) throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_replica WHERE tail = ?1", tail)
  }

  /// Clears the bases after a rejected cursor. The cursor's places belong to a lost history: the
  /// changes seen there may come to later places in the new one, or never. So the device claims no
  /// such knowledge.
  private func forgetBases() throws {
    try connection.execute("UPDATE ferry_operations SET base = 0 WHERE state = 0 AND base <> 0")
  }

  // MARK: Sending again

  /// Sends the packets after a given one again, unchanged. The server has the given one.
  private func sendAgain(after number: Int64) throws {
    let count = try restoreArchived(after: number)
    let last = try withOutbox { outbox in
      outbox.sendAgain(after: number)
      return outbox.packets.last
    }
    if let last, last.number > number {
      try connection.run(
        "UPDATE ferry_operations SET concurrent = 2 WHERE state = 0 AND concurrent = 0 AND seq <= ?",
        last.orders.upperBound)
    }
    try logRollback(count)
  }

  /// Sends everything still here again, in a new chain. The server does not know this device, or
  /// the chain there ends at an unknown operation.
  private func sendAllAgain() throws {
    let count = try restoreArchived(after: 0)
    _ = try withOutbox { try beginChain(with: $0.packets, &$0) }
    try logRollback(count)
  }

  /// Chooses a new identifier after a copy of this file has written packets unknown here under the
  /// present one.
  ///
  /// Those packets may or may not follow the confirmed packets of this device. If the server was
  /// rolled back to the time of the copy, it has lost the confirmed packets. Until the cursor
  /// gets that far, it does not show this loss.
  ///
  /// So the device sends everything beyond the cursor again, under a new identifier, and every
  /// packet confirmed only by receipts. It sends nothing named by a page before the cursor, not
  /// even expired operations: the server may have forgotten them, and would treat them as new.
  private func leaveToCopy() throws {
    try reopenUnproved()
    try recordCopied(as: withOutbox { try beginChain(with: $0.packets, &$0) })
  }

  /// Moves archived packets back to the queue, unchanged.
  ///
  /// - Parameter number: of the packet before them; 0 for all.
  /// - Returns: The number of their operations.
  private func restoreArchived(after number: Int64) throws -> Int {
    guard let first = try packets.firstArchivedOrder(after: number) else { return 0 }
    let base = try file.syncState().replacement?.followsLoss == true ? "0" : "base"
    let count = try connection.run(
      "UPDATE ferry_operations SET state = 0, base = \(base) WHERE state = 1 AND seq >= ?", first)
    try packets.restoreArchived(after: number)
    return count
  }

  private func logRollback(_ count: Int) throws {
    try file.log(
      "restored",
      "the server lost confirmed operations (was it restored from a backup?); this device "
        + "re-uploads its own, \(count.grouped) of them from its archive")
  }

  // MARK: Another identifier

  /// Chooses a new device identifier and sends the unconfirmed operations again under it; nothing
  /// is lost. Another copy of this file has written under the present identifier, or it belongs to
  /// another user.
  ///
  /// - Parameters:
  ///   - why: ``ProblemCode/deviceForked`` or ``ProblemCode/deviceTaken``.
  ///   - reason: another reason, for the log.
  func renewIdentity(_ why: ProblemCode = .deviceForked, because reason: String? = nil) throws {
    try connection.transaction {
      try reopenUnproved()
      let device = try withOutbox { outbox in
        try beginChain(with: outbox.leaveIdentity(self), &outbox)
      }
      if let reason {
        try file.log(
          "identity", "\(reason); this replica is now \(device) and sends these operations again")
      } else if why == .deviceTaken {
        try file.log(
          "identity",
          "this replica's former identifier belongs to another user: was the token changed? "
            + "The replica is now \(device)")
      } else {
        try recordCopied(as: device)
      }
    }
  }

  private func recordCopied(as device: DeviceID) throws {
    try file.log("identity", "another copy of this replica has written; this copy is now \(device)")
  }

  /// Moves archived packets confirmed only by receipts back to the queue. After a change of the
  /// identifier, no page compares them with the server's chain.
  private func reopenUnproved() throws {
    guard let number = try packets.firstUnproved() else { return }
    _ = try restoreArchived(after: number - 1)
  }

  /// Reopens a rejected packet, to be cut smaller. The server then names the rejected operation.
  func reopen(packet number: Int64) throws {
    try connection.transaction {
      if let row = try packets.packet(number) { try reopenPackets(from: row) }
    }
  }

  /// Opens a refused packet and all packets after it again, in a chain under a new identifier.
  ///
  /// The server has stored nothing of this packet. So no later packet can be in the history, except
  /// through a copy of this file: the server recognises the copy's operations by their identifiers.
  /// Earlier cut packets may still be on their way: in the new chain they never find a place.
  func reopenPackets(from refused: FrozenPacket) throws {
    try reopenUnproved()
    _ = try withOutbox { outbox in
      let (kept, first) = try outbox.cut(from: refused, self)
      try connection.run(
        "UPDATE ferry_operations SET apart = 0 WHERE state = 0 AND apart <> 0 AND seq >= ?",
        first.orders.lowerBound)
      try packets.remove(from: first.number)
      return try beginChain(with: kept, &outbox)
    }
  }

  /// Starts a chain under a new identifier, with packets frozen under the former one.
  private func beginChain(
    with kept: [FrozenPacket], _ outbox: inout Outbox
  ) throws -> DeviceID {
    let device = try renewName()
    outbox.beginChain(with: kept)
    // Others may know all of this under the former identifier.
    try connection.execute(
      "UPDATE ferry_operations SET concurrent = 1 WHERE \(OperationTable.isUnfrozen)")
    for packet in kept {
      try connection.run(
        """
        UPDATE ferry_operations SET concurrent = 2
        WHERE state = 0 AND concurrent = 0 AND seq BETWEEN ? AND ?
        """, packet.orders.lowerBound, packet.orders.upperBound)
    }
    if let first = kept.first, let last = kept.last {
      try connection.run(
        "UPDATE ferry_replica SET tail = ?, chain_start = ?", last.tail, first.number - 1)
    }
    return device
  }

  private func renewName() throws -> DeviceID {
    try OwnNames.storePresent(on: file.connection)
    let device = newDevice(file.wallClock, file.random)
    try connection.run(
      """
      UPDATE ferry_replica SET device = ?, tail = NULL, chain_start = coalesce(
        (SELECT seq FROM sqlite_sequence WHERE name = \(file.ownLiteral("ferry_packets"))), 0)
      """, device)
    return device
  }
}
