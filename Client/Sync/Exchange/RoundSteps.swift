import FerryProtocol

/// The state at the beginning of a pull.
struct PullStart: Sendable {
  /// Everything up to here is applied.
  let applied: SequenceNumber
  let cursor: Cursor?
  let names: OwnNames
  /// True if records are to be fetched by themselves.
  let isToRefresh: Bool
}

/// The state at the beginning of a push.
struct PushStart: Sendable {
  /// The place of the newest operation to send.
  let newest: Int64
  /// True if the chain restarts with packets that were perhaps sent under a former identifier.
  let isChainSentAgain: Bool
}

/// A packet and the cursor sent with it.
struct PacketToSend: Sendable {
  let number: Int64
  let packet: Packet
  let cursor: Cursor?
}

/// The next packets of a push.
struct NextPackets: Sendable {
  var packets: [PacketToSend] = []
  /// Operations not confirmed by the server.
  var pending = 0
  /// Operations buffered by the server.
  var buffered = 0
}

/// The result of a round of requests, before it is stored.
struct SyncRound: Sendable {
  var report = SyncReport()
  /// The place of the newest operation the round was to send; `nil` if it only pulled.
  var sentThrough: Int64?
  var reconciled = Reconciled()
}

/// The steps of a round on the replica's thread: each does all that the round needs at that point.
struct RoundSteps {
  let file: ReplicaFile

  /// Returns true if a pull may have something to do, although a live connection has reported
  /// `head`.
  func isPullNeeded(trusting head: SequenceNumber?) throws -> Bool {
    let state = try file.syncState()
    guard let head, state.epoch != nil, state.received == state.applied,
      head <= state.applied, head >= state.head
    else { return true }
    return try !file.refreshes.isEmpty() || file.failedUploads.hasMarks()
      || file.tables.tracked.hasReturning() || !file.unrecordedWrites.current().isEmpty
  }

  /// Begins a pull, perhaps from the start.
  func beginPull() throws -> PullStart {
    try file.directions.beginReturns()
    return PullStart(
      applied: try file.syncState().applied,
      cursor: try file.state.knownCursor(ofFormerNames: true),
      names: try file.ownNames(), isToRefresh: try file.refreshes.hasAny())
  }

  /// Returns true if the server has changes not applied yet, as far as this device knows.
  func isBehind() throws -> Bool {
    let state = try file.syncState()
    return try state.head > state.applied || !file.refreshes.isEmpty()
  }

  /// Begins a push; the pull before has shown which operations have arrived.
  func beginPush() throws -> PushStart {
    let newest = try file.queue.newestOrder()
    try file.uploads.prepare()
    return PushStart(newest: newest, isChainSentAgain: try file.packets.isChainSentAgain())
  }

  /// Returns packets not sent by a push yet, oldest first; freezes new ones as needed.
  ///
  /// - Parameters:
  ///   - sent: the numbers of the packets already sent by the push.
  ///   - room: the most packets.
  ///   - cut: special sizes of new packets.
  func nextToSend(besides sent: Set<Int64>, room: Int, _ cut: PacketCut) throws -> NextPackets {
    var next = NextPackets(pending: sent.isEmpty ? try file.queue.count() : 0)
    if room == 0 || sent.isEmpty && next.pending == 0 { return next }
    var open = try file.packets.open().filter { !sent.contains($0.number) }
    if open.count < room {
      try file.chain.freeze(limit: room, cut)
      open = try file.packets.open().filter { !sent.contains($0.number) }
    }
    next.buffered = try file.packets.bufferedCount()
    next.packets = try open.prefix(room).map {
      PacketToSend(
        number: $0.number, packet: try file.operations.packet($0, of: file.identity().device),
        cursor: try file.state.knownCursor())
    }
    return next
  }

  /// Returns the facts about a packet, or `nil` if no packet has this number.
  func facts(ofPacket number: Int64) throws -> PacketFacts? {
    guard let row = try file.packets.packet(number) else { return nil }
    let packet = try file.operations.packet(row, of: file.identity().device)
    guard let first = packet.operations.first else { return nil }
    let stored = try file.connection.first(
      """
      SELECT sum(coalesce(length(data), 0) + length(record) + 256) FROM ferry_pending
      WHERE grp = (SELECT grp FROM ferry_pending WHERE seq = ?)
      """, row.orders.lowerBound
    ) { Int($0.int64(0)) }
    let bytes = packet.encoded().count
    return PacketFacts(
      bytes: bytes, transactionBytes: stored ?? bytes, operations: packet.operations.count,
      transactions: try file.operations.transactionCount(ofPacket: number), key: first.key)
  }

  /// Stores the result of a round. Returns the report.
  ///
  /// - Parameter clockOffset: the server's clock minus this device's, in milliseconds.
  func finish(_ round: SyncRound, clockOffset: Int64?) throws -> SyncReport {
    var report = round.report
    for (table, rows) in round.reconciled.tables { try file.reconciler.end(table, rows) }
    if let order = round.sentThrough {
      report.unreconciled = try file.unrecordedWrites.tables().count
      report.left = try file.queue.unconfirmedCount(through: order)
    }
    try file.state.finish(report, clockOffset: clockOffset)
    report.cursor = try file.syncState().cursor
    return report
  }
}
