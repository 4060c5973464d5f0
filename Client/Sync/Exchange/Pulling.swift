import FerryProtocol

/// Decides a pull until the head is reached (SPEC.md §5): records fetched by themselves, the pages of the list,
/// and a pull from the start if the server cannot continue. A pure machine, part of ``Exchange``.
struct Pulling: Sendable {
  /// The most pulls in one, each after a rejection.
  static let attemptsMax = 3
  /// The most lists pulled again because the cursor went back: each list withdraws confirmations, and a server
  /// restored from a backup needs one.
  static let repeatsMax = 16

  private var attempts = 1
  private var repeats = 0
  private var start: PullStart?
  private var list = PullList(from: nil)
  private var bound = ListBound()
  private var group = FetchGroup(size: RefreshTable.batch)
  private var received = 0
  /// The server's answer about an unknown space.
  private var unknownSpace: Problem?
  /// True while a first list is filled in beside its tables.
  private(set) var isFilling = false

  mutating func handle(_ event: Exchange.Event, _ report: inout SyncReport) -> Exchange.Turn {
    switch event {
    case .pullBegun(let start): return begin(start)
    case .keys(let keys): return keys.isEmpty ? requestPage() : .request(.records(keys))
    case .records(let keys): return .step(.stageRecords(keys))
    case .done(.stageRecords):
      group.accept()
      return .step(.nextRecords(group.size, isFirst: false))
    case .done(.leaveOut): return .step(.nextRecords(group.size, isFirst: false))
    case .page(let head, let bytes): return receive(head, bytes)
    // The staged pages may be as broken as this one.
    case .pageIsMalformed(let fault):
      return .fail(.error(ReplicaError(fault)), after: .discardPages)
    case .filling:
      isFilling = true
      return .request(.pause(.zero))
    case .paused: return .step(.fillSlice)
    case .filled(let pause):
      return pause.map { .request(.pause($0)) } ?? .step(.apply(isFilled: true))
    case .applied(let applied): return finish(applied, &report)
    case .done(.replaceRows), .done(.renewIdentity), .spaceCreated: return .step(.beginPull)
    case .isFound(let isFound): return isFound ? failUnknown() : .request(.createSpace)
    case .failed(let request, let failure): return recover(request, failure)
    default: return .wait
    }
  }

  private mutating func begin(_ start: PullStart) -> Exchange.Turn {
    self.start = start
    received = 0
    list = PullList(from: start.cursor)
    bound.begin(at: start.cursor?.received ?? -1)
    group = FetchGroup(size: RefreshTable.batch)
    return start.isToRefresh
      ? .step(.nextRecords(group.size, isFirst: true)) : requestPage()
  }

  private func requestPage() -> Exchange.Turn {
    guard let start else { return .wait }
    return .request(.page(start.cursor, start.names))
  }

  private mutating func receive(_ head: PageHead, _ bytes: Int) -> Exchange.Turn {
    guard let start else { return .wait }
    received += head.count
    var next = Exchange.Next()
    next.progress = SyncProgress(
      phase: .pulling, completed: received,
      total: max(received, Int(clamping: head.head - start.applied)))
    if let fault = list.add(head) {
      // The staged pages may be as broken as this one.
      return .fail(.error(.unexpectedAnswer(status: 200, fault)), after: .discardPages)
    }
    guard head.more else {
      next.steps = [.apply(isFilled: false)]
      return .next(next)
    }
    if let fault = bound.accept(reached: head.cursor.received, head: head.head, bytes: bytes) {
      return .fail(
        .error(
          ReplicaError(
            fault, of: "a list of changes",
            next: "they are stored, and the next sync continues. If no sync ends, ask the server's "
              + "administrator")))
    }
    // The next page travels while this one is staged.
    next.requests = [.page(head.cursor, start.names)]
    next.steps = [.stage]
    return .next(next)
  }

  private mutating func finish(
    _ applied: AppliedPull, _ report: inout SyncReport
  ) -> Exchange.Turn {
    isFilling = false
    report.pulled += applied.applied
    guard applied.isToRepeat else {
      // Each pull retries the changes deferred by an earlier pull.
      report.refused = applied.refused
      return .over
    }
    repeats += 1
    guard repeats <= Self.repeatsMax else {
      return .fail(
        .error(
          .leftBehind(
            "the server has named other confirmed changes of this replica with each of \(repeats) "
              + "lists; ask the server's administrator")))
    }
    return .step(.beginPull)
  }

  // MARK: Rejections

  private mutating func recover(
    _ request: Exchange.Request, _ failure: Exchange.Failure
  ) -> Exchange.Turn {
    guard let problem = failure.problem else { return .fail(failure) }
    switch request {
    case .records(let keys) where problem.code.isAboutRecords: return reject(keys, problem)
    case .createSpace: return problem.code == .forbidden ? failUnknown() : .fail(failure)
    default: break
    }
    if problem.code == .unknownSpace, attempts == 1 {
      attempts += 1
      unknownSpace = problem
      return .step(.readIsFound)
    }
    guard attempts < Self.attemptsMax else { return .fail(failure) }
    attempts += 1
    if problem.code.needsReplacement { return .step(.replaceRows(problem)) }
    if problem.code == .deviceTaken { return .step(.renewIdentity(problem.code, because: nil)) }
    return .fail(failure)
  }

  /// A rejected record stops no other one.
  private mutating func reject(_ keys: [RecordKey], _ problem: Problem) -> Exchange.Turn {
    switch group.reject(sent: keys.count) {
    case .smaller: .step(.nextRecords(group.size, isFirst: false))
    case .alone: .step(.leaveOut(keys, problem))
    case .tooMany: .step(.leaveOut([], problem))
    }
  }

  /// Fails with the answer about the space. A space known to the server before was deleted or lost, and only
  /// an admin's token may make spaces.
  private func failUnknown() -> Exchange.Turn {
    unknownSpace.map { .fail(.refused($0)) } ?? .wait
  }
}
