import FerryProtocol

// The hash trees by which devices compare themselves with the space (SPEC.md §16), in both stores.
extension SyncStore {
  /// Returns the digests asked for, from one snapshot; ``DigestAnswer/Content/behind`` while the
  /// sums do not hold every change up to the cursor. A refused cursor is a `Problem`.
  package func digests(
    in space: Int64, _ query: DigestQuery
  ) async throws(StoreError) -> Result<DigestAnswer, Problem> {
    try await plain(.pulling) { [limits] connection in
      try connection.snapshot { try connection.digests(in: space, query, limits) }
    }
  }

  /// Updates the sums of the hash trees with a few thousand records, in one transaction without a
  /// long wait for any writer of packets. Returns the sequence up to which they hold every change.
  package func foldDigests(in space: Int64) async throws(StoreError) -> SequenceNumber {
    try await plain(.upkeep) { try $0.foldDigests(in: space) }
  }
}

extension PlainConnection {
  // MARK: Folding

  func foldDigests(in space: Int64) throws -> SequenceNumber {
    try together {
      var (known, ends): (SequenceNumber?, (head: SequenceNumber, newest: SequenceNumber)?)
      try perform([
        .one(DigestQueries.open, [.integer(space)]),
        .one(DigestQueries.state, [.integer(space)]) { known = try $0.integer(0) },
        .one(DigestQueries.ends, [.integer(space)]) {
          ends = (try $0.integer(0), try $0.optionalInteger(1) ?? 0)
        },
      ])
      guard let known, let ends else { throw StoreError.spaceGone }
      // Records are gone without having been folded: the sums begin from scratch.
      if known < 0 { try perform(DigestQueries.clear(space)) }
      let before = max(0, known)
      guard before < ends.head else { return before }
      let fold = try changed(in: space, after: before, to: ends.head)
      let after = fold.reached(from: before, head: ends.head, newest: ends.newest)
      try perform(try effects(of: fold, in: space).writes(in: space, folded: after), ends: true)
      return after
    }
  }

  private func changed(
    in space: Int64, after sequence: SequenceNumber, to head: SequenceNumber
  ) throws -> DigestFold {
    var fold = DigestFold()
    try scan(
      DigestQueries.changed, [.integer(space), .integer(sequence), .integer(head)],
      bytes: DigestFold.bytesMax
    ) { row in
      let key = try row.recordKey(1)
      try row.bytes(3) { try fold.add(sequence: try row.integer(0), key, state: $0) }
      return fold.hasRoom
    }
    return fold
  }

  /// Returns the changes of the sums by these records.
  private func effects(of fold: DigestFold, in space: Int64) throws -> DigestFold.Effects {
    let (items, leaves) = (fold.items, fold.leaves)
    var known: [RecordKey: Digest] = [:]
    var sums: [DigestFold.LeafKey: DigestFold.LeafSum] = [:]
    try perform([
      .many(DigestQueries.known, [.integer(space)], of: items.map(\.values)) { place, row in
        known[items[place].key] = try row.digest(0)
      },
      .many(DigestQueries.leaves, [.integer(space)], of: leaves.map(\.values)) { place, row in
        sums[leaves[place]] = DigestFold.LeafSum(
          digest: try row.digest(0), records: try row.integer(1))
      },
    ])
    return fold.effects(known: known, sums: sums)
  }

  // MARK: Reading

