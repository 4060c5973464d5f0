import FerryProtocol

/// Decides a push (SPEC.md §4): several packets at once, until nothing waits or the server cannot accept more.
/// A pure machine, part of ``Exchange``.
///
/// It sends a packet again only with a reason: the answer was damaged, packets stay buffered, or an obstacle
/// was removed. ``PushRecovery`` bounds the obstacles, and ``RefusalAnswer`` and ``PacketCut`` decide about a
/// rejected packet.
struct Pushing: Sendable {
  /// The most rounds with buffered packets before the push leaves them to the server.
  static let bufferedRoundsMax = 3

  /// The reason to stop sending. The answers to the packets under way still count.
  private enum Obstacle {
    case packet(Int64, Exchange.Failure)
    case device(Problem)
  }

  private let options: Exchange.Options
  private(set) var packetBytesMax: Int?
  private var recovery: PushRecovery
  private var cut: PacketCut
  private var rounds = 0
  /// The packets sent in this round, and those without an answer.
  private var sent: Set<Int64> = []
  private var inFlight = 0
  private var rejections: [Int64: Int] = [:]
  private var obstacle: Obstacle?
  private var buffered = 0
  private var (done, total) = (0, 0)

  /// - Parameter isOrdered: true if packets must go one after the other.
  init(_ options: Exchange.Options, isOrdered: Bool = false) {
    self.options = options
    packetBytesMax = options.packetBytesMax
    recovery = PushRecovery(isOrdered: isOrdered)
    cut = PacketCut(bytesMax: options.packetBytesMax)
  }

  private var room: Int { (recovery.isOrdered ? 1 : options.packetsInFlight) - inFlight }

  /// Sends the pending operations, in packets of the usual size.
  mutating func send(_ report: inout SyncReport) -> Exchange.Next {
    cut = PacketCut(bytesMax: packetBytesMax)
    return resume(&report)
  }

  mutating func handle(_ event: Exchange.Event, _ report: inout SyncReport) -> Exchange.Turn {
    switch event {
    case .frozen(let packets, let pending, let buffered):
      return send(packets, pending, buffered, &report)
    case .answered(let packet): return .step(.confirm(packet))
    case .confirmed(let receipts): return confirm(receipts, &report)
    case .failed(.packet(let packet), let failure): return fail(packet, failure)
    case .failed(.probe, let failure):
      if case .packet(_, let answer)? = obstacle, case .foreign = failure { return .fail(answer) }
      return .fail(failure)
    case .examined(let facts): return examine(facts, &report)
    case .probed: return quarantineAlone()
    case .quarantined(let count): return quarantined(count, &report)
    case .done(.reopen): return .next(resume(&report))
    case .done(.renewIdentity), .done(.prepareUploads): return .next(send(&report))
    default: return .wait
    }
  }

  // MARK: Sending

  private mutating func resume(_ report: inout SyncReport) -> Exchange.Next {
    (rounds, done, total) = (0, 0, 0)
    report.buffered = 0
    return beginRound()
  }

  private mutating func beginRound() -> Exchange.Next {
    rounds += 1
    (sent, rejections, obstacle) = ([], [:], nil)
    return .step(.freeze(besides: [], room: room, cut))
  }

  private mutating func send(
    _ packets: [Int64], _ pending: Int, _ buffered: Int, _ report: inout SyncReport
  ) -> Exchange.Turn {
    total = max(total, pending)
    self.buffered = buffered
    sent.formUnion(packets)
    inFlight += packets.count
    if inFlight > 0 { return .next(Exchange.Next(requests: packets.map { .packet($0) })) }
    report.buffered = buffered
    if buffered == 0 { return .over }
    if rounds < Self.bufferedRoundsMax { return .next(beginRound()) }
    let waiting = buffered == 1 ? "1 operation is" : "\(buffered) operations are"
    return recover(
      .buffered,
      Problem(
        .deviceForked,
        "\(waiting) buffered by the server, which lacks an earlier operation of this replica"))
  }

  private mutating func confirm(
    _ receipts: [PacketReceipt], _ report: inout SyncReport
  ) -> Exchange.Turn {
    inFlight -= 1
    done += receipts.reduce(0) { $0 + $1.outcomes.count }
    report.add(receipts)
    let turn = proceed()
    guard case .next(var next) = turn else { return turn }
    next.progress = SyncProgress(phase: .pushing, completed: done, total: max(done, total))
    return .next(next)
  }

  /// Sends more packets, or removes the obstacle after the last answer.
  private mutating func proceed() -> Exchange.Turn {
    guard let obstacle else { return .step(.freeze(besides: sent, room: room, cut)) }
    if inFlight > 0 { return .wait }
    switch obstacle {
    case .packet(let number, _): return .step(.examine(number))
    case .device(let problem): return recover(.refused(problem.code), problem)
    }
  }

  // MARK: Obstacles

  private mutating func fail(_ packet: Int64, _ failure: Exchange.Failure) -> Exchange.Turn {
    if let weight = RefusalAnswer.weight(of: failure) {
      rejections[packet, default: 0] += weight
      guard rejections[packet, default: 0] >= RefusalAnswer.rejectionsMax else {
        return .request(.packet(packet))
      }
      inFlight -= 1
      if !isRejected(before: packet) { obstacle = .packet(packet, failure) }
      return proceed()
    }
    inFlight -= 1
    // A known rejection of a packet is handled, whatever else failed.
    if isRejected(before: .max) { return proceed() }
    guard let problem = failure.problem else { return .fail(failure) }
    if problem.code.needsIdentity || problem.code.needsReplacement {
      obstacle = obstacle ?? .device(problem)
      return proceed()
    }
    return .fail(failure, after: problem.code == .forbidden ? .refuseWrites(problem.detail) : nil)
  }

