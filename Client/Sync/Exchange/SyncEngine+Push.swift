import FerryNetworking
import FerryProtocol

extension SyncEngine {
  /// Sends pending operations, several packets at once, until nothing waits or the server cannot
  /// accept more.
  ///
  /// - Parameters:
  ///   - start: the state at the beginning of the push, if the caller has just read it.
  ///   - inFlight: packets at once. With 1, every packet joins this device's chain, even if a copy
  ///     of the file has sent it. A packet that overtakes another is only a duplicate.
  /// - Returns: The place of the newest operation to send.
  func push(
    _ api: SyncAPI, _ report: inout SyncReport, _ start: PushStart? = nil, inFlight: Int? = nil,
    _ progress: @escaping Progress
  ) async throws -> Int64 {
    let start = if let start { start } else { try await thread.run { try $0.rounds.beginPush() } }
    var recovery = PushRecovery(isOrdered: start.isChainSentAgain)
    while true {
      let width = recovery.isOrdered ? 1 : inFlight ?? options.packetsInFlight
      let (obstacle, problem) = try await obstacle(api, &report, width, progress)
      guard let obstacle else { return start.newest }
      switch recovery.step(after: obstacle) {
      case .takeIdentity:
        let reason = obstacle == .buffered ? problem.detail : nil
        try await thread.run { try $0.chain.renewIdentity(problem.code, because: reason) }
      case .pull:
        try await pull(api, &report, nil, progress)
        try await thread.run { try $0.uploads.prepare() }
      case .pullFromStart:
        try await thread.run { try ReplacingPull($0).begin(problem) }
        try await pull(api, &report, nil, progress)
        try await thread.run { try $0.uploads.prepare() }
      case .giveUp: throw ReplicaError.leftBehind(problem.detail)
      }
    }
  }

  /// Sends the pending operations. Returns the obstacle if it stopped, or `nil` if it sent all.
  private func obstacle(
    _ api: SyncAPI, _ report: inout SyncReport, _ width: Int, _ progress: @escaping Progress
  ) async throws -> (PushRecovery.Obstacle?, Problem) {
    do {
      try await pushAround(api, &report, width, progress)
    } catch ReplicaError.refused(let problem)
      where problem.code.needsIdentity || problem.code.needsReplacement
    {
      return (.refused(problem.code), problem)
    }
    let waiting =
      report.buffered == 1 ? "1 operation is" : "\(report.buffered) operations are"
    return (
      report.buffered > 0 ? .buffered : nil,
      Problem(
        .deviceForked,
        "\(waiting) buffered by the server, which lacks an earlier operation of this replica")
    )
  }

  /// Sends pending operations, and removes those the server can never apply from the queue, until
  /// nothing waits.
  private func pushAround(
    _ api: SyncAPI, _ report: inout SyncReport, _ inFlightMax: Int, _ progress: @escaping Progress
  ) async throws {
    var cut = PacketCut(bytesMax: shared.packetBytesMax)
    while true {
      do {
        return try await pushChain(api, &report, inFlightMax, cut, progress)
      } catch let refused as PacketRefused {
        cut = try await handle(refused, cut, &report)
      } catch ReplicaError.refused(let problem) where problem.code == .forbidden {
        try await thread.run { try $0.setWritesRefused(problem.detail) }
        throw ReplicaError.refused(problem)
      } catch let refused as PacketRefusedByProxy {
        cut = try await handle(refused.answer, ofPacket: refused.packet, cut, api, &report)
      }
    }
  }

  /// Handles a rejected packet. Returns how the next packets are cut.
  private func handle(
    _ refused: PacketRefused, _ cut: PacketCut, _ report: inout SyncReport
  ) async throws -> PacketCut {
    let (number, problem) = (refused.packet, refused.problem)
    let transactions = try await thread.run { try $0.operations.transactionCount(ofPacket: number) }
    var next = cut
    next.groupsMax = .max
    switch RefusalAnswer.decide(problem, transactions: transactions, isWidest: cut.isWidest) {
    case .narrow(let count):
      try await thread.run { try $0.chain.reopen(packet: number) }
      next.groupsMax = count
    case .widen:
      try await thread.run { try $0.chain.reopen(packet: number) }
      next.isWidest = true
    case .wait:
      // The user may delete pending rows before the next sync.
      try await thread.run { try $0.chain.reopen(packet: number) }
      throw ReplicaError.refused(problem)
    case .quarantineNamed:
      let count = try await thread.run {
        try $0.refusedOperations.remove(from: number, problem.refusals)
      }
      guard count > 0 else { throw ReplicaError.refused(problem) }
      report.quarantined += count
    case .quarantineAll:
      report.quarantined += try await thread.run {
        try $0.refusedOperations.removePacket(number, problem)
      }
    }
    return next
  }

