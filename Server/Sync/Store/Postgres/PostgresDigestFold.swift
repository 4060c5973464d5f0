import FerryPostgres
import FerryProtocol

/// The update of the sums with some records, in one transaction.
struct PostgresDigestFold {
  let space: Int64

  private static let open = PostgresStatement(
    "digests_open",
    "INSERT INTO digest_states(space, sequence) VALUES ($1, 0) ON CONFLICT DO NOTHING")

  /// One node folds a space at a time; writers of packets do not wait for it.
  private static let lock = PostgresStatement(
    "digests_lock", "SELECT sequence FROM digest_states WHERE space = $1 FOR UPDATE")

  private static let ends = PostgresStatement(
    "digests_newest",
    """
    SELECT head, coalesce((SELECT max(sequence) FROM records WHERE space = $1), 0)
    FROM spaces WHERE id = $1
    """)

  private static let rows = PostgresStatement(
    "digests_changed",
    """
    SELECT sequence, tbl, record, state FROM (
      SELECT *, sum(octet_length(state)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
        - octet_length(state) AS before
      FROM (
        SELECT sequence, tbl, record, state FROM records
        WHERE space = $1 AND sequence > $2 ORDER BY sequence LIMIT $3
      ) AS listed
    ) AS summed WHERE before < $4 ORDER BY sequence
    """)

  private static let known = PostgresStatement(
    "digests_known",
    """
    SELECT found.* FROM unnest($2::text[], $3::bigint[], $4::text[]) AS wanted(tbl, leaf, record)
    CROSS JOIN LATERAL (
      SELECT r.tbl, r.record, r.digest FROM record_digests AS r
      WHERE r.space = $1 AND r.tbl = wanted.tbl AND r.leaf = wanted.leaf
        AND r.record = wanted.record OFFSET 0
    ) AS found
    """)

  private static let leaves = PostgresStatement(
    "digests_leaves",
    """
    SELECT found.* FROM unnest($2::text[], $3::bigint[]) AS wanted(tbl, leaf)
    CROSS JOIN LATERAL (
      SELECT l.tbl, l.leaf, l.digest, l.records FROM leaf_digests AS l
      WHERE l.space = $1 AND l.tbl = wanted.tbl AND l.leaf = wanted.leaf OFFSET 0
    ) AS found
    """)

  /// Runs the update. Returns the sequence up to which the sums hold every change.
  func run(on connection: PostgresConnection) throws -> SequenceNumber {
    try connection.transaction { connection in
      let opened = try connection.pipeline { pipeline in
        pipeline.add(Self.open, [.int8(space)])
        pipeline.add(Self.lock, [.int8(space)])
        pipeline.add(Self.ends, [.int8(space)])
      }
      guard let ends = opened[2].first, let state = opened[1].first else {
        throw StoreError.spaceGone
      }
      let (head, newest) = (try ends.int8(0), try ends.int8(1))
      let known = try state.int8(0)
      if known < 0 { try beginAnew(on: connection) }
      let before = max(0, known)
      guard before < head else { return before }
      let fold = try changed(after: before, on: connection)
      let effects = try effects(of: fold, on: connection)
      let after = fold.reached(from: before, head: head, newest: newest)
      _ = try connection.pipeline { pipeline in
        PostgresDigestWrites(space: space).add(effects, folded: after, to: &pipeline)
        pipeline.commit()
      }
      return after
    }
  }

  /// Begins the sums again from scratch: records are gone without having been folded.
  private func beginAnew(on connection: PostgresConnection) throws {
    _ = try connection.pipeline { pipeline in
      for table in ["record_digests", "leaf_digests"] {
        pipeline.add(
          PostgresStatement("\(table)_clear", "DELETE FROM \(table) WHERE space = $1"),
          [.int8(space)])
      }
      pipeline.add(
        PostgresStatement(
          "digests_anew", "UPDATE digest_states SET sequence = 0 WHERE space = $1"),
        [.int8(space)])
    }
  }

  private func changed(
    after sequence: SequenceNumber, on connection: PostgresConnection
  ) throws -> DigestFold {
    var fold = DigestFold()
    let rows = try connection.query(
      Self.rows,
      [
        .int8(space), .int8(sequence), .int8(Int64(DigestFold.recordsMax)),
        .int8(Int64(DigestFold.bytesMax)),
      ])
    for row in rows {
      let sequence = try row.int8(0)
      let key = RecordKey(table: try row.name(1), record: try row.recordName(2).name)
      try row.bytes(3) { try fold.add(sequence: sequence, key, state: $0) }
    }
    return fold
  }

