import FerryConformance
import FerryHTTPServer
import FerryProtocol
import FerrySQLite

/// The server with a planted mistake. It changes requests before the service gets them, answers
/// before a device gets them, and rows of the store between them.
// SAFETY: touched on the scheduler's thread only.
final class PlantedEndpoint: ServerEndpoint, @unchecked Sendable {
  private let fault: PlantedFault
  private let server: SimulatedServer
  private let storage: EmbeddedStorage
  private let scheduler: Scheduler
  private let dice: FaultDice
  private let limits: Limits
  /// The process whose store has the fault's triggers.
  private var planted: Int?
  /// Operations not yet taken by the server, by space.
  private var coming: [String: Int64] = [:]
  /// The last confirmed operation of each device, by link.
  private var tails: [String: OperationID] = [:]

  init(
    _ fault: PlantedFault, _ server: SimulatedServer, _ storage: EmbeddedStorage,
    _ scheduler: Scheduler, dice: FaultDice, limits: Limits
  ) {
    (self.fault, self.server, self.storage) = (fault, server, storage)
    (self.scheduler, self.dice, self.limits) = (scheduler, dice, limits)
  }

  var generation: Int? { server.generation }

  func respond(to request: HTTPRequest, message: Int) async -> HTTPResponse {
    plantTriggers()
    var request = request
    if fault == .anchorNotChecked, let cursor = request.cursor {
      let bare = Cursor(epoch: cursor.epoch, applied: cursor.applied, received: cursor.received)
      request.query["cursor"] = "\(bare)"
    }
    switch request.segments.last {
    case "packets": return await push(request, message)
    case "changes": return await pull(request, message)
    default: return await server.respond(to: request, message: message)
    }
  }

  private func plantTriggers() {
    guard planted != generation else { return }
    planted = generation
    look { for statement in fault.serverStatements { try $0.execute(statement) } }
  }

  /// Uses the store's file without faults of the disk; `nil` if it cannot be used at this moment.
  @discardableResult
  private func look<T>(_ body: (SQLiteConnection) throws -> T?) -> T? {
    try? dice.quietly { try body(try storage.connection()) }
  }

  // MARK: Packets

