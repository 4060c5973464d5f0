import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A whole round as a table: events in, actions out.
@Suite("A round with the server", .hangLimit)
struct ExchangeTests {
  private typealias Event = Exchange.Event
  private typealias Next = Exchange.Next

  private static let names = ExchangeModel.start.names
  private static let start = PullStart(applied: 0, cursor: nil, names: names, isToRefresh: false)
  private static let page = Exchange.Request.page(nil, names)

  private static func head(_ head: SequenceNumber, received: SequenceNumber) -> PageHead {
    let more = received < head
    return PageHead(
      epoch: Epoch(7), head: head,
      cursor: Cursor(epoch: Epoch(7), applied: more ? 0 : head, received: received), more: more,
      appliedTail: nil, serverTime: 0, count: 1)
  }

  private static func refused(_ code: ProblemCode) -> Exchange.Failure {
    .refused(Problem(code, "why"))
  }

  private static func receipts(_ count: Int) -> [PacketReceipt] {
    [
      PacketReceipt(
        tail: OperationID(UniqueID(high: 1, low: 1)), status: .applied, sequences: nil,
        outcomes: Array(repeating: .applied, count: count))
    ]
  }

  private static func freeze(
    _ sent: Set<Int64> = [], room: Int = 4, _ cut: PacketCut = PacketCut()
  ) -> Next {
    .step(.freeze(besides: sent, room: room, cut))
  }

  /// Returns a machine at the beginning of a push.
  private static func pushing(_ kind: Exchange.Kind = .send) -> Exchange {
    var exchange = Exchange(kind, Exchange.Options(packetsInFlight: 4, partsMax: 8))
    _ = exchange.begin()
    _ = exchange.handle(.pushBegun(newest: 9, isChainSentAgain: false))
    return exchange
  }

  /// Expects the actions after each event, without the progress.
  private func expect(
    _ exchange: inout Exchange, _ table: [(Event, Next)],
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for (number, (event, expected)) in table.enumerated() {
      var next = exchange.handle(event)
      next.progress = nil
      #expect(next == expected, "row \(number), after \(event)", sourceLocation: sourceLocation)
    }
  }

  @Test("a sync of one packet pulls, sends, looks, and finishes")
  func one() {
    var exchange = Exchange(
      .sync(trusting: nil), Exchange.Options(packetsInFlight: 4, partsMax: 8))
    #expect(exchange.begin() == .step(.begin(trusting: nil)))
    expect(
      &exchange,
      [
        (.begun(Self.start), .request(Self.page)),
        (.page(Self.head(1, received: 1), bytes: 9), .step(.apply(isFilled: false))),
        (.applied(AppliedPull(applied: 1)), .step(.findUnrecorded)),
        (.unrecorded(tables: 0), .step(.beginPush)),
        (.pushBegun(newest: 9, isChainSentAgain: false), Self.freeze()),
        (.frozen([1], pending: 2, buffered: 0), .request(.packet(1))),
        (.answered(1), .step(.confirm(1))),
        (.confirmed(Self.receipts(2)), Self.freeze([1])),
        (.frozen([], pending: 0, buffered: 0), .step(.look)),
        (.begun(nil), .step(.finish)), (.finished(hasNames: false), .wait),
      ])
    #expect((exchange.report.pulled, exchange.report.pushed, exchange.sentThrough) == (1, 2, 9))
  }

  @Test("the next page travels while one is staged; the last one is applied, perhaps in slices")
  func pages() {
    var exchange = Exchange(.pull, Exchange.Options(packetsInFlight: 4, partsMax: 8))
    let (first, last) = (Self.head(9, received: 5), Self.head(9, received: 9))
    expect(
      &exchange,
      [
        (.begun(Self.start), .request(Self.page)),
        (
          .page(first, bytes: 9),
          Next(requests: [.page(first.cursor, Self.names)], steps: [.stage])
        ),
        (.done(.stage), .wait), (.page(last, bytes: 9), .step(.apply(isFilled: false))),
        (.filling, .request(.pause(.zero))), (.paused, .step(.fillSlice)),
        (.filled(pause: .seconds(1)), .request(.pause(.seconds(1)))),
        (.paused, .step(.fillSlice)), (.filled(pause: nil), .step(.apply(isFilled: true))),
        (.applied(AppliedPull(applied: 2, refused: 1)), .step(.finish)),
        (.finished(hasNames: true), .request(.names)), (.named, .wait),
      ])
    #expect((exchange.report.pulled, exchange.report.refused) == (2, 1))
  }