  fileprivate func digests(
    in space: Int64, _ query: DigestQuery, _ limits: Limits
  ) throws -> Result<DigestAnswer, Problem> {
    var found: (snapshot: SpaceSnapshot, folded: SequenceNumber?)?
    var place: HistoryPlace?
    var timelineEnd: SequenceNumber?
    var tables = TableDigestBuilder()
    var nodes = NodeDigestBuilder(query)
    var steps: [PlainStep] = []
    if let anchor = query.cursor.anchor {
      steps.append(
        .one(DigestQueries.place, [.integer(space), .uuid(anchor.operation.value)]) {
          place = HistoryPlace(
            sequence: try $0.integer(0), historyHash: UInt64(bitPattern: try $0.integer(1)))
        })
      if let timeline = anchor.timeline {
        steps.append(TimelineQueries.end(of: timeline, in: space) { timelineEnd = $0 })
      }
    }
    steps.append(
      .one(DigestQueries.space, [.integer(space)]) { row in
        let head = try row.integer(1)
        let snapshot = SpaceSnapshot(
          epoch: Epoch(UInt64(bitPattern: try row.integer(0))), head: head,
          newest: try row.uniqueID(2).map(OperationID.init),
          historyHash: UInt64(bitPattern: try row.integer(3)),
          anchored: place.flatMap { $0.sequence <= head ? $0 : nil }, timelineEnd: timelineEnd,
          retentionHorizon: try row.integer(4))
        found = (snapshot, try row.optionalInteger(5))
      })
    if let table = query.table {
      let shared: [PlainValue] = [.integer(space), .text(table.text)]
      steps += [
        .many(DigestQueries.sums, shared, of: nodes.inner) { try nodes.add(sum: $1, at: $0) },
        .many(
          DigestQueries.records, shared + [.integer(Int64(limits.digestsPerAnswer))],
          of: nodes.leaves
        ) { try nodes.add(record: $1, at: $0) },
      ]
    } else {
      let shared: [PlainValue] = [.integer(space), .text(query.after?.text ?? "")]
      steps.append(
        .one(DigestQueries.tables, shared + [.integer(Int64(TableDigestBuilder.sumsMax))]) { row in
          let (digest, records) = (try row.digest(1), try row.integer(2))
          try row.bytes(0) { tables.add(table: $0, digest: digest, records: records) }
        })
    }
    try perform(steps, ends: true)
    guard let found else { return .failure(.spaceGone) }
    return query.answer(in: found.snapshot, folded: found.folded, limits) {
      tables.finish()
    } digests: { part in
      nodes.digests(at: part.place)
    }
  }
}

/// A builder of the digests below the nodes of a query from rows of both stores.
private struct NodeDigestBuilder {
  private let nodes: [DigestNode]
  private let after: Name?
  /// The places of the nodes above leaves, and of the leaves.
  private let (innerPlaces, leafPlaces): ([Int], [Int])
  private var sums: [Int: [Digest]] = [:]
  private var records: [Int: [NodeDigests.RecordDigest]] = [:]

  init(_ query: DigestQuery) {
    (nodes, after) = (query.nodes, query.after)
    innerPlaces = nodes.indices.filter { [nodes] in !nodes[$0].isLeaf }
    leafPlaces = nodes.indices.filter { [nodes] in nodes[$0].isLeaf }
    for place in innerPlaces { sums[place] = [Digest](repeating: .zero, count: 16) }
  }

  /// The keys of the sums.
  var inner: [[PlainValue]] {
    innerPlaces.map { place in
      let leaves = nodes[place].leaves
      return [.integer(Int64(leaves.lowerBound)), .integer(Int64(leaves.upperBound))]
    }
  }

  /// The keys of the records. Only the first node continues after a record.
  var leaves: [[PlainValue]] {
    leafPlaces.map { place in
      [.integer(Int64(nodes[place].prefix)), .text(place == 0 ? after?.text ?? "" : "")]
    }
  }

  mutating func add(sum row: any PlainRow, at index: Int) throws {
    let place = innerPlaces[index]
    sums[place]?[nodes[place].child(of: Int(try row.integer(0)))] += try row.digest(1)
  }

  mutating func add(record row: any PlainRow, at index: Int) throws {
    records[leafPlaces[index], default: []].append(
      NodeDigests.RecordDigest(record: Name(try row.text(0)), digest: try row.digest(1)))
  }

  func digests(at place: Int) -> NodeDigests {
    sums[place].map { .children($0) } ?? .records(records[place] ?? [])
  }
}

extension DigestFold.Effects {
  /// Returns the writes of these changes.
  ///
  /// - Parameter sequence: The sums hold every change up to here.
  func writes(in space: Int64, folded sequence: SequenceNumber) -> [PlainStep] {
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
    var writes: [PlainStep] = rows.filter { !$0.1.isEmpty }.map { .many($0, shared, of: $1) }
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
    try bytes(column) { Digest(bytes: $0) ?? .zero }
  }
}

