import FerryProtocol

// The rows below a space's retention horizon, in both stores. Deleting waits for no writer, and no
// writer waits for it.
extension SyncStore {
  /// Deletes some of the rows at or below the retention horizon, beside writers and readers.
  package func prune(
    _ slice: PruneSlice, of space: Int64
  ) async throws(StoreError) -> PruneStep {
    try await plain(.writing) { connection in
      try connection.together {
        guard try connection.claimPruning(of: space) else { return .busy }
        return try connection.prune(slice, of: space)
      }
    }
  }
}

extension PlainConnection {
  fileprivate func prune(_ slice: PruneSlice, of space: Int64) throws -> PruneStep {
    var horizon: SequenceNumber?
    var first: SequenceNumber?
    var steps: [PlainStep] = [
      .one(PruneQueries.horizon, [.integer(space)]) { horizon = try $0.integer(0) }
    ]
    if slice.after == nil {
      steps.append(.one(PruneQueries.first, [.integer(space)]) { first = try $0.integer(0) })
    }
    try perform(steps)
    guard let horizon else { throw StoreError.spaceGone }
    var work = PruneWork(slice, retentionHorizon: horizon, first: first)
    if !work.operations.isEmpty {
      work.rows.operations = try run(
        PruneQueries.operations,
        [
          .integer(space), .integer(work.operations.lowerBound),
          .integer(work.operations.upperBound),
        ])
    }
    if work.room > 0 {
      let bounds: [PlainValue] = [.integer(space), .integer(horizon), .integer(work.room)]
      work.rows.tombstones = try pruneTombstones(of: space, bounds)
      work.rows.notices = try pruneNotices(of: space, bounds)
    }
    if work.reachesDevices { try pruneDevices(slice, of: space, &work) }
    return work.step
  }

  private func pruneTombstones(of space: Int64, _ bounds: [PlainValue]) throws -> Int {
    var last: SequenceNumber = 0
    // Rows locked by a writer are left for the next time; the others are locked until they go.
    let keys = try rows(PruneQueries.tombstones, bounds) { row in
      last = try row.integer(2)
      return try row.recordKey(0).values
    }
    if keys.isEmpty { return 0 }
    try perform([
      .many(PruneQueries.forgetRecords, [.integer(space)], of: keys),
      // A record deleted before it was folded would stay in the sums: they begin from scratch.
      .one(PruneQueries.loseSums, [.integer(space), .integer(last)]),
    ])
    return keys.count
  }

  private func pruneNotices(of space: Int64, _ bounds: [PlainValue]) throws -> Int {
    let keys: [[PlainValue]] = try rows(PruneQueries.notices, bounds) { row in
      [.uuid(try row.uniqueID(0)), .integer(try row.integer(1))]
    }
    try run(PruneQueries.forgetNotices, [.integer(space)], of: keys)
    return keys.count
  }

  // MARK: Devices

  /// Runs under the space's lock: a writer may be about to apply a buffered packet, or to follow a
  /// chain.
  private func pruneDevices(
    _ slice: PruneSlice, of space: Int64, _ work: inout PruneWork
  ) throws {
    try lock(space)
    var credit = UsageCredit()
    work.rows.buffered = try pruneBuffered(
      [
        .integer(space), .integer(slice.bufferedBefore), .integer(Int64(PruneWork.bufferedRows)),
      ], of: space, &credit)
    if work.forgetsDevices {
      let room = PlainValue.integer(Int64(PruneWork.deviceRows))
      work.rows.devices = try forgetDevices(
        [.integer(space), .integer(slice.devicesBefore), room], of: space, &credit)
      // Only the last tails remain of chains without any write for long.
      let chains: [[PlainValue]] = try rows(
        PruneQueries.chains, [.integer(space), .integer(slice.chainsBefore), room]
      ) { [.uuid(try $0.uniqueID(0))] }
      try run(PruneQueries.trim, [.integer(space)], of: chains)
      work.rows.devices += chains.count
    }
    try run(PruneQueries.credit, [.integer(space)], of: credit.rows)
  }

  private func pruneBuffered(
    _ bounds: [PlainValue], of space: Int64, _ credit: inout UsageCredit
  ) throws -> Int {
    let found = try rows(PruneQueries.buffered, bounds) { row in
      (
        key: [PlainValue.uuid(try row.uniqueID(0)), .uuid(try row.uniqueID(1))],
        bytes: try row.integer(2), owner: try row.optionalText(3).flatMap { Principal($0) }
      )
    }
    try run(PruneQueries.unbuffer, [.integer(space)], of: found.map(\.key))
    for packet in found {
      if let owner = packet.owner { credit.add(packets: 1, bytes: packet.bytes, of: owner) }
    }
    return found.count
  }

  private func forgetDevices(
    _ bounds: [PlainValue], of space: Int64, _ credit: inout UsageCredit
  ) throws -> Int {
    let found = try rows(PruneQueries.devices, bounds) { row in
      (device: try row.uniqueID(0), owner: Principal(try row.text(1)) ?? .anonymous)
    }
    try run(
      PruneQueries.forgetDevices, [.integer(space)], of: found.map { [.uuid($0.device)] })
    for device in found { credit.add(devices: 1, of: device.owner) }
    return found.count
  }
}

