import FerryProtocol
import SQLite

/// Confirmed operations are kept for a while: a server that was restored from a backup lacks the
/// newest of them, and this device may be the only one that still has them (DESIGN.md §5).
extension ReplicaFile {
  /// How long they are kept, milliseconds.
  static let archiveAgeMax = Limits.confirmedAgeMax
  /// How many of the newest recorded operations are kept.
  static let archiveLength: Int64 = 100_000

  /// Moves confirmed operations up to `order` out of the way of the pending ones.
  ///
  /// - Parameter now: the server's clock, milliseconds: this device's own may leap by years.
  func archive(through order: Int64, now: Int64) throws {
    let packets = try connection.statement(
      """
      INSERT INTO ferry_archived_packets(number, dependency, tail, from_order, to_order, merged,
        continues, operations, last, schema, applied, at)
      SELECT number, dependency, tail, from_order, to_order, merged, continues, operations, last,
        schema, applied, ?2 FROM ferry_packets WHERE to_order <= ?1
      """)
    packets.bind(1, order)
    packets.bind(2, now)
    try packets.run()
    let operations = try connection.statement(
      """
      INSERT INTO ferry_archive(seq, id, grp, base, tbl, record, kind, data, met, was,
        marks)
      SELECT seq, id, grp, base, tbl, record, kind, data, met, was, marks FROM ferry_pending
      WHERE seq > ?2 AND seq <= ?1
      """)
    operations.bind(1, order)
    operations.bind(2, order - Self.archiveLength)
    if !PlantedFault.archiveForgotten.isPlanted { try operations.run() }
    for table in ["ferry_pending WHERE seq", "ferry_packets WHERE to_order"] {
      let remove = try connection.statement("DELETE FROM \(table) <= ?")
      remove.bind(1, order)
      try remove.run()
    }
    try trimArchive(below: order - Self.archiveLength, now: now)
  }

  private func trimArchive(below order: Int64, now: Int64) throws {
    let find = try connection.statement(
      "SELECT max(to_order) FROM ferry_archived_packets WHERE at < ?1 OR from_order <= ?2")
    find.bind(1, now - Self.archiveAgeMax)
    find.bind(2, order)
    guard let last = try find.first({ $0.optionalInt64(0) }) ?? nil else { return }
    let tables = [
      "ferry_archive WHERE seq", "ferry_archived_packets WHERE to_order", "ferry_apart WHERE seq",
    ]
    for table in tables {
      let remove = try connection.statement("DELETE FROM \(table) <= ?")
      remove.bind(1, last)
      try remove.run()
    }
  }

  // MARK: The chain as the server knows it