private enum DigestQueries {
  static let open = PlainStatement(
    "digests_open",
    "INSERT INTO digest_states(space, sequence) VALUES ($1, 0) ON CONFLICT DO NOTHING")

  /// One node folds a space at a time; writers of packets do not wait for it.
  static let state = PlainStatement(
    "digests_lock", "SELECT sequence FROM digest_states WHERE space = $1", .waiting)

  static let ends = PlainStatement(
    "digests_newest",
    """
    SELECT s.head, (SELECT r.sequence FROM records AS r
      WHERE r.space = $1 AND r.sequence <= s.head ORDER BY r.sequence DESC LIMIT 1)
    FROM spaces AS s WHERE s.id = $1
    """)

  static let changed = PlainScan(
    "digests_changed", ["sequence", "tbl", "record", "state"], large: "state", order: "sequence",
    parameters: 3,
    """
    FROM records WHERE space = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence LIMIT \(DigestFold.recordsMax)
    """)

  static let space = PlainStatement(
    "digests_space",
    """
    SELECT epoch, head, newest, history_hash, retention_horizon,
      (SELECT sequence FROM digest_states WHERE space = $1)
    FROM spaces WHERE id = $1
    """)

  static let place = PlainStatement(
    "digests_place", "SELECT sequence, history_hash FROM operations WHERE space = $1 AND id = $2")

  static let sums = PlainBatch.find(
    "digests_sums", [.init("low", .integer), .init("high", .integer)], sharing: 2
  ) { key in
    """
    SELECT l.leaf, l.digest FROM leaf_digests AS l
    WHERE l.space = $1 AND l.tbl = $2 AND l.leaf BETWEEN \(key("low")) AND \(key("high"))
    """
  }

  static let records = PlainBatch.first(
    "digests_records", [.init("leaf", .integer), .init("after", .text)], sharing: 3,
    order: "record", limit: 3
  ) { key in
    """
    SELECT r.record, r.digest FROM record_digests AS r
    WHERE r.space = $1 AND r.tbl = $2 AND r.leaf = \(key("leaf")) AND r.record > \(key("after"))
    ORDER BY r.record LIMIT $3
    """
  }

  static let saveState = PlainStatement(
    "digests_state_save", "UPDATE digest_states SET sequence = $1 WHERE space = $2")

  /// Returns the writes that begin the sums again from scratch: records are gone without having
  /// been folded.
  static func clear(_ space: Int64) -> [PlainStep] {
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

  static let known = PlainBatch.find("digests_known", record) { key in
    """
    SELECT r.digest FROM record_digests AS r
    WHERE r.space = $1 AND r.tbl = \(key("tbl")) AND r.leaf = \(key("leaf"))
      AND r.record = \(key("record"))
    """
  }

  static let leaves = PlainBatch.find("digests_leaves", leaf) { key in
    """
    SELECT l.digest, l.records FROM leaf_digests AS l
    WHERE l.space = $1 AND l.tbl = \(key("tbl")) AND l.leaf = \(key("leaf"))
    """
  }

  static let saveRecords = PlainBatch.insert(
    "digests_save", into: "record_digests", record + [.init("digest", .bytes)],
    "ON CONFLICT (space, tbl, leaf, record) DO UPDATE SET digest = excluded.digest")

  static let removeRecords = PlainBatch.delete(
    "digests_remove", from: "record_digests", record, sharing: 1
  ) { key in
    """
    record_digests.space = $1 AND record_digests.tbl = \(key("tbl"))
      AND record_digests.leaf = \(key("leaf")) AND record_digests.record = \(key("record"))
    """
  }

  static let saveLeaves = PlainBatch.insert(
    "digests_leaves_save", into: "leaf_digests",
    leaf + [.init("digest", .bytes), .init("records", .integer)],
    """
    ON CONFLICT (space, tbl, leaf) DO UPDATE
    SET digest = excluded.digest, records = excluded.records
    """)

  static let removeLeaves = PlainBatch.delete(
    "digests_leaves_remove", from: "leaf_digests", leaf, sharing: 1
  ) { key in
    """
    leaf_digests.space = $1 AND leaf_digests.tbl = \(key("tbl"))
      AND leaf_digests.leaf = \(key("leaf"))
    """
  }
}
