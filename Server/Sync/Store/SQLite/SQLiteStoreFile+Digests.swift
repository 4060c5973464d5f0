import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// The hash trees by which devices compare themselves with the space (SPEC.md §16).
extension SQLiteStoreFile {
  /// Updates the sums with some records, in one transaction. Returns the sequence up to which they
  /// hold every change.
  func foldDigests(in space: Int64) throws -> SequenceNumber {
    try connection.transaction {
      let before = try openSums(of: space)
      let (head, newest) = try ends(of: space)
      guard before < head else { return before }
      let fold = try changed(in: space, after: before, to: head)
      let after = fold.reached(from: before, head: head, newest: newest)
      try run(try effects(of: fold, in: space).writes(in: space, folded: after))
      return after
    }
  }

  /// Returns the digests asked for, read in one snapshot.
  func digests(in space: Int64, _ query: DigestQuery) throws -> Result<DigestAnswer, Problem> {
    try connection.transaction(.deferred) {
      guard let (snapshot, folded) = try snapshot(of: space, query.cursor) else {
        return .failure(.spaceGone)
      }
      return try query.answer(in: snapshot, folded: folded, limits) {
        try tableDigests(in: space, after: query.after)
      } digests: { part in
        guard let table = query.table else { return .records([]) }
        return part.node.isLeaf
          ? try records(part, of: table, in: space)
          : try children(of: part.node, of: table, in: space)
      }
    }
  }

  private func snapshot(
    of space: Int64, _ cursor: Cursor
  ) throws -> (SpaceSnapshot, folded: SequenceNumber?)? {
    let found = try connection.first(
      """
      SELECT epoch, head, newest, o.sequence,
        (SELECT sequence FROM digest_states WHERE space = ?1), o.history_hash, s.history_hash,
        retention_horizon
      FROM spaces AS s LEFT JOIN operations AS o ON o.space = ?1 AND o.id = ?2
        AND o.sequence <= s.head WHERE s.id = ?1
      """, space, cursor.anchor?.operation.value
    ) { row in
      (
        SpaceSnapshot(
          epoch: Epoch(UInt64(bitPattern: row.int64(0))), head: row.int64(1),
          newest: row.uniqueID(2).map(OperationID.init),
          historyHash: UInt64(bitPattern: row.int64(6)),
          anchored: HistoryPlace(row, 3, historyHash: 5), retentionHorizon: row.int64(7)),
        row.optionalInt64(4)
      )
    }
    guard var found else { return nil }
    try found.0.findEnd(of: cursor) { try ends(of: [$0], in: space)[$0] }
    return found
  }

  // MARK: Folding

  /// Returns the sequence up to which the sums are right. If records are gone without having been
  /// folded, the sums begin again from scratch.
  private func openSums(of space: Int64) throws -> SequenceNumber {
    try run(DigestQueries.open, [.integer(space)])
    let sequence =
      try connection.first(
        "SELECT sequence FROM digest_states WHERE space = ?", space
      ) { $0.int64(0) } ?? 0
    guard sequence < 0 else { return sequence }
    try run(DigestQueries.clear(space))
    return 0
  }

  private func ends(
    of space: Int64
  ) throws -> (head: SequenceNumber, newest: SequenceNumber) {
    try connection.first(
      """
      SELECT head, coalesce((SELECT max(sequence) FROM record_rows
        WHERE space = ?1 AND sequence <= spaces.head), 0)
      FROM spaces WHERE id = ?1
      """, space
    ) { ($0.int64(0), $0.int64(1)) } ?? (0, 0)
  }

  private func changed(
    in space: Int64, after sequence: SequenceNumber, to head: SequenceNumber
  ) throws -> DigestFold {
    let rows = try connection.statement(
      """
      SELECT sequence, tbl, record, state FROM records
      WHERE space = ? AND sequence > ? AND sequence <= ? ORDER BY sequence
      """)
    defer { rows.reset() }
    rows.bind(space, sequence, head)
    var fold = DigestFold()
    while fold.hasRoom, try rows.step() {
      try fold.add(
        sequence: rows.int64(0),
        RecordKey(table: rows.name(1), record: rows.recordName(2).name), state: rows.blobBytes(3))
    }
    return fold
  }

  // MARK: Reading

  private func tableDigests(
    in space: Int64, after: Name?
  ) throws -> (tables: [DigestAnswer.TableDigest], more: Bool) {
    var builder = TableDigestBuilder()
    try connection.forEach(
      DigestQueries.tables.sql, space, after ?? "", TableDigestBuilder.sumsMax
    ) { row in
      builder.add(
        table: row.textBytes(0), digest: Digest(bytes: row.blobBytes(1)) ?? .zero,
        records: row.int64(2))
    }
    return builder.finish()
  }

  private func children(
    of node: DigestNode, of table: Name, in space: Int64
  ) throws -> NodeDigests {
    var children = [Digest](repeating: .zero, count: 16)
    try connection.forEach(
      """
      SELECT leaf, digest FROM leaf_digests WHERE space = ? AND tbl = ? AND leaf BETWEEN ? AND ?
      """, space, table, node.leaves.lowerBound, node.leaves.upperBound
    ) { row in
      children[node.child(of: Int(row.int64(0)))] += Digest(bytes: row.blobBytes(1)) ?? .zero
    }
    return .children(children)
  }

  private func records(
    _ part: DigestQuery.Part, of table: Name, in space: Int64
  ) throws -> NodeDigests {
    let digests = try connection.rows(
      """
      SELECT record, digest FROM record_digests
      WHERE space = ? AND tbl = ? AND leaf = ? AND record > ? ORDER BY record LIMIT ?
      """, space, table, part.node.prefix, part.after ?? "", part.room
    ) { row in
      NodeDigests.RecordDigest(
        record: row.name(0), digest: Digest(bytes: row.blobBytes(1)) ?? .zero)
    }
    return .records(digests)
  }
}
