import FerryPostgres
import FerryProtocol
import Foundation

/// One page of a pull list, read in one snapshot.
struct PostgresPull {
  let space: Int64
  let request: PullRequest
  let now: Int64

  /// Looks the newest ones up by order: with `max`, a planner with an estimate of few rows walks
  /// over all of them.
  private static let state = PostgresStatement(
    "pull_state",
    """
    SELECT epoch, head,
      (SELECT sequence FROM records WHERE space = $1 ORDER BY sequence DESC LIMIT 1),
      d.tail, newest,
      o.sequence,
      (SELECT max(last.sequence) FROM unnest($4::uuid[]) AS name(device), LATERAL (
        SELECT sequence FROM notices WHERE space = $1 AND device = name.device
          AND \(NoticeFeed.isOwn("$6"))
        ORDER BY sequence DESC LIMIT 1) AS last), minimum_protocol, retention_horizon,
        o.history_hash, s.history_hash,
      s.timeline, t.timeline, t.ended, d.principal, d.name, name_changes
    FROM spaces AS s LEFT JOIN LATERAL (
      SELECT p.sequence, p.history_hash FROM operations AS p
      WHERE p.space = $1 AND p.id = $3 OFFSET 0
    ) AS o ON true \(joined("$5")) LEFT JOIN LATERAL (
      SELECT v.tail, v.principal, v.name FROM devices AS v
      WHERE v.space = $1 AND v.device = $2 OFFSET 0
    ) AS d ON true
    WHERE s.id = $1
    """)

  /// Stops at a number of bytes as well, so large values never fill the memory. To sum up the bytes
  /// takes as long as to read the rows. So it begins at the first large row: the rows before it are
  /// bounded by their number.
  private static let rows = PostgresStatement(
    "pull_rows",
    """
    WITH large AS MATERIALIZED (
      SELECT coalesce((SELECT sequence FROM records
        WHERE space = $1 AND sequence > $2 AND \(PostgresStoreSchema.isLarge("state"))
        ORDER BY sequence LIMIT 1), \(Int64.max)) AS first
    )
    SELECT sequence, tbl, record, state, whole_below FROM (
      (SELECT sequence, tbl, record, state, whole_below FROM records
        WHERE space = $1 AND sequence > $2 AND sequence < (SELECT first FROM large)
        ORDER BY sequence LIMIT $3)
      UNION ALL
      (SELECT sequence, tbl, record, state, whole_below FROM (
        SELECT *, sum(octet_length(state)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
          - octet_length(state) AS before
        FROM (
          SELECT sequence, tbl, record, state, whole_below FROM records
          WHERE space = $1 AND sequence >= (SELECT first FROM large)
          ORDER BY sequence LIMIT $3
        ) AS listed
      ) AS summed WHERE before < $4 ORDER BY sequence)
    ) AS found ORDER BY sequence LIMIT $3
    """)

  /// Returns the part of FROM that looks up a timeline, as `t` with the end of it.
  ///
  /// - Parameter name: The parameter with the timeline's name.
  private static func joined(_ name: String) -> String {
    """
    LEFT JOIN LATERAL (
      SELECT t.timeline, \(TimelineQueries.end) AS ended FROM timelines AS t
      WHERE t.space = $1 AND t.timeline = \(name) OFFSET 0
    ) AS t ON true
    """
  }

  func run(on connection: PostgresConnection) throws -> Result<[UInt8], Problem> {
    let results = try connection.transaction(.snapshot) { connection in
      try connection.pipeline { pipeline in
        var parameters: PostgresParameters = [.int8(space)]
        if let device = request.device {
          parameters.append(uuidBytes: device.value.bytes)
        } else {
          parameters.append(.uuid(nil))
        }
        if let anchor = request.cursor?.anchor {
          parameters.append(uuidBytes: anchor.operation.value.bytes)
        } else {
          parameters.append(.uuid(nil))
        }
        parameters.append(.array(NoticeFeed.addressees(of: request)))
        parameters.append(request.cursor?.anchor?.timeline)
        parameters.append(.text(request.principal.id))
        pipeline.add(Self.state, parameters)
        pipeline.add(
          Self.rows,
          [
            .int8(space), .int8(request.cursor?.received ?? 0), .int8(Int64(request.limit)),
            .int8(Int64(request.byteLimit)),
          ])
        NoticeFeed.addQuery(for: request, in: space, to: &pipeline)
        pipeline.commit()
      }
    }
    guard let state = results[0].first else {
      return .failure(.spaceGone)
    }
    let snapshot = SpaceSnapshot(
      epoch: Epoch(UInt64(bitPattern: try state.int8(0))), head: try state.int8(1),
      newest: state.isNull(4) ? nil : OperationID(uuidBytes: try state.uuidBytes(4)),
      historyHash: UInt64(bitPattern: try state.int8(10)), timeline: try state.timeline(11),
      anchored: try HistoryPlace(state, 5, historyHash: 9),
      timelineEnd: try state.timelineEnd(12, 13),
      retentionHorizon: try state.int8(8), minimumProtocol: Int(try state.int8(7)),
      nameChanges: try state.int8(16))
    let owner = state.isNull(14) ? nil : Principal(try state.text(14))
    if let fault = PageBuilder.fault(in: request, snapshot, owner: owner) {
      return .failure(fault)
    }
    let notices =
      request.device == nil || state.isNull(6)
      ? NoticeFeed() : try NoticeFeed(results[2], newest: try state.int8(6))
    return .success(try page(results[1], notices, state, snapshot))
  }