/// Use of a space that has ended, by account and in total.
private struct UsageCredit {
  private var ended: [String: Usage] = [:]

  mutating func add(packets: Int64 = 0, bytes: Int64 = 0, devices: Int64 = 0, of owner: Principal) {
    for name in [owner.account.id, Usage.total] {
      ended[name, default: Usage()].add(packets: packets, bytes: bytes)
      ended[name, default: Usage()].add(devices: devices)
    }
  }

  var rows: [[PlainValue]] {
    ended.sorted { $0.key < $1.key }.map { name, usage in
      [.text(name), .integer(usage.packets), .integer(usage.packetBytes), .integer(usage.devices)]
    }
  }
}

private enum PruneQueries {
  static let horizon = PlainStatement(
    "prune_horizon", "SELECT retention_horizon FROM spaces WHERE id = $1")
  static let first = PlainStatement(
    "prune_first",
    """
    SELECT sequence FROM operations WHERE space = $1 AND space + 0 = $1 ORDER BY sequence LIMIT 1
    """)
  static let operations = PlainStatement(
    "prune_operations",
    """
    DELETE FROM operations
    WHERE space = $1 AND space + 0 = $1 AND sequence >= $2 AND sequence < $3
    """)

  static let tombstones = PlainStatement(
    "prune_tombstones",
    """
    SELECT tbl, record, sequence FROM records WHERE space = $1 AND dead AND sequence <= $2
    ORDER BY sequence LIMIT $3
    """, .skipping)
  static let forgetRecords = PlainBatch.delete(
    "prune_records", from: "records", RecordQueries.key, sharing: 1
  ) { key in
    "records.space = $1 AND records.tbl = \(key("tbl")) AND records.record = \(key("record"))"
  }
  static let loseSums = PlainStatement(
    "prune_sums",
    """
    UPDATE digest_states SET sequence = -1
    WHERE space = $1 AND sequence >= 0 AND sequence < $2
    """)

  static let notices = PlainStatement(
    "prune_notices",
    """
    SELECT device, sequence FROM notices
    WHERE space = $1 AND space + 0 = $1 AND sequence <= $2 ORDER BY sequence LIMIT $3
    """)
  static let forgetNotices = PlainBatch.delete(
    "prune_notices_forget", from: "notices",
    [.init("device", .uuid), .init("sequence", .integer)], sharing: 1
  ) { key in
    """
    notices.space = $1 AND notices.device = \(key("device"))
      AND notices.sequence = \(key("sequence"))
    """
  }

  static let buffered = PlainStatement(
    "prune_buffered",
    """
    SELECT p.device, p.tail, p.bytes,
      (SELECT d.principal FROM devices AS d WHERE d.space = $1 AND d.device = p.device)
    FROM buffered AS p WHERE p.space = $1 AND p.arrived_at <= $2 LIMIT $3
    """)
  static let unbuffer = PlainBatch.delete(
    "prune_unbuffer", from: "buffered", [.init("device", .uuid), .init("tail", .uuid)], sharing: 1
  ) { key in
    """
    buffered.space = $1 AND buffered.device = \(key("device")) AND buffered.tail = \(key("tail"))
    """
  }

  static let devices = PlainStatement(
    "prune_devices",
    """
    SELECT d.device, d.principal FROM devices AS d
    WHERE d.space = $1 AND d.seen_at <= $2 AND NOT EXISTS (
      SELECT 1 FROM buffered AS p WHERE p.space = $1 AND p.device = d.device) LIMIT $3
    """)
  private static let device: [PlainBatch.Column] = [.init("device", .uuid)]
  static let forgetDevices = PlainBatch.delete(
    "prune_devices_forget", from: "devices", device, sharing: 1
  ) { key in
    "devices.space = $1 AND devices.device = \(key("device"))"
  }

  /// Bytes of the tails that remain of a chain.
  private static let chainBytes = DeviceChain.trimmedCount * 16
  static let chains = PlainStatement(
    "prune_chains",
    """
    SELECT device FROM devices
    WHERE space = $1 AND seen_at <= $2 AND length(recent) > \(chainBytes) LIMIT $3
    """)
  static let trim = PlainBatch.update(
    "prune_chains_trim", "devices", device, sharing: 1,
    set: { _ in
      "trimmed = true, recent = substr(devices.recent, length(devices.recent) - \(chainBytes - 1))"
    }
  ) { key in
    "devices.space = $1 AND devices.device = \(key("device"))"
  }

  static let credit = PlainBatch.update(
    "prune_credit", "usage",
    [
      .init("principal", .text), .init("packets", .integer), .init("packet_bytes", .integer),
      .init("devices", .integer),
    ], sharing: 1,
    set: { key in
      ["packets", "packet_bytes", "devices"].map { name in
        """
        \(name) = CASE WHEN usage.\(name) > \(key(name)) THEN usage.\(name) - \(key(name)) ELSE 0 END
        """
      }.joined(separator: ", ")
    }
  ) { key in
    "usage.space = $1 AND usage.principal = \(key("principal"))"
  }
}
