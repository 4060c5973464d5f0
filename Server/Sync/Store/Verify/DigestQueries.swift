import FerryProtocol

// The sums of hash trees, in both stores.
extension PlainConnection {
  /// Returns the changes of the sums by these records.
  func effects(of fold: DigestFold, in space: Int64) throws -> DigestFold.Effects {
    let (items, leaves) = (fold.items, fold.leaves)
    let known = try rows(
      DigestQueries.known, [.integer(space)], of: items.map(\.values)
    ) { place, row in (items[place].key, try row.digest(0)) }
    let sums = try rows(
      DigestQueries.leaves, [.integer(space)], of: leaves.map(\.values)
    ) { place, row in
      (leaves[place], DigestFold.LeafSum(digest: try row.digest(0), records: try row.integer(1)))
    }
    return fold.effects(
      known: Dictionary(known) { first, _ in first },
      sums: Dictionary(sums) { first, _ in first })
  }
}

extension DigestFold.Effects {
  /// Returns the writes of these changes.
  ///
  /// - Parameter sequence: The sums hold every change up to here.
  func writes(in space: Int64, folded sequence: SequenceNumber) -> [PlainWrite] {
    let shared: [PlainValue] = [.integer(space)]
    let records: [[PlainValue]] = changed.compactMap { item in
      item.digest.map { item.values + [.bytes($0.bytes)] }
    }
    let goneRecords = changed.filter { $0.digest == nil }.map(\.values)
    let sums: [[PlainValue]] = leaves.filter { $0.sum.records != 0 }.map {
      $0.key.values + [.bytes($0.sum.digest.bytes), .integer($0.sum.records)]
    }
    let goneLeaves = leaves.filter { $0.sum.records == 0 }.map(\.key.values)
    let rows: [(PlainBatch, [[PlainValue]])] = [
      (DigestQueries.saveRecords, records), (DigestQueries.removeRecords, goneRecords),
      (DigestQueries.saveLeaves, sums), (DigestQueries.removeLeaves, goneLeaves),
    ]
    var writes: [PlainWrite] = rows.filter { !$0.1.isEmpty }.map { .many($0, shared, of: $1) }
    writes.append(.one(DigestQueries.saveState, [.integer(sequence), .integer(space)]))
    return writes
  }
}

extension DigestFold.Item {
  fileprivate var values: [PlainValue] {
    [.text(key.table.text), .integer(Int64(leaf)), .text(key.record.text)]
  }
}

extension DigestFold.LeafKey {
  fileprivate var values: [PlainValue] { [.text(table.text), .integer(Int64(leaf))] }
}

extension PlainRow {
  /// Reads a digest; that of nothing for other bytes.
  fileprivate func digest(_ column: Int) throws -> Digest {
    try bytes(column).withUnsafeBytes { Digest(bytes: $0) ?? .zero }
  }
}

enum DigestQueries {
  static let open = PlainStatement(
    "digests_open",
    "INSERT INTO digest_states(space, sequence) VALUES ($1, 0) ON CONFLICT DO NOTHING")

  fileprivate static let saveState = PlainStatement(
    "digests_state_save", "UPDATE digest_states SET sequence = $1 WHERE space = $2")

  /// Returns the writes that begin the sums again from scratch: records are gone without having
  /// been folded.
  static func clear(_ space: Int64) -> [PlainWrite] {
    [.one(clearRecords, [.integer(space)]), .one(clearLeaves, [.integer(space)])]
  }

  private static let clearRecords = PlainStatement(
    "record_digests_clear", "DELETE FROM record_digests WHERE space = $1")
  private static let clearLeaves = PlainStatement(
    "leaf_digests_clear", "DELETE FROM leaf_digests WHERE space = $1")

  static let tables = PlainStatement(
    "digests_tables",
    """
    SELECT tbl, digest, records FROM leaf_digests WHERE space = $1 AND tbl > $2
    ORDER BY tbl, leaf LIMIT $3
    """)

  private static let leaf: [PlainBatch.Column] = [.init("tbl", .text), .init("leaf", .integer)]
  private static let record = leaf + [.init("record", .text)]

  fileprivate static let known = PlainBatch.find("digests_known", record) { key in
    """
    SELECT r.digest FROM record_digests AS r
    WHERE r.space = $1 AND r.tbl = \(key("tbl")) AND r.leaf = \(key("leaf"))
      AND r.record = \(key("record"))
    """
  }

  fileprivate static let leaves = PlainBatch.find("digests_leaves", leaf) { key in
    """
    SELECT l.digest, l.records FROM leaf_digests AS l
    WHERE l.space = $1 AND l.tbl = \(key("tbl")) AND l.leaf = \(key("leaf"))
    """
  }

  fileprivate static let saveRecords = PlainBatch.insert(
    "digests_save", into: "record_digests", record + [.init("digest", .bytes)],
    "ON CONFLICT (space, tbl, leaf, record) DO UPDATE SET digest = excluded.digest")

  fileprivate static let removeRecords = PlainBatch.delete(
    "digests_remove", from: "record_digests", record, sharing: 1
  ) { key in
    """
    record_digests.space = $1 AND record_digests.tbl = \(key("tbl"))
      AND record_digests.leaf = \(key("leaf")) AND record_digests.record = \(key("record"))
    """
  }

  fileprivate static let saveLeaves = PlainBatch.insert(
    "digests_leaves_save", into: "leaf_digests",
    leaf + [.init("digest", .bytes), .init("records", .integer)],
    """
    ON CONFLICT (space, tbl, leaf) DO UPDATE
    SET digest = excluded.digest, records = excluded.records
    """)

  fileprivate static let removeLeaves = PlainBatch.delete(
    "digests_leaves_remove", from: "leaf_digests", leaf, sharing: 1
  ) { key in
    """
    leaf_digests.space = $1 AND leaf_digests.tbl = \(key("tbl"))
      AND leaf_digests.leaf = \(key("leaf"))
    """
  }
}