  private func effects(
    of fold: DigestFold, on connection: PostgresConnection
  ) throws -> DigestFold.Effects {
    let wanted = DigestKeys(fold.items.map { ($0.key.table, $0.leaf, $0.key.record) })
    let leaves = DigestKeys(fold.leaves.map { ($0.table, $0.leaf, "") })
    let results = try connection.pipeline { pipeline in
      pipeline.add(
        Self.known,
        [.int8(space), .array(wanted.tables), .array(wanted.leaves), .array(wanted.records)])
      pipeline.add(Self.leaves, [.int8(space), .array(leaves.tables), .array(leaves.leaves)])
    }
    var known: [RecordKey: Digest] = [:]
    for row in results[0] {
      known[RecordKey(table: try row.name(0), record: try row.name(1))] = try row.digest(2)
    }
    var sums: [DigestFold.LeafKey: DigestFold.LeafSum] = [:]
    for row in results[1] {
      let key = DigestFold.LeafKey(table: try row.name(0), leaf: Int(try row.int8(1)))
      sums[key] = DigestFold.LeafSum(digest: try row.digest(2), records: try row.int8(3))
    }
    return fold.effects(known: known, sums: sums)
  }
}

/// Columns of keys, for `unnest`.
private struct DigestKeys {
  var tables = PostgresArray<String>()
  var leaves = PostgresArray<Int64>()
  var records = PostgresArray<String>()

  init(_ keys: [(table: Name, leaf: Int, record: Name)]) {
    for key in keys {
      tables.append(utf8: key.table.utf8)
      leaves.append(Int64(key.leaf))
      records.append(utf8: key.record.utf8)
    }
  }
}

/// The statements to make a fold durable.
private struct PostgresDigestWrites {
  let space: Int64

  private static let saveRecords = PostgresStatement(
    "digests_save",
    """
    INSERT INTO record_digests(space, tbl, leaf, record, digest)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::text[], $3::bigint[], $4::text[], $5::bytea[]) AS u
    WHERE s.id = $1
    ON CONFLICT (space, tbl, leaf, record) DO UPDATE SET digest = excluded.digest
    """)

  private static let removeRecords = PostgresStatement(
    "digests_remove",
    """
    DELETE FROM record_digests AS r
    USING unnest($2::text[], $3::bigint[], $4::text[]) AS gone(tbl, leaf, record)
    WHERE r.space = $1 AND r.tbl = gone.tbl AND r.leaf = gone.leaf AND r.record = gone.record
    """)

  private static let saveLeaves = PostgresStatement(
    "digests_leaves_save",
    """
    INSERT INTO leaf_digests(space, tbl, leaf, digest, records)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::text[], $3::bigint[], $4::bytea[], $5::bigint[]) AS u
    WHERE s.id = $1
    ON CONFLICT (space, tbl, leaf) DO UPDATE
    SET digest = excluded.digest, records = excluded.records
    """)

  private static let removeLeaves = PostgresStatement(
    "digests_leaves_remove",
    """
    DELETE FROM leaf_digests AS l USING unnest($2::text[], $3::bigint[]) AS gone(tbl, leaf)
    WHERE l.space = $1 AND l.tbl = gone.tbl AND l.leaf = gone.leaf
    """)

  private static let saveState = PostgresStatement(
    "digests_state_save", "UPDATE digest_states SET sequence = $2 WHERE space = $1")

  func add(
    _ effects: DigestFold.Effects, folded: SequenceNumber, to pipeline: inout PostgresPipeline
  ) {
    addRecords(effects.changed, to: &pipeline)
    addLeaves(effects.leaves, to: &pipeline)
    pipeline.add(Self.saveState, [.int8(space), .int8(folded)])
  }

  private func addRecords(_ items: [DigestFold.Item], to pipeline: inout PostgresPipeline) {
    let kept = items.filter { $0.digest != nil }
    if !kept.isEmpty {
      let keys = DigestKeys(kept.map { ($0.key.table, $0.leaf, $0.key.record) })
      var digests = PostgresArray<[UInt8]>()
      for item in kept { digests.append(bytes: (item.digest ?? .zero).bytes) }
      pipeline.add(
        Self.saveRecords,
        [
          .int8(space), .array(keys.tables), .array(keys.leaves), .array(keys.records),
          .array(digests),
        ])
    }
    let gone = items.filter { $0.digest == nil }
    if !gone.isEmpty {
      let keys = DigestKeys(gone.map { ($0.key.table, $0.leaf, $0.key.record) })
      pipeline.add(
        Self.removeRecords,
        [.int8(space), .array(keys.tables), .array(keys.leaves), .array(keys.records)])
    }
  }

  private func addLeaves(
    _ leaves: [(key: DigestFold.LeafKey, sum: DigestFold.LeafSum)],
    to pipeline: inout PostgresPipeline
  ) {
    let kept = leaves.filter { $0.sum.records != 0 }
    if !kept.isEmpty {
      let keys = DigestKeys(kept.map { ($0.key.table, $0.key.leaf, "") })
      var digests = PostgresArray<[UInt8]>()
      for leaf in kept { digests.append(bytes: leaf.sum.digest.bytes) }
      let counts = PostgresArray(all: kept.map(\.sum.records))
      pipeline.add(
        Self.saveLeaves,
        [
          .int8(space), .array(keys.tables), .array(keys.leaves), .array(digests), .array(counts),
        ])
    }
    let gone = leaves.filter { $0.sum.records == 0 }
    if !gone.isEmpty {
      let keys = DigestKeys(gone.map { ($0.key.table, $0.key.leaf, "") })
      pipeline.add(
        Self.removeLeaves, [.int8(space), .array(keys.tables), .array(keys.leaves)])
    }
  }
}