  /// Returns true if the server or a proxy rejected a packet below a number.
  private func isRejected(before packet: Int64) -> Bool {
    if case .packet(let number, _)? = obstacle { number < packet } else { false }
  }

  private mutating func recover(
    _ obstacle: PushRecovery.Obstacle, _ problem: Problem
  ) -> Exchange.Turn {
    switch recovery.step(after: obstacle) {
    case .takeIdentity:
      .step(
        .renewIdentity(problem.code, because: obstacle == .buffered ? problem.detail : nil))
    case .pull: .pull(replacing: nil)
    case .pullFromStart: .pull(replacing: problem)
    case .giveUp: .fail(.error(.leftBehind(problem.detail)))
    }
  }

  // MARK: Rejected packets

  private mutating func examine(
    _ facts: PacketFacts?, _ report: inout SyncReport
  ) -> Exchange.Turn {
    // A packet that is not there is not sent again.
    guard case .packet(let number, let failure)? = obstacle, let facts else {
      return .next(resume(&report))
    }
    switch failure {
    case .foreign(let answer): return decide(number, answer, facts)
    case .error(.refused(let problem)): return decide(number, problem, facts)
    case .error: return .fail(failure)
    }
  }

  private mutating func decide(
    _ number: Int64, _ problem: Problem, _ facts: PacketFacts
  ) -> Exchange.Turn {
    cut.groupsMax = .max
    let answer = RefusalAnswer.decide(
      problem, transactions: facts.transactions, isWidest: cut.isWidest)
    switch answer {
    case .narrow(let count): cut.groupsMax = count
    case .widen: cut.isWidest = true
    // The user may delete pending rows before the next sync.
    case .wait: return .fail(.refused(problem), after: .reopen(number))
    case .quarantineNamed: return .step(.quarantineNamed(number, problem.refusals))
    case .quarantineAll:
      let code = RefusalCode(rawValue: problem.code.rawValue)
      return .step(.quarantine(number, code, problem.detail))
    }
    return .step(.reopen(number))
  }

  /// Makes packets smaller after a proxy rejected one. If it has a single transaction, a small request shows
  /// first whether the packet is the reason.
  private mutating func decide(
    _ number: Int64, _ answer: ForeignAnswer, _ facts: PacketFacts
  ) -> Exchange.Turn {
    let decided =
      answer.isTooLarge
      ? cut.afterTooLarge(
        bytes: facts.bytes, operations: facts.operations, transactions: facts.transactions,
        transactionBytes: facts.transactionBytes, partsMax: options.partsMax)
      : cut.afterRefusal(transactions: facts.transactions)
    guard case .narrow(let smaller) = decided else { return .request(.probe(facts.key)) }
    cut = smaller
    packetBytesMax = smaller.bytesMax ?? packetBytesMax
    return .step(.reopen(number))
  }

  private mutating func quarantineAlone() -> Exchange.Turn {
    guard case .packet(let number, .foreign(let answer))? = obstacle else { return .wait }
    cut = PacketCut(bytesMax: cut.bytesMax)
    return .step(.quarantine(number, answer.refusalCode, answer.text))
  }

  private mutating func quarantined(
    _ count: Int, _ report: inout SyncReport
  ) -> Exchange.Turn {
    // The same packet would be rejected again.
    if count == 0, case .packet(_, let failure)? = obstacle { return .fail(failure) }
    report.quarantined += count
    return .next(resume(&report))
  }
}

extension RefusalAnswer {
  /// Returns how much a failed packet counts towards ``rejectionsMax``; `nil` if the content is not the reason.
  fileprivate static func weight(of failure: Exchange.Failure) -> Int? {
    switch failure {
    case .foreign(let answer) where answer.isTooLarge: rejectionsMax
    case .foreign(let answer) where answer.mayConcernContent: 1
    case .error(.refused(let problem)) where concerns(problem.code):
      problem.code == .malformedMessage ? 1 : rejectionsMax
    default: nil
    }
  }
}

extension ForeignAnswer {
  /// The code of the quarantine entry.
  fileprivate var refusalCode: RefusalCode { isTooLarge ? .tooLargeForProxy : .refusedByProxy }
}

extension RefusalCode {
  /// A request with the transaction exceeds a proxy's limit. Not on the wire.
  static let tooLargeForProxy = RefusalCode(rawValue: "too_large_for_proxy")
  /// A proxy rejects requests with this transaction. Not on the wire.
  static let refusedByProxy = RefusalCode(rawValue: "refused_by_proxy")
}

extension SyncReport {
  fileprivate mutating func add(_ confirmed: [PacketReceipt]) {
    for receipt in confirmed {
      if receipt.status == .duplicate {
        duplicates += receipt.outcomes.count
      } else {
        pushed += receipt.outcomes.count
      }
      for outcome in receipt.outcomes {
        conflicts += outcome.conflicts.count
        questions += outcome.conflicts.count { $0.isQuestion }
      }
    }
  }
}

extension ProblemCode {
  /// True if the device must choose another identifier and send unconfirmed operations again.
  var needsIdentity: Bool { self == .deviceForked || self == .deviceTaken }

  /// True if the server cannot continue from a cursor: everything is pulled from the start.
  var needsReplacement: Bool {
    switch self {
    case .epochChanged, .cursorAhead, .historyLost, .cursorExpired, .lostAndExpired: true
    default: false
    }
  }
}
