import FerryNetworking
import FerryProtocol

/// The steps of an ``Exchange`` on the replica's file, with the bytes between its requests and steps.
///
/// Each visit of the replica's thread waits for a turn there. So one visit runs all steps that follow each
/// other, until only requests are left.
struct ExchangeSteps: Sendable {
  /// The result of a round.
  struct Outcome: Sendable {
    let report: SyncReport
    let needs: Set<SyncActivity.Need>
    let names: NameWork
  }

  /// The answer to a request.
  enum Answer: Sendable {
    case page(PulledPage)
    case records([UInt8])
    case packet(PacketAnswer)
    case compared(Reconciled)
    case event(Exchange.Event)
  }

  private(set) var exchange: Exchange
  private let options: FirstListOptions
  private let progress: @Sendable (SyncProgress) -> Void
  /// The newest page, and the answer to the newest request for records.
  private var page: PulledPage?
  private var records: [UInt8] = []
  private var packets: [Int64: PacketToSend] = [:]
  private var answers: [Int64: PacketAnswer] = [:]
  /// Tables to compare with the server.
  private(set) var tables: [UnrecordedTable] = []
  private var reconciled = Reconciled()
  /// The number of changes of the list being applied.
  private var total = 0
  private(set) var outcome: Outcome?

  init(
    _ exchange: Exchange, _ options: FirstListOptions,
    _ progress: @escaping @Sendable (SyncProgress) -> Void
  ) {
    (self.exchange, self.options, self.progress) = (exchange, options, progress)
  }

  /// Returns a packet to send.
  func packet(_ number: Int64) -> PacketToSend? { packets[number] }

  /// Begins the round. Returns the actions.
  mutating func begin() -> Exchange.Next { exchange.begin() }

  /// Handles the answer to a request. Returns the next actions.
  mutating func handle(_ answer: Answer, to request: Exchange.Request) -> Exchange.Next {
    switch answer {
    case .page(let page):
      self.page = page
      return handle(.page(page.head, bytes: page.body.count))
    case .records(let body):
      records = body
      guard case .records(let keys) = request else { return .wait }
      return handle(.records(keys))
    case .packet(let answer):
      guard case .packet(let number) = request else { return .wait }
      answers[number] = answer
      return handle(.answered(number))
    case .compared(let result):
      reconciled = result
      let recorded = result.tables.reduce(0) { $0 + $1.rows.recorded }
      return handle(.compared(recorded: recorded, isAny: !result.tables.isEmpty))
    case .event(let event): return handle(event)
    }
  }

  private mutating func handle(_ event: Exchange.Event) -> Exchange.Next {
    let next = exchange.handle(event)
    if let now = next.progress { progress(now) }
    return next
  }

  /// Runs steps, and those that follow them. Returns the requests.
  mutating func run(
    _ steps: [Exchange.Step], on file: ReplicaFile, _ api: SyncAPI
  ) throws -> Exchange.Next {
    var (waiting, left) = (steps[...], Exchange.Next())
    while let step = waiting.popFirst() {
      let next = handle(try perform(step, file, api))
      left.requests += next.requests
      waiting += next.steps
    }
    return left
  }

  private mutating func perform(
    _ step: Exchange.Step, _ file: ReplicaFile, _ api: SyncAPI
  ) throws -> Exchange.Event {
    switch step {
    case .begin(let head):
      return .begun(try file.rounds.isPullNeeded(trusting: head) ? file.rounds.beginPull() : nil)
    case .beginPull: return .pullBegun(try file.rounds.beginPull())
    case .look: return .begun(try file.rounds.isBehind() ? file.rounds.beginPull() : nil)
    case .readIsMore: return .isMore(try file.queue.hasUnsent() || !file.refreshes.isEmpty())
    case .readIsFound: return .isFound(try file.settings.isFound())
    case .findUnrecorded:
      tables = try file.unrecordedWrites.current()
      return .unrecorded(tables: tables.count)
    case .renewIdentity(let code, let reason):
      try file.chain.renewIdentity(code, because: reason)
    case .finish: return try finish(file, api)
    case .fail(let failure): throw failure.error
    case .nextRecords, .stageRecords, .leaveOut, .stage, .discardPages, .apply, .fillSlice,
      .replaceRows:
      return try pull(step, file)
    case .beginPush, .prepareUploads, .freeze, .confirm, .refuseWrites, .examine, .reopen,
      .quarantineNamed, .quarantine:
      return try push(step, file)
    }
    return .done(step)
  }