  private func page(
    _ rows: PostgresRows, _ notices: NoticeFeed, _ state: PostgresRow, _ snapshot: SpaceSnapshot
  ) throws -> [UInt8] {
    let newest = state.isNull(2) ? 0 : try state.int8(2)
    let tail = state.isNull(3) ? nil : OperationID(uuidBytes: try state.uuidBytes(3))
    // The heads of a change and of all its writes take some 220 bytes more than in the result.
    var page = PageBuilder(
      request, notices: notices, changeBytes: rows.count * 220 + rows.byteCount)
    for row in rows {
      let sequence = try row.int8(0)
      guard page.admits(sequence) else { break }
      let wholeBelow = try row.int8(4)
      let record = try row.recordName(2)
      try row.bytes(1) { table in
        try row.bytes(3) { state in
          _ = try page.add(
            sequence: sequence, table: table, record: record, state: state, wholeBelow: wholeBelow)
        }
      }
    }
    let name = DeviceName(stored: state.isNull(15) ? nil : try state.text(15))
    return page.finish(
      snapshot, newest: newest, appliedTail: tail, deviceName: name, now: now)
  }
}

extension PostgresParameters {
  /// Appends a timeline, or null.
  fileprivate mutating func append(_ timeline: Timeline?) {
    append(timeline.map { Int64(bitPattern: $0.value) })
  }
}

extension PostgresRow {
  /// Returns the end of a timeline, by its own column and ``TimelineQueries/end``.
  fileprivate func timelineEnd(_ timeline: Int, _ end: Int) throws -> SequenceNumber? {
    isNull(timeline) ? nil : isNull(end) ? .max : try int8(end)
  }

  /// Returns a column with an optional timeline.
  fileprivate func timeline(_ index: Int) throws -> Timeline? {
    isNull(index) ? nil : Timeline(UInt64(bitPattern: try int8(index)))
  }
}

extension HistoryPlace {
  /// Reads a place from the columns; `nil` if there is no such operation.
  fileprivate init?(_ row: PostgresRow, _ sequence: Int, historyHash: Int) throws {
    if row.isNull(sequence) { return nil }
    self.init(
      sequence: try row.int8(sequence), historyHash: UInt64(bitPattern: try row.int8(historyHash)))
  }
}

extension OperationID {
  /// Reads the sixteen bytes of a uuid column.
  fileprivate init?(uuidBytes bytes: [UInt8]) {
    guard let id = bytes.withUnsafeBytes({ UniqueID(bytes: $0) }) else { return nil }
    self.init(id)
  }
}

extension NoticeFeed {
  /// Stops at a number of bytes as well, so large values never fill the memory. One operation may
  /// have made two notices for the device, under two of its names. Each name's notices are read in
  /// order, and no more of them than a page may hold.
  private static let rows = PostgresStatement(
    "notices_pull",
    """
    SELECT sequence, body FROM (
      SELECT *, sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
        - octet_length(body) AS before
      FROM (
        SELECT sequence, string_agg(body, ',') AS body
        FROM unnest($2::uuid[]) AS name(device), LATERAL (
          SELECT sequence, body FROM notices
          WHERE space = $1 AND device = name.device AND sequence > $3
            AND \(isOwn("$6")) ORDER BY sequence LIMIT $4
        ) AS told
        GROUP BY sequence ORDER BY sequence LIMIT $4
      ) AS listed
    ) AS summed WHERE before < $5 ORDER BY sequence
    """)

  /// Returns the condition under which the principal of a parameter may read the notices of
  /// `name.device`.
  fileprivate static func isOwn(_ principal: String) -> String {
    """
    EXISTS (SELECT 1 FROM devices AS own WHERE own.space = $1 AND own.device = name.device
      AND own.principal IN (\(principal), 'anonymous'))
    """
  }

  /// Asks for a device's notices after the request's cursor; for none if it names no device.
  fileprivate static func addQuery(
    for request: PullRequest, in space: Int64, to pipeline: inout PostgresPipeline
  ) {
    if request.device == nil { return }
    var parameters: PostgresParameters = [.int8(space), .array(addressees(of: request))]
    parameters.append(.int8(request.cursor?.received ?? 0))
    parameters.append(.int8(Int64(request.limit)))
    parameters.append(.int8(Int64(request.byteLimit)))
    parameters.append(.text(request.principal.id))
    pipeline.add(Self.rows, parameters)
  }

  /// Returns the devices whose notices to read.
  fileprivate static func addressees(of request: PullRequest) -> PostgresArray<UUID> {
    var names = PostgresArray<UUID>()
    for device in request.addressees {
      names.append(high: device.value.high, low: device.value.low)
    }
    return names
  }

  /// Creates the answer to this query.
  fileprivate init(_ rows: PostgresRows, newest: SequenceNumber) throws {
    self.init(
      try rows.map { Row(sequence: try $0.int8(0), body: try $0.bytes(1)) }, newest: newest)
  }
}
