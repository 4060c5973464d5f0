import FerryProtocol
import SQLite

/// Confirmed operations are kept for a while: a server that was restored from a backup lacks the
/// newest of them, and this device may be the only one that still has them (DESIGN.md §5).
extension ReplicaFile {
  /// How long they are kept, milliseconds: backups older than this are not expected back.
  static let archiveAgeMax: Int64 = 14 * 24 * 3_600_000
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
    for table in ["ferry_archive WHERE seq", "ferry_archived_packets WHERE to_order"] {
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
    if isSetBack { try lowerBases(head) }
    guard let tail = head.appliedTail else {
      guard try lacksChain(isSetBack) else { return false }
      try sendAllAgain()
      return false
    }
    if isSetBack, try keepsEarlierChains() {
      try sendAllAgain()
      return false
    }
    if let place = try place(of: tail) {
      if try hasConfirmed(after: place.number, isSetBack) {
        try sendAgain(after: place, head: head.head)
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

  /// A packet's place in the chain.
  struct ChainPlace {
    let number: Int64
    /// The place of its last operation in the space's order, or a later one; `nil` when unknown.
    let last: SequenceNumber?
  }

  private func place(of tail: OperationID) throws -> ChainPlace? {
    // Of a packet that is not kept any more, the next one knows where it was.
    let find = try connection.statement(
      """
      SELECT number, last FROM ferry_packets WHERE tail = ?1
      UNION ALL SELECT number, last FROM ferry_archived_packets WHERE tail = ?1
      UNION ALL SELECT number - 1, NULL FROM ferry_archived_packets WHERE dependency = ?1
      UNION ALL SELECT number - 1, NULL FROM ferry_packets WHERE dependency = ?1 LIMIT 1
      """)
    find.bind(1, tail)
    return try find.first { ChainPlace(number: $0.int64(0), last: $0.optionalInt64(1)) }
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

  /// The server has the chain up to `place`: the packets behind it are sent again as they were.
  private func sendAgain(after place: ChainPlace, head: SequenceNumber) throws {
    let count = try takeFromArchive(
      "seq >= (SELECT min(from_order) FROM ferry_archived_packets WHERE number > \(place.number))",
      base: min(place.last ?? 0, head))
    try connection.execute(
      """
      INSERT INTO ferry_packets(number, dependency, tail, from_order, to_order, merged, continues,
        operations, state, schema)
      SELECT number, dependency, tail, from_order, to_order, merged, continues, operations, 'frozen',
        schema
      FROM ferry_archived_packets WHERE number > \(place.number);
      DELETE FROM ferry_archived_packets WHERE number > \(place.number);
      UPDATE ferry_packets SET state = 'frozen', first = NULL, last = NULL, clean = 0, applied = 0
      WHERE state = 'acknowledged' AND number > \(place.number);
      UPDATE ferry_pending SET met = 2 WHERE met = 0 AND seq <=
        (SELECT max(to_order) FROM ferry_packets WHERE number > \(place.number))
      """)
    try noteSetBack(count)
  }

  /// The server does not know this device, or a chain that leads to nothing known here: all that is
  /// still here is sent again, in a chain of its own.
  private func sendAllAgain() throws {
    let count = try takeFromArchive("1", base: 0)
    try connection.execute(
      """
      DELETE FROM ferry_archived_packets;
      DELETE FROM ferry_packets;
      UPDATE ferry_pending SET met = 1
      """)
    _ = try takeNewName()
    try noteSetBack(count)
  }

  /// A copy of this file has written under its name after packets that are not known here. Whether
  /// those follow what the server had confirmed to this one is not known either: a server that was
  /// set back to where the copy was made has lost it, which the cursor does not tell as long as it
  /// has not come so far. So all that it has not passed is sent again under a new name; nothing that
  /// it has, also where it has expired since: the server may have forgotten those operations, and
  /// would take them for new ones.
  private func leaveToCopy() throws {
    try connection.execute("DELETE FROM ferry_packets; UPDATE ferry_pending SET met = 1")
    try noteCopied(as: takeNewName())
  }

  /// - Parameter base: where the cursor was refused, their authors' knowledge is no newer than what
  ///   the server still has.
  private func takeFromArchive(_ condition: String, base: SequenceNumber) throws -> Int {
    let known = try syncState().replacement == .rescuing ? base : .max
    try connection.execute(
      """
      INSERT INTO ferry_pending(seq, id, grp, base, tbl, record, kind, data, met, was,
        marks)
      SELECT seq, id, grp, min(base, \(known)), tbl, record, kind, data, met, was, marks
      FROM ferry_archive WHERE \(condition);
      DELETE FROM ferry_archive WHERE \(condition)
      """)
    return connection.changes
  }

  /// Where the cursor was refused, what authors knew may be gone: no more can be said of their
  /// knowledge than that it is no newer than what the server has.
  private func lowerBases(_ head: PageHead) throws {
    let known = try head.appliedTail.flatMap { try place(of: $0) }?.last ?? head.head
    let lower = try connection.statement("UPDATE ferry_pending SET base = ?1 WHERE base > ?1")
    lower.bind(1, min(known, head.head))
    try lower.run()
  }

  private func noteSetBack(_ count: Int) throws {
    try note(
      "restored",
      "the server lost operations that it had confirmed (it was restored from a backup?); "
        + "this device sends its own again, \(count) of them from its archive")
  }
}
