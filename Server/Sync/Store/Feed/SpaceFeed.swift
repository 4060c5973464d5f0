import FerryProtocol

/// The committed transactions of a space in their order, in both stores (SPEC.md §39).
package struct SpaceFeed: Sendable {
  /// Operations of one page at most.
  package static let operationsMax = 500
  /// Characters of values in one page; one operation may be longer.
  package static let characters = 1 << 20

  private let store: any SyncStore

  package init(_ store: any SyncStore) { self.store = store }

  /// Returns the next transactions. None means that the feed has reached the head.
  ///
  /// - Parameters:
  ///   - cursor: The end of the last known transaction; `nil` for the oldest one that the history
  ///     has whole.
  ///   - limit: Operations, ``operationsMax`` at most. A transaction with more is divided.
  package func page(
    in space: Int64, after cursor: Cursor?, limit: Int = SpaceFeed.operationsMax,
    characters: Int = SpaceFeed.characters
  ) async throws(StoreError) -> Result<[FeedTransaction], Problem> {
    if let fault = Self.fault(of: cursor) { return .failure(fault) }
    return try await store.plain(.reading) { connection in
      try connection.snapshot {
        let state = try connection.feedState(of: space, cursor)
        if let cursor, let fault = state.fault(of: cursor) { return .failure(fault) }
        return .success(
          try connection.transactions(
            in: space, state, after: cursor?.received, limit: limit, characters: characters))
      }
    }
  }

  /// Returns the reason if a cursor is within a pull list: a device has the rest of it only as
  /// records.
  private static func fault(of cursor: Cursor?) -> Problem? {
    guard let cursor, cursor.applied != cursor.received else { return nil }
    return Problem(
      .malformedMessage,
      "since is the cursor of a line of the feed, or of the last page of a pull list")
  }
}

/// The space behind a page of the feed.
private struct FeedState {
  let epoch: Epoch
  let head: SequenceNumber
  let retentionHorizon: SequenceNumber
  /// The place of the cursor's operation; `nil` if it is not there.
  var place: HistoryPlace?

  /// Returns the reason if the history does not have all transactions after a cursor.
  func fault(of cursor: Cursor) -> Problem? {
    let known = KnownHistory(
      epoch: epoch, head: head, retentionHorizon: retentionHorizon, timelineEnd: nil)
    if let fault = known.fault(of: cursor, anchored: place) { return fault }
    guard cursor.received < retentionHorizon else { return nil }
    return Problem(
      .cursorExpired,
      "the cursor is at \(cursor.received), but the history begins after \(retentionHorizon): "
        + "operations between are deleted. Copy the records again by a pull from the start, and "
        + "continue with the cursor of the last page; or leave out since, which begins with the "
        + "oldest transaction kept. A longer retention of the space keeps more")
  }
}

extension PlainConnection {
  fileprivate func feedState(of space: Int64, _ cursor: Cursor?) throws -> FeedState {
    let found = try rows(FeedQueries.space, [.integer(space)]) { row in
      FeedState(
        epoch: Epoch(UInt64(bitPattern: try row.integer(0))), head: try row.integer(1),
        retentionHorizon: try row.integer(2))
    }
    guard var state = found.first else { throw StoreError.spaceGone }
    if let operation = cursor?.anchor?.operation {
      state.place = try rows(FeedQueries.place, [.integer(space), .uuid(operation.value)]) { row in
        HistoryPlace(
          sequence: try row.integer(0), historyHash: UInt64(bitPattern: try row.integer(1)))
      }.first
    }
    return state
  }

  fileprivate func transactions(
    in space: Int64, _ state: FeedState, after place: SequenceNumber?, limit: Int, characters: Int
  ) throws -> [FeedTransaction] {
    let rows = try feedRows(in: space, state, after: place, limit: limit)
    let cut = FeedCut(rows, limit: limit, characters: characters)
    guard cut.count > 0 else { return [] }
    let operations = try self.rows(
      FeedQueries.operations,
      [
        .integer(space), .integer(rows[0].sequence), .integer(rows[cut.count - 1].sequence),
      ]
    ) { try FeedOperation($0) }.compactMap { $0 }
    let devices = Set(operations.map(\.entry.device)).sorted()
    let authors = Dictionary(try identities(of: devices, in: space).map { ($0.device, $0) }) {
      first, _ in first
    }
    return operations.transactions(
      in: state.epoch, authors, continues: cut.isWithinTransaction)
  }

  /// Returns the sizes of the next operations: one more than `limit` if there are so many.
  private func feedRows(
    in space: Int64, _ state: FeedState, after place: SequenceNumber?, limit: Int
  ) throws -> [FeedCut.Row] {
    var start = place ?? state.retentionHorizon
    while true {
      let rows = try self.rows(
        FeedQueries.sizes,
        [.integer(space), .integer(start), .integer(state.head), .integer(Int64(limit) + 1)]
      ) { row in
        FeedCut.Row(
          sequence: try row.integer(0), ordinal: try row.integer(1),
          characters: try row.integer(2))
      }
      guard place == nil, let first = rows.first, let last = rows.last,
        first.transaction <= state.retentionHorizon
      else { return rows }
      // The transaction at the horizon may have lost its first operations.
      let rest = rows.prefix { $0.transaction <= state.retentionHorizon }.last ?? last
      start = rest.sequence
    }
  }
}

extension [FeedOperation] {
  /// - Parameter continues: whether the last transaction has more operations.
  fileprivate func transactions(
    in epoch: Epoch, _ authors: [DeviceID: DeviceIdentity], continues: Bool
  ) -> [FeedTransaction] {
    var found: [FeedTransaction] = []
    var start = startIndex
    while start < endIndex {
      let part = self[start...].prefix { $0.transaction == self[start].transaction }
      start = part.endIndex
      let last = part[part.endIndex - 1]
      let anchor = Cursor.Anchor(
        head: last.entry.sequence, operation: last.entry.id, historyHash: last.historyHash)
      found.append(
        FeedTransaction(
          cursor: Cursor(epoch: epoch, applied: last.entry.sequence, anchor: anchor),
          operations: [FeedOperation](part), author: authors[last.entry.device],
          continues: continues && start == endIndex))
    }
    return found
  }
}

extension FeedOperation {
  fileprivate init?(_ row: any PlainRow) throws {
    guard let entry = try HistoryEntry(row) else { return nil }
    self.init(
      entry: entry, key: try row.recordKey(9),
      transaction: entry.sequence - (try row.integer(11)),
      marks: row.isNull(12) ? nil : try row.bytes(12),
      historyHash: UInt64(bitPattern: try row.integer(13)))
  }
}

private enum FeedQueries {
  static let space = PlainStatement(
    "feed_space", "SELECT epoch, head, retention_horizon FROM spaces WHERE id = $1")

  static let place = PlainStatement(
    "feed_place", "SELECT sequence, history_hash FROM operations WHERE space = $1 AND id = $2")

  static let sizes = PlainStatement(
    "feed_sizes",
    """
    SELECT sequence, ordinal, CAST(\(OperationColumns.length) + coalesce(length(marks), 0) AS bigint)
    FROM operations AS o WHERE space = $1 AND space + 0 = $1
      AND sequence > $2 AND sequence <= $3 ORDER BY sequence LIMIT $4
    """)

  static let operations = PlainStatement(
    "feed_operations",
    """
    SELECT \(OperationColumns.entry), tbl, record, ordinal, marks, history_hash
    FROM operations AS o WHERE space = $1 AND space + 0 = $1
      AND sequence >= $2 AND sequence <= $3 ORDER BY sequence
    """)
}
