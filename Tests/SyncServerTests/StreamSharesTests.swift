import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Shares of event streams", .hangLimit)
struct StreamSharesTests {
  private static func principal(_ name: String) throws -> Principal {
    try #require(Principal("owner:" + name))
  }

  private static func address(_ text: String) throws -> ClientAddress {
    try #require(IPAddress(text.utf8)).client
  }

  /// Opens streams and returns their numbers.
  @discardableResult
  private static func open(
    _ shares: inout StreamShares, _ count: Int, _ principal: Principal,
    _ address: ClientAddress? = nil
  ) throws -> [Int] {
    try (0..<count).map { _ in
      let verdict = shares.begin(principal, address, quota: 1_000)
      guard case .open(let number, nil) = verdict else {
        throw TestSupportError("\(verdict)")
      }
      return number
    }
  }

  @Test("a principal has a quota, and an address has a limit; this machine has none")
  func limits() throws {
    let (ada, eve) = (try Self.principal("ada"), try Self.principal("eve"))
    let (some, near) = (try Self.address("2001:db8::1"), try Self.address("2001:db8::2"))
    var shares = StreamShares(.init(total: 100, perAddress: 2))
    try Self.open(&shares, 1, ada, some)
    try Self.open(&shares, 1, eve, near)
    #expect(shares.begin(eve, some, quota: 1_000) == .addressFull(limit: 2))
    let others = try Self.open(&shares, 3, eve)
    #expect(shares.begin(eve, nil, quota: 4) == .principalFull)
    shares.end(others[0])
    shares.end(others[0])
    #expect(shares.count(of: eve) == 3)
    try Self.open(&shares, 1, eve)
    let local = try Self.address("127.0.0.1")
    try Self.open(&shares, 50, ada, local)
    #expect(shares.count == 55)
  }

  @Test("in a full server, the principal with the most streams gives its newest one up")
  func fairness() throws {
    let (ada, bob, eve) = (
      try Self.principal("ada"), try Self.principal("bob"), try Self.principal("eve")
    )
    var shares = StreamShares(.init(total: 6))
    let hog = try Self.open(&shares, 6, eve)
    #expect(shares.begin(eve, nil, quota: 1_000) == .full)
    #expect(shares.begin(ada, nil, quota: 1_000) == .open(number: 7, evicted: hog[5]))
    #expect(shares.begin(bob, nil, quota: 1_000) == .open(number: 8, evicted: hog[4]))
    #expect(shares.begin(ada, nil, quota: 1_000) == .open(number: 9, evicted: hog[3]))
    #expect(shares.begin(bob, nil, quota: 1_000) == .open(number: 10, evicted: hog[2]))
    // Everybody has a third: nobody takes from another.
    for principal in [ada, bob, eve] {
      #expect(shares.begin(principal, nil, quota: 1_000) == .full)
      #expect(shares.count(of: principal) == 2)
    }
    #expect(shares.count == 6 && shares.numbers.count == 6)
  }

  @Test("while a server has no tokens, addresses share the streams")
  func anonymous() throws {
    let (some, other) = (try Self.address("192.0.2.1"), try Self.address("192.0.2.2"))
    var shares = StreamShares(.init(total: 3))
    let hog = try Self.open(&shares, 3, .anonymous, some)
    #expect(
      shares.begin(.anonymous, other, quota: 1) == .open(number: 4, evicted: hog[2]))
    #expect(shares.begin(.anonymous, other, quota: 1) == .full)
  }
}
