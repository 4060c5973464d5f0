import FerryProtocol
import FerryTestSupport

@testable import FerrySyncClient

/// A replica's file and a server in a few numbers, for an ``Exchange``.
///
/// The answers come in any order, and with the faults that a seed chooses. Each rule of the machine is
/// checked on the way; ``faults`` has the violations.
struct ExchangeModel {
  /// A packet of the file.
  struct Frozen {
    let number: Int64
    let transactions: Int
    var isBuffered = false
  }

  var exchange: Exchange
  var random: SeededGenerator
  /// Events until the server is honest; `.max` for a server that never is.
  var faultsLeft: Int
  var waiting: Int
  var toFetch: Int
  var open: [Frozen] = []
  var number: Int64 = 0
  var inFlight: [Exchange.Request] = []
  /// The steps so far, and the reason of a failure.
  var steps: [Exchange.Step] = []
  var failure: Exchange.Failure?
  var faults: [String] = []
  var confirmed = 0
  private var received: SequenceNumber = 0

  init(_ kind: Exchange.Kind, seed: UInt64, faults: Int) {
    let options = Exchange.Options(packetsInFlight: 4, partsMax: 8)
    exchange = Exchange(kind, options)
    random = SeededGenerator(seed: seed)
    faultsLeft = faults
    waiting = Int(random.next() % 24)
    toFetch = Int(random.next() % 5)
  }

  static let start = PullStart(
    applied: 0, cursor: nil,
    names: OwnNames(device: DeviceID(UniqueID(high: 1, low: 1)), former: []),
    isToRefresh: true)

  private mutating func chance(_ part: UInt64) -> Bool { random.next() % part == 0 }

  /// Runs the round. Returns the number of events; it ends, or the limit is a violation.
  mutating func run(limit: Int = 50_000) -> Int {
    var next = exchange.begin()
    for count in 0..<limit {
      start(next.requests)
      if let step = next.steps.first {
        steps.append(step)
        if case .fail(let reason) = step {
          failure = reason
          return count
        }
        let event = perform(step)
        next.steps.removeFirst()
        let left = next.steps
        next = handle(event)
        next.steps = left + next.steps
      } else if !inFlight.isEmpty {
        let request = inFlight.remove(at: Int(random.next() % UInt64(inFlight.count)))
        next = handle(answer(request))
      } else {
        return count
      }
    }
    faults.append("no end after \(limit) events")
    return limit
  }

  private mutating func start(_ requests: [Exchange.Request]) {
    for request in requests {
      if inFlight.contains(request) { faults.append("\(request) is under way twice") }
      inFlight.append(request)
    }
    let packets = inFlight.count { if case .packet = $0 { true } else { false } }
    if packets > 4 { faults.append("\(packets) packets at once") }
  }

  /// Passes an event to the machine. A push begins to send all packets again only with a reason.
  private mutating func handle(_ event: Exchange.Event) -> Exchange.Next {
    faultsLeft = max(0, faultsLeft - 1)
    let next = exchange.handle(event)
    for case .freeze(let sent, let room, _) in next.steps {
      if room < 0 { faults.append("room for \(room) packets") }
      if sent.isEmpty, !isReasonToSend(event) { faults.append("sends again after \(event)") }
    }
    for case .packet(let number) in next.requests {
      switch event {
      case .failed(.packet(number), _): break
      case .frozen(let numbers, _, _) where numbers.contains(number): break
      default: faults.append("packet \(number) is sent after \(event)")
      }
    }
    return next
  }

  private func isReasonToSend(_ event: Exchange.Event) -> Bool {
    switch event {
    case .pushBegun, .done(.reopen), .done(.renewIdentity), .done(.prepareUploads), .quarantined,
      .examined(nil):
      true
    case .frozen(_, _, let buffered): buffered > 0
    default: false
    }
  }
}

/// The file.
extension ExchangeModel {
  private mutating func perform(_ step: Exchange.Step) -> Exchange.Event {
    switch step {
    case .begin(let head): .begun(head != nil && chance(2) ? nil : Self.start)
    case .beginPull: .pullBegun(Self.start)
    case .look: .begun(chance(2) ? nil : Self.start)
    case .readIsMore: .isMore(chance(2))
    case .readIsFound: .isFound(chance(2))
    case .findUnrecorded: .unrecorded(tables: chance(3) ? 1 : 0)
    case .finish: .finished(hasNames: chance(2))
    case .nextRecords(let count, _): .keys((0..<min(count, toFetch)).map { Self.key($0) })
    case .apply(let isFilled): apply(isFilled: isFilled)
    case .fillSlice: .filled(pause: chance(3) ? nil : .zero)
    case .beginPush: .pushBegun(newest: 1, isChainSentAgain: chance(4))
    case .freeze(let sent, let room, let cut): freeze(besides: sent, room, cut)
    case .confirm(let number): confirm(number)
    case .examine(let number): .examined(facts(number))
    case .quarantineNamed(let number, _), .quarantine(let number, _, _): remove(number)
    default: change(step)
    }
  }

