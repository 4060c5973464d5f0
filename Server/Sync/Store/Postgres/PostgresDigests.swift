import FerryPostgres
import FerryProtocol

/// The hash trees by which devices compare themselves with the space (SPEC.md §16).
struct PostgresDigests {
  let space: Int64
  let limits: Limits

  private static let ends = PostgresStatement(
    "digests_ends",
    """
    SELECT epoch, head, newest, o.sequence,
      (SELECT sequence FROM digest_states WHERE space = $1), o.history_hash, s.history_hash,
      retention_horizon, t.timeline, t.ended
    FROM spaces AS s LEFT JOIN LATERAL (
      SELECT p.sequence, p.history_hash FROM operations AS p
      WHERE p.space = $1 AND p.id = $2 OFFSET 0
    ) AS o ON true \(PostgresTimelines.joined("$3"))
    WHERE s.id = $1
    """)

  private static let sums = PostgresStatement(
    "digests_sums",
    """
    SELECT wanted.place, found.leaf, found.digest
    FROM unnest($3::bigint[], $4::bigint[]) WITH ORDINALITY AS wanted(low, high, place)
    CROSS JOIN LATERAL (
      SELECT l.leaf, l.digest FROM leaf_digests AS l
      WHERE l.space = $1 AND l.tbl = $2 AND l.leaf BETWEEN wanted.low AND wanted.high OFFSET 0
    ) AS found
    """)

  private static let records = PostgresStatement(
    "digests_records",
    """
    SELECT wanted.place, found.record, found.digest
    FROM unnest($3::bigint[], $4::bigint[]) AS wanted(leaf, place)
    CROSS JOIN LATERAL (
      SELECT r.record, r.digest FROM record_digests AS r
      WHERE r.space = $1 AND r.tbl = $2 AND r.leaf = wanted.leaf
        AND r.record > CASE wanted.place WHEN 0 THEN $5 ELSE '' END
      ORDER BY r.record LIMIT $6
    ) AS found
    ORDER BY wanted.place, found.record LIMIT $6
    """)

  /// Returns the digests asked for, read in one snapshot.
  func answer(
    _ query: DigestQuery, on connection: PostgresConnection
  ) throws -> Result<DigestAnswer, Problem> {
    let results = try connection.transaction(.snapshot) { connection in
      try connection.pipeline { pipeline in
        var parameters: PostgresParameters = [.int8(space)]
        if let anchor = query.cursor.anchor {
          parameters.append(uuidBytes: anchor.operation.value.bytes)
        } else {
          parameters.append(.uuid(nil))
        }
        parameters.append(query.cursor.anchor?.timeline)
        pipeline.add(Self.ends, parameters)
        add(query, to: &pipeline)
        pipeline.commit()
      }
    }
    guard let state = results[0].first else {
      return .failure(.spaceGone)
    }
    let snapshot = SpaceSnapshot(
      epoch: Epoch(UInt64(bitPattern: try state.int8(0))), head: try state.int8(1),
      newest: state.isNull(2) ? nil : OperationID(uuidBytes: try state.uuidBytes(2)),
      historyHash: UInt64(bitPattern: try state.int8(6)),
      anchored: try HistoryPlace(state, 3, historyHash: 5),
      timelineEnd: try state.timelineEnd(8, 9), retentionHorizon: try state.int8(7))
    var nodes: [Int: NodeDigests]?
    return try query.answer(in: snapshot, folded: try state.ifPresent(4), limits) {
      try tables(results[1])
    } digests: { part in
      let read = try nodes ?? self.nodes(query, results[1], results[2])
      nodes = read
      return read[part.place] ?? .records([])
    }
  }

  private func add(_ query: DigestQuery, to pipeline: inout PostgresPipeline) {
    guard let table = query.table else {
      pipeline.add(
        PostgresStatement(DigestQueries.tables),
        [
          .int8(space), .text(query.after?.text ?? ""), .int8(Int64(TableDigestBuilder.sumsMax)),
        ])
      return
    }
    let inner = query.nodes.filter { !$0.isLeaf }
    pipeline.add(
      Self.sums,
      [
        .int8(space), .text(table.text),
        .array(PostgresArray(all: inner.map { Int64($0.leaves.lowerBound) })),
        .array(PostgresArray(all: inner.map { Int64($0.leaves.upperBound) })),
      ])
    let leaves = query.nodes.enumerated().filter(\.element.isLeaf)
    pipeline.add(
      Self.records,
      [
        .int8(space), .text(table.text),
        .array(PostgresArray(all: leaves.map { Int64($0.element.prefix) })),
        .array(PostgresArray(all: leaves.map { Int64($0.offset) })),
        .text(query.after?.text ?? ""), .int8(Int64(limits.digestsPerAnswer)),
      ])
  }

  private func tables(
    _ rows: PostgresRows
  ) throws -> (tables: [DigestAnswer.TableDigest], more: Bool) {
    var builder = TableDigestBuilder()
    for row in rows {
      let (digest, records) = (try row.digest(1), try row.int8(2))
      try row.bytes(0) { builder.add(table: $0, digest: digest, records: records) }
    }
    return builder.finish()
  }

  private func nodes(
    _ query: DigestQuery, _ sums: PostgresRows, _ records: PostgresRows
  ) throws -> [Int: NodeDigests] {
    let inner = query.nodes.enumerated().filter { !$0.element.isLeaf }
    var children = inner.map { _ in [Digest](repeating: .zero, count: 16) }
    for row in sums {
      let place = Int(try row.int8(0)) - 1
      children[place][inner[place].element.child(of: Int(try row.int8(1)))] += try row.digest(2)
    }
    var listed: [Int: [NodeDigests.RecordDigest]] = [:]
    for row in records {
      listed[Int(try row.int8(0)), default: []].append(
        NodeDigests.RecordDigest(record: try row.name(1), digest: try row.digest(2)))
    }
    var nodes = listed.mapValues(NodeDigests.records)
    for (place, children) in zip(inner.map(\.offset), children) {
      nodes[place] = .children(children)
    }
    return nodes
  }
}

extension PostgresArray<Int64> {
  init(all values: [Int64]) {
    self.init(reserving: values.count, valueBytes: values.count * 8)
    for value in values { append(value) }
  }
}

extension PostgresArray<[UInt8]> {
  /// Appends a record's identifier as `records` and `operations` have it.
  mutating func append(record: Name) {
    StoredRecordName(record).withBytes { append(bytes: $0) }
  }
}

extension PostgresParameters {
  /// Appends a record's identifier as `records` and `operations` have it.
  mutating func append(record: Name) {
    StoredRecordName(record).withBytes { append(bytes: $0) }
  }
}

extension PostgresRow {
  /// Returns a record's identifier from `records` or `operations`.
  package func recordName(_ column: Int) throws -> StoredRecordName {
    try bytes(column) { StoredRecordName(bytes: $0) }
  }

  /// Returns a name stored as text.
  func name(_ column: Int) throws(PostgresError) -> Name { Name(try text(column)) }

  func digest(_ column: Int) throws -> Digest {
    try bytes(column) { Digest(bytes: $0) ?? .zero }
  }
}
