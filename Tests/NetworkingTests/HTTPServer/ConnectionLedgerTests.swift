import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("Connections and transfer rates", .hangLimit)
struct ConnectionLedgerTests {
  static let some = ClientAddress(ipv4: 0x0A00_0001)
  static let other = ClientAddress(ipv4: 0x0A00_0002)
  static let loopback = ClientAddress(ipv4: 0x7F00_0001)

  @Test("if many connections close at once, at least the first reports that the table was full")
  func closesOfAFullTable() async throws {
    for _ in 0..<200 {
      let table = ConnectionTable(
        .init(connections: 4), pace: TransferPace(), ticks: false, clock: { .zero })
      let open = try (1...4).map {
        try #require(table.open(Int32($0), from: IPAddress(ipv4: 0x7F00_0001)))
      }
      for connection in open { #expect(!table.move(connection, to: .answering)) }
      #expect(table.isFull)
      let told = await withTaskGroup(of: Bool.self) { group in
        for connection in open { group.addTask { table.close(connection) } }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(told == 1)
    }
  }

  private static func accept(
    _ ledger: inout ConnectionLedger, _ address: ClientAddress = some
  ) throws -> ConnectionLedger.Place {
    let place = ledger.add(address)
    return try #require(place)
  }

  /// Adds connections whose requests are being answered; returns their numbers.
  private static func answering(
    _ ledger: inout ConnectionLedger, _ count: Int, _ address: ClientAddress = some
  ) throws -> [Int] {
    try (0..<count).map { _ in
      let place = try accept(&ledger, address)
      ledger.move(place.number, to: .answering)
      return place.number
    }
  }

  @Test("connections above the limit use the reserve, and then wait, while all are answering")
  func reserve() throws {
    var ledger = ConnectionLedger(.init(connections: 2, reserve: 1))
    let open = try Self.answering(&ledger, 2)
    #expect(!ledger.isFull)
    let reserve = try Self.answering(&ledger, 1)
    #expect(ledger.openCount == 2 && ledger.reserveCount == 1)
    #expect(ledger.isFull)
    ledger.remove(open[0])
    #expect(!ledger.isFull)
    #expect(try !Self.accept(&ledger).isReserve)
    ledger.remove(reserve[0])
    #expect(ledger.reserveCount == 0)
  }

  @Test(
    "in a full server, idle connections give way first, then incomplete headers, then contents",
    arguments: [
      // The phases of four connections, in the order of their last change, and the order in which
      // they give way.
      ([.idle, .idle, .idle, .idle], [0, 1, 2, 3]),
      ([.headers, .idle, .headers, .idle], [1, 3, 0, 2]),
      ([.content, .headers, .idle, .answering], [2, 1, 0]),
      ([.answering, .content, .answering, .content], [1, 3]),
      ([.answering, .answering, .answering, .answering], []),
    ] as [([ConnectionLedger.Phase], [Int])])
  func givingWay(_ phases: [ConnectionLedger.Phase], _ order: [Int]) throws {
    var ledger = ConnectionLedger(.init(connections: phases.count))
    let numbers = try phases.map { _ in try Self.accept(&ledger).number }
    for (number, phase) in zip(numbers, phases) {
      if phase == .headers { ledger.move(number, to: .answering) }
      ledger.move(number, to: phase)
    }
    for index in order {
      #expect(!ledger.isFull)
      let place = try Self.accept(&ledger, Self.other)
      #expect(place.evicted == numbers[index] && !place.isReserve)
      ledger.move(place.number, to: .answering)
      #expect(ledger.openCount == phases.count)
    }
    #expect(ledger.isFull)
    for index in order { ledger.remove(numbers[index]) }
    #expect(ledger.openCount == phases.count && ledger.closingCount == 0)
  }

  @Test("a connection that works again goes to the end of its line")
  func lines() throws {
    var ledger = ConnectionLedger(.init(connections: 3))
    let numbers = try Self.answering(&ledger, 3)
    for number in numbers { ledger.move(number, to: .idle) }
    ledger.move(numbers[0], to: .headers)
    ledger.move(numbers[0], to: .answering)
    ledger.move(numbers[0], to: .idle)
    ledger.move(numbers[1], to: .idle)
    let places = try (0..<3).map { _ in try Self.accept(&ledger).evicted }
    #expect(places == [numbers[1], numbers[2], numbers[0]])
  }

  @Test("a full reserve gives way as well, and the ordinary connections before it")
  func givingWayOfTheReserve() throws {
    var ledger = ConnectionLedger(.init(connections: 1, reserve: 1))
    let open = try Self.answering(&ledger, 1)
    let reserve = try Self.accept(&ledger)
    #expect(reserve.isReserve)
    let probe = try Self.accept(&ledger, Self.other)
    #expect(probe == .init(number: probe.number, isReserve: true, evicted: reserve.number))
    ledger.move(open[0], to: .idle)
    #expect(try Self.accept(&ledger, Self.other).evicted == open[0])
    #expect(ledger.openCount == 1 && ledger.reserveCount == 1)
  }

  @Test("no more connections give way than may be closing, and one that gave way never returns")
  func closing() throws {
    var ledger = ConnectionLedger(.init(connections: 3, closing: 2))
    let numbers = try (0..<3).map { _ in try Self.accept(&ledger).number }
    _ = ledger.add(Self.other)
    #expect(!ledger.isFull)
    _ = ledger.add(Self.other)
    #expect(ledger.isFull)
    ledger.move(numbers[0], to: .idle)
    ledger.move(numbers[1], to: .answering)
    #expect(ledger.isFull)
    ledger.remove(numbers[1])
    #expect(!ledger.isFull)
    #expect(try Self.accept(&ledger, Self.other).evicted == numbers[2])
    ledger.remove(numbers[1])
    #expect(ledger.openCount == 3 && ledger.closingCount == 2)
  }

  @Test("one address is limited to its share, but this machine is not")
  func perAddress() throws {
    var ledger = ConnectionLedger(.init(connections: 100, perAddress: 2))
    let first = try Self.accept(&ledger)
    _ = try Self.accept(&ledger)
    let third = ledger.add(Self.some)
    #expect(third == nil)
    _ = try Self.accept(&ledger, Self.other)
    ledger.remove(first.number)
    _ = try Self.accept(&ledger)
    for _ in 0..<50 { _ = try Self.accept(&ledger, Self.loopback) }
    #expect(ledger.openCount == 53)
  }

  @Test("an IPv6 network counts as one address, and IPv4 within IPv6 as IPv4")
  func addresses() {
    let network: UInt64 = 0x2001_0DB8_0000_0001
    #expect(
      ClientAddress(ipv6Network: network, interface: 1)
        == ClientAddress(ipv6Network: network, interface: 2))
    #expect(
      ClientAddress(ipv6Network: network, interface: 1)
        != ClientAddress(ipv6Network: network + 1, interface: 1))
    #expect(ClientAddress(ipv6Network: 0, interface: 0xFFFF_0A00_0001) == Self.some)
    #expect(!ClientAddress(ipv6Network: 0, interface: 1).isLimited)
    #expect(!ClientAddress(ipv6Network: 0, interface: 0xFFFF_7F00_0001).isLimited)
    #expect(!Self.loopback.isLimited)
    #expect(Self.some.isLimited)
    #expect(ClientAddress(ipv6Network: network, interface: 1).isLimited)
  }

  @Test("a transfer has its grace period, and then the time of its bytes at the lowest rate")
  func pace() {
    let pace = TransferPace(grace: .seconds(60), bytesPerSecond: 1_000)
    #expect(pace.deadline(start: .seconds(5), count: 0) == .seconds(65))
    #expect(pace.deadline(start: .seconds(5), count: 10_000) == .seconds(75))
    #expect(pace.deadline(start: .zero, count: 10_000, slowness: 10) == .seconds(160))
    #expect(TransferPace(bytesPerSecond: 0).deadline(start: .zero, count: 1) == .seconds(61))
  }

  @Test("a client is late after its deadline, and never while it owes nothing")
  func late() {
    let connection = ClientConnection(
      place: .init(number: 0), socket: -1, peer: IPAddress(ipv4: 1), deadline: .seconds(10))
    #expect(!connection.isLate(.seconds(10)))
    #expect(connection.isLate(.seconds(11)))
    connection.expect(by: nil)
    #expect(!connection.isLate(.seconds(1_000_000)))
    connection.expect(by: .seconds(1_000_001))
    #expect(connection.isLate(.seconds(1_000_002)))
  }
}
