import FerryProtocol

/// Decides a whole round with the server: pulls, pushes, recoveries after a rejection, the cutting of packets,
/// and the comparison of unrecorded writes (SPEC.md §4, §5). A pure machine: an event in, actions out.
///
/// ```swift
/// var exchange = Exchange(.push, options)
/// exchange.begin()  // step: begin
/// exchange.handle(.begun(start))  // request: page
/// ```
///
/// ``Pulling`` decides a list of changes, and ``Pushing`` the packets. This machine orders them: each ends
/// after a limited number of failures, and a sync has ``pushesMax`` pushes.
struct Exchange: Sendable {
  /// The options of a round.
  struct Options: Sendable {
    var packetsInFlight: Int
    /// The most packets of one transaction.
    var partsMax: Int
    /// The largest packet, in bytes, accepted by a proxy on the way.
    var packetBytesMax: Int?
  }

  /// The most pushes in one sync.
  static let pushesMax = 3

  /// The purpose of a pull.
  private enum PullReason { case first, recovery, afterPush, afterComparison }

  let kind: Kind
  private var options: Options
  private(set) var report = SyncReport()
  /// The place of the newest operation the round was to send; `nil` if it only pulled.
  private(set) var sentThrough: Int64?
  private var reason = PullReason.first
  /// The pull under way.
  private var pulling: Pulling?
  private var pushing: Pushing
  private var pushes = 0
  private var hasCompared = false
  private var failure: Failure?

  init(_ kind: Kind, _ options: Options) {
    (self.kind, self.options) = (kind, options)
    pushing = Pushing(options)
  }

  /// True while a first list is filled in beside its tables.
  var isFilling: Bool { pulling?.isFilling ?? false }
  /// The largest packet accepted by a proxy, as far as it is known now.
  var packetBytesMax: Int? { pushing.packetBytesMax }

  /// Begins the round.
  mutating func begin() -> Next {
    switch kind {
    case .pull, .catchUp, .push: .step(.begin(trusting: nil))
    case .sync(let head): .step(.begin(trusting: head))
    case .send: .step(.beginPush)
    }
  }

  /// Returns the actions after an event.
  mutating func handle(_ event: Event) -> Next {
    if let failure { return .step(.fail(failure)) }
    switch event {
    case .begun(let start):
      guard let start else { return reason == .first ? afterFirstPull() : afterPushes() }
      pulling = Pulling()
      return handle(.pullBegun(start))
    case .unrecorded(let tables):
      return tables == 0 ? .step(.beginPush) : .request(.compare)
    case .compared(let recorded, let isAny):
      report.recorded += recorded
      hasCompared = isAny
      return .step(.beginPush)
    case .pushBegun(let newest, let isChainSentAgain):
      return push(through: newest, isOrdered: isChainSentAgain)
    case .isMore(let isMore):
      return isMore && pushes < Self.pushesMax ? .step(.beginPush) : afterPushes()
    case .failed(.compare, let failure): return apply(.fail(failure))
    case .finished(let hasNames): return hasNames ? .request(.names) : .wait
    case .named: return .wait
    default:
      let pulled = pulling?.handle(event, &report)
      return apply(pulled ?? pushing.handle(event, &report))
    }
  }

  private mutating func apply(_ turn: Turn) -> Next {
    switch turn {
    case .next(let next): return next
    case .over where pulling != nil:
      pulling = nil
      return afterPull()
    case .over: return afterPush()
    case .pull(let problem): return pull(.recovery, problem.map { .replaceRows($0) } ?? .beginPull)
    case .fail(let failure, let step):
      self.failure = failure
      return .step(step ?? .fail(failure))
    }
  }

  // MARK: The order of a round

  private mutating func pull(_ reason: PullReason, _ step: Step) -> Next {
    self.reason = reason
    pulling = Pulling()
    return .step(step)
  }

  private mutating func afterPull() -> Next {
    switch reason {
    case .first: return afterFirstPull()
    case .recovery: return .step(.prepareUploads)
    // A rolled-back server needs the lost operations again, and a list may leave records to fetch.
    case .afterPush: return .step(.readIsMore)
    case .afterComparison: return .step(.finish)
    }
  }

  private func afterFirstPull() -> Next {
    if kind == .catchUp { return .wait }
    return .step(kind.sends ? .findUnrecorded : .finish)
  }

  /// Begins a push. Later pushes send one packet after another: each joins this device's chain, even if a copy
  /// of the file has sent it.
  private mutating func push(through newest: Int64, isOrdered: Bool) -> Next {
    sentThrough = newest
    pushes += 1
    options.packetBytesMax = packetBytesMax
    if pushes > 1 { options.packetsInFlight = 1 }
    pushing = Pushing(options, isOrdered: isOrdered)
    return pushing.send(&report)
  }

  private mutating func afterPush() -> Next {
    guard case .sync = kind else { return afterPushes() }
    reason = .afterPush
    return .step(.look)
  }

  /// Pulls after a comparison: the server may have moved on while the rows were compared.
  private mutating func afterPushes() -> Next {
    hasCompared ? pull(.afterComparison, .beginPull) : .step(.finish)
  }
}