  private mutating func change(_ step: Exchange.Step) -> Exchange.Event {
    switch step {
    case .stageRecords(let keys), .leaveOut(let keys, _):
      toFetch = keys.isEmpty ? 0 : max(0, toFetch - keys.count)
    case .reopen(let number):
      waiting += open.filter { $0.number >= number }.reduce(0) { $0 + $1.transactions }
      open.removeAll { $0.number >= number }
    case .renewIdentity: for index in open.indices { open[index].isBuffered = false }
    default: break
    }
    return .done(step)
  }

  static func key(_ number: Int) -> RecordKey { RecordKey(table: "t", record: Name("\(number)")) }

  private mutating func apply(isFilled: Bool) -> Exchange.Event {
    if !isFilled, chance(4) { return .filling }
    received = 0
    return .applied(AppliedPull(applied: 1, isToRepeat: faultsLeft > 0 && chance(3)))
  }

  private mutating func freeze(
    besides sent: Set<Int64>, _ room: Int, _ cut: PacketCut
  ) -> Exchange.Event {
    let pending = waiting + open.reduce(0) { $0 + $1.transactions }
    var found = open.filter { !sent.contains($0.number) }
    while found.count < room, waiting > 0 {
      number += 1
      let packet = Frozen(number: number, transactions: min(waiting, cut.groupsMax, 4))
      waiting -= packet.transactions
      open.append(packet)
      found.append(packet)
    }
    return .frozen(
      found.prefix(room).map(\.number), pending: sent.isEmpty ? pending : 0,
      buffered: open.filter(\.isBuffered).reduce(0) { $0 + $1.transactions })
  }

  private mutating func confirm(_ number: Int64) -> Exchange.Event {
    guard let index = open.firstIndex(where: { $0.number == number }) else { return .confirmed([]) }
    if faultsLeft > 0, chance(4) {
      open[index].isBuffered = true
      return .confirmed([])
    }
    let packet = open.remove(at: index)
    confirmed += packet.transactions
    return .confirmed([
      PacketReceipt(
        tail: OperationID(UniqueID(high: 1, low: UInt64(number))), status: .applied, sequences: nil,
        outcomes: Array(repeating: .applied, count: packet.transactions))
    ])
  }

  private func facts(_ number: Int64) -> PacketFacts? {
    open.first { $0.number == number }.map {
      PacketFacts(
        bytes: $0.transactions << 10, transactionBytes: 1 << 10, operations: $0.transactions,
        transactions: $0.transactions, key: Self.key(0))
    }
  }

  private mutating func remove(_ number: Int64) -> Exchange.Event {
    guard let index = open.firstIndex(where: { $0.number == number }) else {
      return .quarantined(0)
    }
    return .quarantined(open.remove(at: index).transactions)
  }
}

/// The server.
extension ExchangeModel {
  private mutating func answer(_ request: Exchange.Request) -> Exchange.Event {
    switch request {
    case .pause: return .paused
    case .names: return .named
    default: if faultsLeft > 0, chance(3) { return .failed(request, fault()) }
    }
    switch request {
    case .page: return page()
    case .records(let keys): return .records(keys)
    case .createSpace: return .spaceCreated
    case .packet(let number): return .answered(number)
    case .probe: return .probed
    case .compare: return .compared(recorded: 1, isAny: chance(2))
    case .names: return .named
    case .pause: return .paused
    }
  }

  private mutating func page() -> Exchange.Event {
    let more = chance(3)
    received += more ? 1 : 0
    let head: SequenceNumber = 1_000
    let place = more ? received : head
    return .page(
      PageHead(
        epoch: Epoch(7), head: head,
        cursor: Cursor(epoch: Epoch(7), applied: more ? 0 : head, received: place),
        more: more, appliedTail: nil, serverTime: 0, count: 1), bytes: 1 << 20)
  }

  private mutating func fault() -> Exchange.Failure {
    let codes: [ProblemCode] = [
      .deviceForked, .deviceTaken, .epochChanged, .historyLost, .cursorExpired, .unknownSpace,
      .forbidden, .operationRefused, .malformedMessage, .limitExceeded, .storageQuota,
    ]
    let choice = Int(random.next() % UInt64(codes.count + 3))
    if choice < codes.count { return .refused(Problem(codes[choice], "no")) }
    let status = [413, 403, 502][choice - codes.count]
    return .foreign(ForeignAnswer(status: status, text: "a proxy", bytesSent: 9))
  }
}
