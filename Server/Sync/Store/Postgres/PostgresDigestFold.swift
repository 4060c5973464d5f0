import FerryPostgres
import FerryProtocol

/// The update of the sums with some records, in one transaction.
struct PostgresDigestFold {
  let space: Int64

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

  /// Runs the update. Returns the sequence up to which the sums hold every change.
  func run(on connection: PostgresConnection) throws -> SequenceNumber {
    try connection.transaction { connection in
      let opened = try connection.pipeline { pipeline in
        pipeline.add([.one(DigestQueries.open, [.integer(space)])])
        pipeline.add(Self.lock, [.int8(space)])
        pipeline.add(Self.ends, [.int8(space)])
      }
      guard let ends = opened[2].first, let state = opened[1].first else {
        throw StoreError.spaceGone
      }
      let (head, newest) = (try ends.int8(0), try ends.int8(1))
      let known = try state.int8(0)
      if known < 0 { try connection.run(DigestQueries.clear(space)) }
      let before = max(0, known)
      guard before < head else { return before }
      let fold = try changed(after: before, on: connection)
      let effects = try connection.effects(of: fold, in: space)
      let after = fold.reached(from: before, head: head, newest: newest)
      _ = try connection.pipeline { pipeline in
        pipeline.add(effects.writes(in: space, folded: after))
        pipeline.commit()
      }
      return after
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
}