  // MARK: Pull

  private mutating func pull(
    _ step: Exchange.Step, _ file: ReplicaFile
  ) throws -> Exchange.Event {
    do {
      switch step {
      case .nextRecords(let count, let isFirst):
        if isFirst { try file.refreshes.retryRejected() }
        return .keys(try file.refreshes.next(count))
      case .stageRecords(let keys): try file.incoming.stage(records, ofRecords: keys)
      case .leaveOut(let keys, let problem): try file.incoming.leaveOut(keys, problem)
      case .stage:
        if let page { try file.incoming.stage(page.body, page.head, changes: page.head.count) }
      case .discardPages: try file.incoming.discard()
      case .apply(let isFilled): return try apply(isFilled: isFilled, file)
      case .fillSlice: return .filled(pause: try fillSlice(file))
      case .replaceRows(let problem): try ReplacingPull(file).begin(problem)
      default: break
      }
    } catch let fault as MalformedMessage {
      return .pageIsMalformed(fault)
    }
    return .done(step)
  }

  /// Applies the staged pages and the last one. A large first list is filled in before.
  private mutating func apply(isFilled: Bool, _ file: ReplicaFile) throws -> Exchange.Event {
    guard let page else { return .applied(AppliedPull()) }
    if !isFilled {
      // An earlier sync may have staged the list's first pages.
      total = try file.stagedPages.changeCount() + page.head.count
      if try file.firstList.begin(last: page.body, page.head) { return .filling }
    }
    let applied = try file.apply(last: page.body, page.head, progress: reporting())
    self.page = nil
    return .applied(applied)
  }

  /// Fills the next slice. Returns the pause after it; `nil` if it was the last one.
  private func fillSlice(_ file: ReplicaFile) throws -> Duration? {
    let start = ContinuousClock.now
    return try file.firstList.fillSlice(reporting())
      ? options.pause(ContinuousClock.now - start) : nil
  }

  private func reporting() -> (Int) -> Void {
    { [progress, total] applied in
      progress(
        SyncProgress(phase: .applying, completed: min(applied, total), total: total))
    }
  }

  // MARK: Push

  private mutating func push(
    _ step: Exchange.Step, _ file: ReplicaFile
  ) throws -> Exchange.Event {
    switch step {
    case .beginPush:
      let start = try file.rounds.beginPush()
      return .pushBegun(newest: start.newest, isChainSentAgain: start.isChainSentAgain)
    case .prepareUploads: try file.uploads.prepare()
    case .freeze(let sent, let room, let cut):
      let next = try file.rounds.nextToSend(besides: sent, room: room, cut)
      if sent.isEmpty { packets = [:] }
      for packet in next.packets { packets[packet.number] = packet }
      return .frozen(
        next.packets.map(\.number), pending: next.pending, buffered: next.buffered)
    case .confirm(let number):
      packets[number] = nil
      guard let answer = answers.removeValue(forKey: number) else { return .confirmed([]) }
      return .confirmed(try file.chain.receive(answer))
    case .refuseWrites(let reason): try file.settings.setWritesRefused(reason)
    case .examine(let number): return .examined(try file.rounds.facts(ofPacket: number))
    case .reopen(let number): try file.chain.reopen(packet: number)
    case .quarantineNamed(let number, let refusals):
      return .quarantined(try file.refusedOperations.remove(from: number, refusals))
    case .quarantine(let number, let code, let detail):
      return .quarantined(
        try file.refusedOperations.removePacket(number, code: code, detail: detail))
    default: break
    }
    return .done(step)
  }

  // MARK: The end

  private mutating func finish(_ file: ReplicaFile, _ api: SyncAPI) throws -> Exchange.Event {
    var round = SyncRound(
      report: exchange.report, sentThrough: exchange.sentThrough, reconciled: reconciled)
    round.report.trace = api.trace.map { "\($0.trace)" }
    let report = try file.rounds.finish(round, clockOffset: api.clockOffset)
    let names = try file.nameSteps.work(after: api.names.now, sends: round.sentThrough != nil)
    outcome = Outcome(report: report, needs: try file.reports.needs(), names: names)
    return .finished(hasNames: names != NameWork())
  }
}
