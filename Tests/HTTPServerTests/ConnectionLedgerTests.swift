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
      let open = try (1...4).map { try #require(table.open(Int32($0), from: Self.loopback)) }
      #expect(table.isFull)
      let told = await withTaskGroup(of: Bool.self) { group in
        for connection in open { group.addTask { table.close(connection) } }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(told == 1)
    }
  }

  @Test("connections above the limit use the reserve, and then are refused")
  func reserve() {
    var ledger = ConnectionLedger(.init(connections: 2, reserve: 1))
    #expect(ledger.add(Self.some) == .open)
    #expect(ledger.add(Self.some) == .open)
    #expect(!ledger.isFull)
    #expect(ledger.add(Self.some) == .reserve)
    #expect(ledger.isFull)
    ledger.remove(Self.some, wasReserve: false)
    #expect(!ledger.isFull)
    #expect(ledger.add(Self.some) == .open)
    ledger.remove(Self.some, wasReserve: true)
    #expect(ledger.add(Self.some) == .reserve)
  }

  @Test("one address is limited to its share, but this machine is not")
  func perAddress() {
    var ledger = ConnectionLedger(.init(connections: 100, perAddress: 2))
    #expect(ledger.add(Self.some) == .open)
    #expect(ledger.add(Self.some) == .open)
    #expect(ledger.add(Self.some) == .refused)
    #expect(ledger.add(Self.other) == .open)
    ledger.remove(Self.some, wasReserve: false)
    #expect(ledger.add(Self.some) == .open)
    for _ in 0..<50 { #expect(ledger.add(Self.loopback) == .open) }
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
      socket: -1, address: Self.some, isReserve: false, deadline: .seconds(10))
    #expect(!connection.isLate(.seconds(10)))
    #expect(connection.isLate(.seconds(11)))
    connection.expect(by: nil)
    #expect(!connection.isLate(.seconds(1_000_000)))
    connection.expect(by: .seconds(1_000_001))
    #expect(connection.isLate(.seconds(1_000_002)))
  }
}