  /// The number of rounds with buffered packets before the push leaves them to the server.
  private var bufferedRoundsMax: Int { 3 }

  private func pushChain(
    _ api: SyncAPI, _ report: inout SyncReport, _ inFlightMax: Int, _ cut: PacketCut,
    _ progress: @escaping Progress
  ) async throws {
    report.buffered = 0
    var (done, total) = (0, 0)
    for _ in 0..<bufferedRoundsMax {
      var sent = Set<Int64>()
      report.buffered = try await withThrowingTaskGroup(of: SentPacket.self) { group in
        var inFlight = 0
        var refusal: (packet: Int64, error: any Error)?
        var next = try await thread.run {
          try $0.rounds.nextToSend(besides: [], room: inFlightMax, cut)
        }
        total = max(total, next.pending)
        while true {
          for packet in next.packets {
            sent.insert(packet.number)
            inFlight += 1
            group.addTask { try await send(packet, api) }
          }
          let ended: SentPacket?
          do {
            ended = try await group.next()
          } catch {
            // A known rejection is handled, whatever else failed.
            throw refusal?.error ?? error
          }
          guard let ended else {
            if let refusal { throw refusal.error }
            return next.buffered
          }
          inFlight -= 1
          next.packets = []
          switch ended {
          case .refused(let packet, let error):
            // The server may have applied the packets under way: their answers still count.
            if refusal.map({ packet < $0.packet }) ?? true { refusal = (packet, error) }
          case .answered(let answer):
            let room = refusal == nil ? inFlightMax - inFlight : 0
            let confirmed: [PacketReceipt]
            (confirmed, next) = try await thread.run { [sent] file in
              (
                try file.chain.receive(answer),
                try file.rounds.nextToSend(besides: sent, room: room, cut)
              )
            }
            done += confirmed.reduce(0) { $0 + $1.outcomes.count }
            report.add(confirmed)
            progress(SyncProgress(phase: .pushing, completed: done, total: max(done, total)))
          }
        }
      }
      if report.buffered == 0 { return }
    }
  }

  private func send(_ next: PacketToSend, _ api: SyncAPI) async throws -> SentPacket {
    let packet = next.packet
    var rejections = 0
    while true {
      do {
        let answer = try await retrying { try await api.push(packet, cursor: next.cursor) }
        guard answer.receipt.tail == packet.operations.last?.id else {
          throw ReplicaError.unexpectedAnswer(status: 200, "a receipt for another packet")
        }
        return .answered(answer)
      } catch let foreign as ForeignAnswer where foreign.isTooLarge || foreign.mayConcernContent {
        rejections += foreign.isTooLarge ? RefusalAnswer.rejectionsMax : 1
        guard rejections >= RefusalAnswer.rejectionsMax else { continue }
        return .refused(
          packet: next.number, PacketRefusedByProxy(packet: next.number, answer: foreign))
      } catch ReplicaError.refused(let problem) where RefusalAnswer.concerns(problem.code) {
        rejections += problem.code == .malformedMessage ? 1 : RefusalAnswer.rejectionsMax
        guard rejections >= RefusalAnswer.rejectionsMax else { continue }
        return .refused(
          packet: next.number, PacketRefused(packet: next.number, problem: problem))
      }
    }
  }
}

/// The end of a packet's request.
private enum SentPacket: Sendable {
  case answered(PacketAnswer)
  /// The server or a proxy rejected this packet; others can still be sent.
  case refused(packet: Int64, any Error)
}

/// A packet the server can never accept unchanged.
private struct PacketRefused: Error {
  let packet: Int64
  let problem: Problem
}

/// A packet rejected by a proxy instead of the server.
private struct PacketRefusedByProxy: Error {
  let packet: Int64
  let answer: ForeignAnswer
}

extension SyncReport {
  fileprivate mutating func add(_ confirmed: [PacketReceipt]) {
    for receipt in confirmed {
      if receipt.status == .duplicate {
        duplicates += receipt.outcomes.count
      } else {
        pushed += receipt.outcomes.count
      }
      conflicts += receipt.outcomes.reduce(0) { $0 + $1.conflicts.count }
    }
  }
}