  private func push(_ request: HTTPRequest, _ message: Int) async -> HTTPResponse {
    guard let packet = try? Packet(decoding: request.body, limits: limits), let tail = packet.tail,
      let space = request.space
    else { return await server.respond(to: request, message: message) }
    var request = request
    let changed = changed(packet, in: space)
    if changed != packet { request.body = changed.encoded() }
    if fault == .headBeforeChanges {
      coming[space, default: 0] += Int64(packet.operations.count)
      try? await scheduler.sleep(.milliseconds(20))
    }
    var response = await server.respond(to: request, message: message)
    if fault == .headBeforeChanges { coming[space, default: 0] -= Int64(packet.operations.count) }
    guard case .bytes(let body) = response.body else { return response }
    if var answer = try? PacketAnswer(decoding: body, limits: limits) {
      if answer.receipt.status != .buffered { tails[request.remoteAddress] = tail }
      change(&answer, to: request.cursor)
      if fault == .loserNotNotified || fault == .cursorOverOthers {
        response.body = .bytes(answer.encoded())
      }
    } else if fault == .noForkDetection, Problem(decoding: body)?.code == .deviceForked,
      let answer = repetition(packet, tail, in: space)
    {
      tails[request.remoteAddress] = tail
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "application/json"], body: .bytes(answer.encoded()))
    }
    return response
  }

  private func changed(_ packet: Packet, in space: String) -> Packet {
    var packet = packet
    switch fault {
    case .transactionTornOnServer: packet.continues = false
    case .incrementSentAsValue:
      for index in packet.operations.indices { packet.operations[index].increments = [] }
    case .dependencyIgnored:
      guard let dependency = packet.dependency, !isKnown(dependency) else { break }
      packet.dependency =
        look { connection in
          try connection.first("SELECT tail FROM devices WHERE device = ?", packet.device) {
            $0.uniqueID(0).map { OperationID($0) }
          } ?? nil
        }
    case .tombstoneForgotten:
      changeRecords(of: packet, in: space) { state, operation in
        if operation.kind == .insert { state.deleted = nil }
      }
    case .tiesUnresolved:
      changeRecords(of: packet, in: space) { state, operation in
        for index in state.columns.indices
        where state.columns[index].stamp.time == operation.time(of: state.columns[index].name) {
          state.columns[index].stamp = Stamp(
            time: state.columns[index].stamp.time, device: DeviceID(UniqueID(high: 0, low: 0)))
        }
      }
    default: break
    }
    return packet
  }

  private func isKnown(_ operation: OperationID) -> Bool {
    look { connection in
      try connection.exists("SELECT 1 FROM operations WHERE id = ?", operation)
    } ?? true
  }

  /// Changes the stored records of a packet's new operations before the store merges them.
  private func changeRecords(
    of packet: Packet, in space: String, _ change: (inout RecordState, SyncOperation) -> Void
  ) {
    for operation in packet.operations where !isKnown(operation.id) {
      look { connection in
        let row = "space = (SELECT id FROM space_names WHERE name = ?) AND tbl = ? AND record = ?"
        let key = operation.key
        let found = try connection.first(
          "SELECT state FROM records WHERE \(row)", space, key.table,
          StoredRecordName(key.record)
        ) { try RecordState(stored: $0.blobBytes(0), limits: limits) }
        guard let found else { return }
        var state = found
        change(&state, operation)
        guard state != found else { return }
        try connection.run(
          """
          UPDATE record_rows SET state = ?4 WHERE space = (SELECT id FROM space_names WHERE name = ?1)
            AND tbl = ?2 AND record = ?3
          """, space, key.table, StoredRecordName(key.record), state.stored())
      }
    }
  }

  private func change(_ answer: inout PacketAnswer, to cursor: Cursor?) {
    switch fault {
    case .loserNotNotified:
      answer.receipt = answer.receipt.withoutLosers
      answer.released = answer.released.map(\.withoutLosers)
    case .cursorOverOthers:
      guard let cursor, let places = answer.receipt.sequences,
        places.lowerBound > cursor.applied + 1, answer.receipt.historyHash != nil
      else { return }
      let before =
        cursor.anchor?.head == cursor.applied ? cursor.anchor?.historyHash : HistoryHash.empty
      answer.receipt = PacketReceipt(
        tail: answer.receipt.tail, status: answer.receipt.status,
        sequences: cursor.applied + 1...places.upperBound, outcomes: answer.receipt.outcomes,
        historyHashBefore: before, historyHash: answer.receipt.historyHash,
        timeline: answer.receipt.timeline)
    default: return
    }
  }

  /// Returns the answer to a packet whose operations the server has.
  private func repetition(
    _ packet: Packet, _ tail: OperationID, in space: String
  ) -> PacketAnswer? {
    look { connection in
      try connection.first(
        """
        SELECT epoch, head FROM spaces WHERE id = (SELECT id FROM space_names WHERE name = ?)
        """, space
      ) { row in
        PacketAnswer(
          receipt: PacketReceipt(
            tail: tail, status: .duplicate,
            outcomes: packet.operations.map { _ in Outcome(isOverruled: true) }),
          epoch: Epoch(UInt64(bitPattern: row.int64(0))), head: row.int64(1),
          serverTime: DeviceClock.start + scheduler.now / 1_000)
      }
    }
  }

  // MARK: Pages

  private func pull(_ request: HTTPRequest, _ message: Int) async -> HTTPResponse {
    var response = await server.respond(to: request, message: message)
    if fault == .expiredCursorServed, case .bytes(let body) = response.body,
      Problem(decoding: body)?.code == .cursorExpired, let cursor = request.cursor
    {
      // The page as within a list begun after the horizon.
      var served = request
      let began = Cursor(
        epoch: cursor.epoch, applied: 0, received: cursor.received, anchor: cursor.anchor,
        began: Limits.sequenceMax)
      served.query["cursor"] = "\(began)"
      response = await server.respond(to: served, message: message)
    }
    guard case .bytes(let body) = response.body, let head = try? PageReader.head(of: body) else {
      return response
    }
    let changed = changed(head, of: request)
    if changed != head { response.body = .bytes(body.replacingHead(changed)) }
    return response
  }

  private func changed(_ head: PageHead, of request: HTTPRequest) -> PageHead {
    var head = head
    let cursor = head.cursor
    switch fault {
    case .pageAppliedEarly where head.more:
      head.more = false
      head.cursor = Cursor(epoch: cursor.epoch, applied: cursor.received, anchor: cursor.anchor)
      // A page of a list with another end is refused.
      head.head = cursor.received
    case .headBeforeChanges where !head.more:
      let count = request.space.flatMap { coming[$0] } ?? 0
      guard count > 0 else { break }
      head.head += count
      head.cursor = Cursor(epoch: cursor.epoch, applied: cursor.applied + count)
    case .noForkDetection:
      head.appliedTail = tails[request.remoteAddress] ?? head.appliedTail
    default: break
    }
    return head
  }
}

extension HTTPRequest {
  /// The name of the space: `/v1/spaces/NAME/…`.
  fileprivate var space: String? { segments.count > 2 ? segments[2] : nil }
  fileprivate var cursor: Cursor? { query["cursor"].flatMap { Cursor($0) } }
}

extension PacketReceipt {
  /// The same, as if nothing of the packet had lost.
  fileprivate var withoutLosers: PacketReceipt {
    PacketReceipt(
      tail: tail, status: status, sequences: sequences,
      outcomes: outcomes.map { outcome in
        var outcome = outcome
        outcome.isOverruled = false
        return outcome
      }, historyHashBefore: historyHashBefore, historyHash: historyHash, timeline: timeline)
  }
}