  @Test("a page without progress drops the staged ones")
  func brokenPages() {
    var exchange = Exchange(.pull, Exchange.Options(packetsInFlight: 4, partsMax: 8))
    _ = exchange.handle(.begun(Self.start))
    expect(
      &exchange,
      [(.page(Self.head(9, received: -1), bytes: 9), .step(.discardPages))])
    guard case .fail(.error(.unexpectedAnswer)) = exchange.handle(.done(.discardPages)).steps.first
    else { return #expect(Bool(false), "the round goes on") }
  }

  @Test("a list is pulled again after each withdrawn confirmation, up to a limit")
  func withdrawnConfirmations() {
    var exchange = Exchange(.pull, Exchange.Options(packetsInFlight: 4, partsMax: 8))
    _ = exchange.handle(.begun(Self.start))
    let toRepeat = Event.applied(AppliedPull(isToRepeat: true))
    let last = Event.page(Self.head(1, received: 1), bytes: 9)
    for _ in 0..<Pulling.repeatsMax {
      expect(
        &exchange,
        [
          (last, .step(.apply(isFilled: false))), (toRepeat, .step(.beginPull)),
          (.pullBegun(Self.start), .request(Self.page)),
        ])
    }
    var other = exchange
    expect(
      &other,
      [
        (last, .step(.apply(isFilled: false))),
        (.applied(AppliedPull(applied: 1)), .step(.finish)),
      ])
    expect(&exchange, [(last, .step(.apply(isFilled: false)))])
    guard case .fail(.error(.leftBehind(let reason))) = exchange.handle(toRepeat).steps.first
    else { return #expect(Bool(false), "the list is pulled again") }
    #expect(reason.contains("each of \(Pulling.repeatsMax + 1) lists"))
  }

  @Test("a space is created at the first contact only, and the first answer is the reason")
  func unknownSpace() {
    for isFound in [false, true] {
      var exchange = Exchange(.pull, Exchange.Options(packetsInFlight: 4, partsMax: 8))
      _ = exchange.handle(.begun(Self.start))
      let unknown = Self.refused(.unknownSpace)
      expect(&exchange, [(.failed(Self.page, unknown), .step(.readIsFound))])
      guard !isFound else {
        expect(&exchange, [(.isFound(true), .step(.fail(unknown)))])
        continue
      }
      expect(
        &exchange,
        [
          (.isFound(false), .request(.createSpace)),
          (.failed(.createSpace, Self.refused(.forbidden)), .step(.fail(unknown))),
        ])
    }
  }

  @Test(
    "a pull answers a lost history and a taken identifier twice, and then fails",
    arguments: [ProblemCode.historyLost, .deviceTaken])
  func pullRecovery(_ code: ProblemCode) {
    var exchange = Exchange(.pull, Exchange.Options(packetsInFlight: 4, partsMax: 8))
    _ = exchange.handle(.begun(Self.start))
    let problem = Problem(code, "why")
    let step: Exchange.Step =
      code == .deviceTaken ? .renewIdentity(code, because: nil) : .replaceRows(problem)
    let again: [(Event, Next)] = [
      (.failed(Self.page, .refused(problem)), .step(step)), (.done(step), .step(.beginPull)),
      (.pullBegun(Self.start), .request(Self.page)),
    ]
    expect(
      &exchange,
      again + again + [(.failed(Self.page, .refused(problem)), .step(.fail(.refused(problem))))])
  }

  @Test("a push renews an unknown chain three times, and then names the cause")
  func unknownChain() {
    var exchange = Self.pushing()
    let renew = Exchange.Step.renewIdentity(.deviceForked, because: nil)
    var room = 4
    for _ in 0..<PushRecovery.identitiesMax {
      expect(
        &exchange,
        [
          (.frozen([1], pending: 1, buffered: 0), .request(.packet(1))),
          (.failed(.packet(1), Self.refused(.deviceForked)), .step(renew)),
          (.done(renew), Self.freeze(room: 1)),
        ])
      room = 1
    }
    #expect(room == 1)
    expect(
      &exchange,
      [
        (.frozen([1], pending: 1, buffered: 0), .request(.packet(1))),
        (
          .failed(.packet(1), Self.refused(.deviceForked)), .step(.fail(.error(.leftBehind("why"))))
        ),
      ])
  }

  @Test("a lost history makes a push pull, then pull from the start")
  func lostHistory() {
    var exchange = Self.pushing()
    let lost = Event.failed(.packet(1), Self.refused(.historyLost))
    let pull: [(Event, Next)] = [
      (.pullBegun(Self.start), .request(Self.page)),
      (.page(Self.head(1, received: 1), bytes: 9), .step(.apply(isFilled: false))),
      (.applied(AppliedPull()), .step(.prepareUploads)),
      (.done(.prepareUploads), Self.freeze(room: 1)),
      (.frozen([1], pending: 1, buffered: 0), .request(.packet(1))),
    ]
    let replace = Exchange.Step.replaceRows(Problem(.historyLost, "why"))
    expect(&exchange, [(.frozen([1], pending: 1, buffered: 0), .request(.packet(1)))])
    expect(&exchange, [(lost, .step(.beginPull))] + pull)
    for _ in 1..<PushRecovery.refusalsMax {
      expect(&exchange, [(lost, .step(replace)), (.done(replace), .step(.beginPull))] + pull)
    }
    expect(&exchange, [(lost, .step(.fail(.error(.leftBehind("why")))))])
  }

  @Test("a rejected packet is cut after the answers to the others; the lowest one counts")
  func rejected() {
    var exchange = Self.pushing()
    let facts = PacketFacts(
      bytes: 9, transactionBytes: 9, operations: 6, transactions: 6, key: ExchangeModel.key(0))
    let limit = Self.refused(.limitExceeded)
    expect(
      &exchange,
      [
        (
          .frozen([1, 2, 3], pending: 9, buffered: 0),
          Next(requests: [.packet(1), .packet(2), .packet(3)])
        ),
        (.failed(.packet(2), limit), .wait), (.failed(.packet(1), limit), .wait),
        (.answered(3), .step(.confirm(3))), (.confirmed([]), .step(.examine(1))),
        (.examined(facts), .step(.reopen(1))),
        (.done(.reopen(1)), Self.freeze([], PacketCut(groupsMax: 3))),
      ])
  }

  @Test("a malformed answer is asked for again, a limited number of times")
  func malformed() {
    var exchange = Self.pushing()
    let failed = Event.failed(.packet(1), Self.refused(.malformedMessage))
    expect(&exchange, [(.frozen([1], pending: 1, buffered: 0), .request(.packet(1)))])
    for _ in 1..<RefusalAnswer.rejectionsMax {
      expect(&exchange, [(failed, .request(.packet(1)))])
    }
    expect(&exchange, [(failed, .step(.examine(1)))])
  }

  @Test("a proxy's answer cuts packets; alone, a transaction leaves if small requests get through")
  func proxy() {
    let answer = ForeignAnswer(status: 413, text: "a proxy", bytesSent: 9)
    let facts = PacketFacts(
      bytes: 800, transactionBytes: 9, operations: 1, transactions: 1, key: ExchangeModel.key(0))
    var exchange = Self.pushing()
    var large = facts
    large.operations = 2
    let cut = PacketCut(bytesMax: 400)
    expect(
      &exchange,
      [
        (.frozen([1], pending: 1, buffered: 0), .request(.packet(1))),
        (.failed(.packet(1), .foreign(answer)), .step(.examine(1))),
        (.examined(large), .step(.reopen(1))), (.done(.reopen(1)), Self.freeze([], cut)),
        (.frozen([1], pending: 1, buffered: 0), .request(.packet(1))),
        (.failed(.packet(1), .foreign(answer)), .step(.examine(1))),
        (.examined(facts), .request(.probe(facts.key))),
      ])
    #expect(exchange.packetBytesMax == 400)
    var other = exchange
    expect(
      &other, [(.failed(.probe(facts.key), .foreign(answer)), .step(.fail(.foreign(answer))))])
    expect(
      &exchange,
      [
        (.probed, .step(.quarantine(1, .tooLargeForProxy, "a proxy"))),
        (.quarantined(1), Self.freeze([], cut)),
      ])
    #expect(exchange.report.quarantined == 1)
  }

  @Test("a quota waits, a reader's token is stored, and both fail the round")
  func refusedWrites() {
    let facts = PacketFacts(
      bytes: 9, transactionBytes: 9, operations: 1, transactions: 1, key: ExchangeModel.key(0))
    let full = Self.refused(.storageQuota)
    var exchange = Self.pushing()
    let sent: [(Event, Next)] = [(.frozen([1], pending: 1, buffered: 0), .request(.packet(1)))]
    let widest = PacketCut(isWidest: true)
    expect(
      &exchange,
      sent + [
        (.failed(.packet(1), full), .step(.examine(1))), (.examined(facts), .step(.reopen(1))),
        (.done(.reopen(1)), Self.freeze([], widest)),
      ])
    expect(
      &exchange,
      sent + [
        (.failed(.packet(1), full), .step(.examine(1))), (.examined(facts), .step(.reopen(1))),
        (.done(.reopen(1)), .step(.fail(full))),
      ])
    exchange = Self.pushing()
    let reader = Self.refused(.forbidden)
    expect(
      &exchange,
      sent + [
        (.failed(.packet(1), reader), .step(.refuseWrites("why"))),
        (.done(.refuseWrites("why")), .step(.fail(reader))),
      ])
  }

  @Test("unrecorded writes are compared before the push, and pulled again after it")
  func comparison() {
    var exchange = Exchange(.push, Exchange.Options(packetsInFlight: 4, partsMax: 8))
    _ = exchange.handle(.begun(Self.start))
    _ = exchange.handle(.page(Self.head(1, received: 1), bytes: 9))
    expect(
      &exchange,
      [
        (.applied(AppliedPull()), .step(.findUnrecorded)),
        (.unrecorded(tables: 1), .request(.compare)),
        (.compared(recorded: 3, isAny: true), .step(.beginPush)),
        (.pushBegun(newest: 3, isChainSentAgain: true), Self.freeze(room: 1)),
        (.frozen([], pending: 0, buffered: 0), .step(.beginPull)),
        (.pullBegun(Self.start), .request(Self.page)),
        (.page(Self.head(1, received: 1), bytes: 9), .step(.apply(isFilled: false))),
        (.applied(AppliedPull()), .step(.finish)),
      ])
    #expect(exchange.report.recorded == 3)
  }
}

/// Events by chance: a round ends whatever the server answers, and sends nothing twice without a reason.
@Suite("A round with a server that lies", .hangLimit)
struct ExchangeChanceTests {
  private static let kinds: [Exchange.Kind] = [
    .pull, .push, .send, .sync(trusting: nil), .sync(trusting: 5), .catchUp,
  ]

  @Test("every round ends, within its limits", arguments: kinds)
  func ends(_ kind: Exchange.Kind) {
    for seed in UInt64(0)..<2_000 {
      var model = ExchangeModel(kind, seed: seed, faults: .max)
      let events = model.run()
      #expect(model.faults == [], "seed \(seed)")
      let pushes = model.steps.count { $0 == .beginPush }
      #expect(pushes <= (kind.sends ? Exchange.pushesMax : 0), "seed \(seed)")
      let identities = model.steps.count { if case .renewIdentity = $0 { true } else { false } }
      #expect(identities <= 60 && events < 20_000, "seed \(seed)")
      expectEnd(model, kind, seed)
    }
  }

  @Test("after the faults are over, everything is sent and the round finishes", arguments: kinds)
  func recovers(_ kind: Exchange.Kind) {
    var finished = 0
    for seed in UInt64(0)..<2_000 {
      var model = ExchangeModel(kind, seed: seed, faults: Int(seed % 40))
      _ = model.run()
      #expect(model.faults == [], "seed \(seed)")
      expectEnd(model, kind, seed)
      if model.failure != nil { continue }
      finished += 1
      if kind.sends { #expect(model.waiting == 0 && model.open.isEmpty, "seed \(seed)") }
      #expect(model.exchange.report.pushed == model.confirmed, "seed \(seed)")
    }
    #expect(finished > 200)
  }

  private func expectEnd(_ model: ExchangeModel, _ kind: Exchange.Kind, _ seed: UInt64) {
    let ends = model.steps.count { $0 == .finish }
    let expected = model.failure == nil && kind != .catchUp ? 1 : 0
    #expect(ends == expected, "seed \(seed): \(String(describing: model.failure))")
    if model.failure == nil { #expect(model.inFlight.isEmpty, "seed \(seed)") }
  }
}