  /// Compares the tail that a page names with the packets that were made here. What the server has
  /// is confirmed. What it had confirmed and does not have any more is to be sent again; and where
  /// another copy of this file has written under its name, this one takes a new name.
  ///
  /// - Returns: whether the cursor had to go back, so that the pull list is to be asked for anew.
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
    // The server was set back, and how far is not known here: it knows operations again by their
    // identifiers.
    try sendAllAgain()
    return false
  }

  /// The number of the packet that ends with an operation.
  private func number(of tail: OperationID) throws -> Int64? {
    // Of a packet that is not kept any more, the next one knows where it was.
    let find = try connection.statement(
      """
      SELECT number FROM ferry_packets WHERE tail = ?1
      UNION ALL SELECT number FROM ferry_archived_packets WHERE tail = ?1
      UNION ALL SELECT number - 1 FROM ferry_archived_packets WHERE dependency = ?1
      UNION ALL SELECT number - 1 FROM ferry_packets WHERE dependency = ?1 LIMIT 1
      """)
    find.bind(1, tail)
    return try find.first { $0.int64(0) }
  }

  /// Whether a tail is where this device's chain ends.
  private func isNewestKnown(_ tail: OperationID) throws -> Bool {
    let find = try connection.statement("SELECT 1 FROM ferry_replica WHERE tail = ?1")
    find.bind(1, tail)
    return try find.first { _ in true } ?? false
  }

  /// Whether a server that does not know this device's name has lost what it had confirmed under
  /// it. What was sent under an earlier name it lost only where it says that it lost something.
  private func lacksChain(_ isSetBack: Bool) throws -> Bool {
    let start =
      try connection.statement("SELECT chain_start FROM ferry_replica").first { $0.int64(0) } ?? 0
    if isSetBack { return try hasConfirmed(after: 0, isSetBack) }
    // The first packet of a chain is a duplicate only where the server knew the chain.
    let find = try connection.statement(
      """
      SELECT 1 FROM ferry_packets WHERE number > ?1 AND (applied = 1
        OR state = 'acknowledged' AND dependency IS NULL)
      UNION ALL SELECT 1 FROM ferry_archived_packets WHERE number > ?1 AND applied = 1 LIMIT 1
      """)
    find.bind(1, start)
    return try find.first { _ in true } ?? false
  }

  /// Whether packets are kept that were confirmed under an earlier name. The newest name's tail tells
  /// nothing of them: its first packet may have come only after the server was set back.
  private func keepsEarlierChains() throws -> Bool {
    let find = try connection.statement(
      """
      SELECT 1 FROM ferry_archived_packets
      WHERE number <= (SELECT chain_start FROM ferry_replica) LIMIT 1
      """)
    return try find.first { _ in true } ?? false
  }

  /// Whether packets after a place in the chain have been confirmed, so that a server which names
  /// that place has lost them. One that is known as a duplicate only may be in the chain of a copy
  /// of this file instead; to send it once more does no harm. What is in the archive, the cursor has
  /// passed: it is in the history where the cursor was served.
  private func hasConfirmed(after number: Int64, _ isSetBack: Bool) throws -> Bool {
    let find = try connection.statement(
      """
      SELECT 1 FROM ferry_packets WHERE number > ?1
        AND state = 'acknowledged'
      UNION ALL SELECT 1 FROM ferry_archived_packets WHERE number > ?1 AND (applied = 1 OR ?2)
      LIMIT 1
      """)
    find.bind(1, number)
    find.bind(2, isSetBack ? 1 : 0)
    return try find.first { _ in true } ?? false
  }

  // MARK: Sending again

  /// The server has the chain up to a packet: those behind it are sent again as they were.
  private func sendAgain(after number: Int64) throws {
    let count = try takeFromArchive(after: number)
    try connection.execute(
      """
      UPDATE ferry_packets SET state = 'frozen', first = NULL, last = NULL, clean = 0, applied = 0,
        print_before = NULL, print = NULL, timeline = NULL
      WHERE state = 'acknowledged' AND number > \(number);
      UPDATE ferry_pending SET met = 2 WHERE met = 0 AND seq <=
        (SELECT max(to_order) FROM ferry_packets WHERE number > \(number))
      """)
    try noteSetBack(count)
  }

  /// The server does not know this device, or a chain that leads to nothing known here: all that is
  /// still here is sent again, in a chain of its own.
  private func sendAllAgain() throws {
    let count = try takeFromArchive(after: 0)
    _ = try beginChain(with: packets(where: "1 ORDER BY number"))
    try noteSetBack(count)
  }

  /// A copy of this file has written under its name after packets that are not known here. Whether
  /// those follow what the server had confirmed to this one is not known either: a server that was
  /// set back to where the copy was made has lost it, which the cursor does not tell as long as it
  /// has not come so far. So all that it has not passed is sent again under a new name; nothing that
  /// it has, also where it has expired since: the server may have forgotten those operations, and
  /// would take them for new ones.
  private func leaveToCopy() throws {
    try noteCopied(as: beginChain(with: packets(where: "1 ORDER BY number")))
  }

  /// Puts archived packets back among those that are to be sent, as they were.
  ///
  /// - Parameter number: of the packet before them; 0 for all.
  /// - Returns: how many operations they hold.
  private func takeFromArchive(after number: Int64) throws -> Int {
    let condition =
      "seq >= (SELECT min(from_order) FROM ferry_archived_packets WHERE number > \(number))"
    let base = try syncState().replacement == .rescuing ? "0" : "base"
    try connection.execute(
      """
      INSERT INTO ferry_pending(seq, id, grp, base, tbl, record, kind, data, met, was,
        marks)
      SELECT seq, id, grp, \(base), tbl, record, kind, data, met, was, marks
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

  /// Where the cursor was refused, its places are those of a history that is gone: what was known at
  /// them may come to later places in this one, or never. So nothing is said of authors' knowledge.
  private func forgetBases() throws {
    try connection.execute("UPDATE ferry_pending SET base = 0 WHERE base <> 0")
  }

  private func noteSetBack(_ count: Int) throws {
    try note(
      "restored",
      "the server lost operations that it had confirmed (it was restored from a backup?); "
        + "this device sends its own again, \(count) of them from its archive")
  }
}
