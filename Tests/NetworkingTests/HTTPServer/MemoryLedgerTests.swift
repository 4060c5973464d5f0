import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("The shares of the memory", .hangLimit)
struct MemoryLedgerTests {
  /// In MiB: transfers get 96, small ones 112, one account 64; large work gets 128.
  var ledger = MemoryLedger<String>(limit: 256 << 20)

  static func mebibytes(_ count: Int) -> Int { count << 20 }

  func grant(_ count: Int, _ account: String?) -> MemoryLedger<String>.Grant {
    ledger.grant(count << 20, account: account)
  }

  mutating func transfer(_ count: Int, _ account: String?) -> Bool {
    ledger.admitTransfer(count << 20, total: count << 20, account: account)
  }

  @Test("an account has a quarter for transfers, and all accounts have less than a half")
  mutating func transfers() {
    #expect(transfer(60, "mallory") == true)
    #expect(transfer(5, "mallory") == false)
    #expect(transfer(4, "mallory") == true)
    #expect(transfer(32, "alice") == true)
    #expect(transfer(1, "bob") == false)
    // Small transfers have a little more, and even all of these leave room for work.
    var small = 0
    while ledger.admitTransfer(64 << 10, total: 64 << 10, account: nil) { small += 1 }
    #expect(small == 16 * 16)
    #expect(ledger.admitAtOnce(grant(128, "carol")) == true)
    #expect(ledger.admitAtOnce(grant(16, "dave")) == true)
    #expect(ledger.used == 256 << 20)
  }

  @Test("work that is larger than its share gets all of it, and is applied some time")
  mutating func clamp() {
    let whole = grant(10_000, "alice")
    #expect(whole.bytes == 128 << 20)
    #expect(ledger.admit(whole, ticket: "a") == .granted)
    #expect(ledger.admit(grant(10_000, "bob"), ticket: "b") == .waits)
    #expect(ledger.release(whole) == ["b"])
  }

  @Test("small work does not wait for large work")
  mutating func smallWork() {
    #expect(ledger.admit(grant(128, "mallory"), ticket: "a") == .granted)
    #expect(ledger.admit(grant(128, "eve"), ticket: "b") == .waits)
    for number in 0..<8 {
      #expect(ledger.admit(grant(16, "alice"), ticket: "\(number)") == .granted)
    }
    #expect(ledger.admit(grant(16, "alice"), ticket: "9") == .waits)
    #expect(ledger.waiting == 2)
    #expect(ledger.release(grant(16, "alice")) == ["9"])
  }

  @Test("nothing overtakes a large request that waits")
  mutating func noStarvation() {
    let (first, second) = (grant(40, "a"), grant(40, "b"))
    #expect(ledger.admit(first, ticket: "1") == .granted)
    #expect(ledger.admit(second, ticket: "2") == .granted)
    #expect(ledger.admit(grant(128, "honest"), ticket: "large") == .waits)
    // It would fit, and comes later.
    #expect(ledger.admitAtOnce(grant(40, "c")) == false)
    #expect(ledger.admit(grant(40, "c"), ticket: "3") == .waits)
    #expect(ledger.release(first) == [])
    #expect(ledger.release(second) == ["large"])
    #expect(ledger.release(grant(128, "honest")) == ["3"])
    #expect(ledger.release(grant(40, "c")) == [])
    #expect(ledger.used == 0)
  }

  @Test("accounts take turns, whatever one of them asks for")
  mutating func turns() {
    let whole = grant(128, "mallory")
    #expect(ledger.admit(whole, ticket: "m0") == .granted)
    for number in 1...3 {
      #expect(ledger.admit(grant(128, "mallory"), ticket: "m\(number)") == .waits)
    }
    #expect(ledger.admit(grant(128, "alice"), ticket: "a1") == .waits)
    #expect(ledger.admit(grant(128, "alice"), ticket: "a2") == .waits)
    var order: [String] = []
    var account = "mallory"
    while true {
      let granted = ledger.release(grant(128, account))
      guard let next = granted.first else { break }
      #expect(granted.count == 1)
      order.append(next)
      account = next.hasPrefix("m") ? "mallory" : "alice"
    }
    #expect(order == ["m1", "a1", "m2", "a2", "m3"])
  }

  @Test("an account has one large work under way, and does not hold up others meanwhile")
  mutating func oneEach() {
    #expect(ledger.admit(grant(40, "mallory"), ticket: "m0") == .granted)
    #expect(ledger.admit(grant(40, "mallory"), ticket: "m1") == .waits)
    #expect(ledger.admit(grant(40, "alice"), ticket: "a") == .granted)
    #expect(ledger.withdraw("m1", isTurnedAway: false) == (true, []))
    #expect(ledger.withdraw("m1", isTurnedAway: false) == (false, []))
  }

  @Test(
    "an account that was turned away goes before later ones when it comes back",
    arguments: [(isTurnedAway: true, order: ["honest", "b", "c"]), (false, ["b", "c", "honest"])])
  mutating func ages(isTurnedAway: Bool, order: [String]) {
    #expect(ledger.admit(grant(128, "a"), ticket: "a") == .granted)
    #expect(ledger.admit(grant(128, "honest"), ticket: "first") == .waits)
    #expect(ledger.admit(grant(128, "b"), ticket: "b") == .waits)
    #expect(ledger.withdraw("first", isTurnedAway: isTurnedAway).wasWaiting)
    #expect(ledger.admit(grant(128, "c"), ticket: "c") == .waits)
    #expect(ledger.admit(grant(128, "honest"), ticket: "honest") == .waits)
    var granted: [String] = []
    var last = "a"
    while let next = ledger.release(grant(128, last)).first {
      granted.append(next)
      last = next
    }
    #expect(granted == order)
  }

  @Test("a large request gets its turn, though it is turned away each time, among many others")
  mutating func persistence() {
    #expect(ledger.admit(grant(128, "m0"), ticket: "m0") == .granted)
    for number in 1...20 {
      #expect(ledger.admit(grant(128, "m\(number)"), ticket: "m\(number)") == .waits)
    }
    #expect(ledger.admit(grant(128, "honest"), ticket: "honest") == .waits)
    var (running, rounds) = ("m0", 0)
    while running != "honest", rounds < 100 {
      rounds += 1
      // All are turned away, and all come back: the honest one last.
      for ticket in (0...20).map({ "m\($0)" }) + ["honest"] where ticket != running {
        _ = ledger.withdraw(ticket, isTurnedAway: true)
      }
      for ticket in (0...20).map({ "m\($0)" }) + ["honest"] where ticket != running {
        #expect(ledger.admit(grant(128, ticket), ticket: ticket) == .waits)
      }
      // The ended one comes back with another packet.
      running = ledger.release(grant(128, running)).first ?? ""
    }
    #expect(rounds == 21)
  }

  @Test("a turn that was reached counts as a new request afterwards")
  mutating func agesEnd() {
    #expect(ledger.admit(grant(128, "a"), ticket: "a") == .granted)
    #expect(ledger.admit(grant(128, "mallory"), ticket: "m1") == .waits)
    #expect(ledger.withdraw("m1", isTurnedAway: true) == (true, []))
    #expect(ledger.admit(grant(128, "mallory"), ticket: "m2") == .waits)
    #expect(ledger.release(grant(128, "a")) == ["m2"])
    #expect(ledger.admit(grant(128, "b"), ticket: "b") == .waits)
    #expect(ledger.admit(grant(128, "mallory"), ticket: "m3") == .waits)
    #expect(ledger.release(grant(128, "mallory")) == ["b"])
  }

  @Test("the requests that wait are bounded, in all and of one account")
  mutating func bounds() {
    #expect(ledger.admit(grant(128, "x"), ticket: "x") == .granted)
    let max = MemoryLedger<String>.waitersOfAccountMax
    for number in 0..<max {
      #expect(ledger.admit(grant(128, "mallory"), ticket: "m\(number)") == .waits)
    }
    #expect(ledger.admit(grant(128, "mallory"), ticket: "more") == .refused)
    var account = 0
    while ledger.waiting < MemoryLedger<String>.waitersMax {
      #expect(ledger.admit(grant(128, "\(account)"), ticket: "t\(account)") == .waits)
      account += 1
    }
    #expect(ledger.admit(grant(128, "late"), ticket: "late") == .refused)
  }

  @Test("work that waits is granted when memory is released, and gives up when it is cancelled")
  func budget() async throws {
    let budget = MemoryBudget(limit: 64 << 20, patience: .seconds(3_600))
    var first = budget.grantAtOnce(32 << 20, account: "a")
    #expect(first != nil)
    #expect(budget.grantAtOnce(32 << 20, account: "b") == nil)
    let second = Task { await budget.grant(32 << 20, account: "b") != nil }
    try await eventually("the second") { budget.counts.waiting > 0 }
    let third = Task { await budget.grant(32 << 20, account: "c") != nil }
    try await eventually("the third") { budget.counts.waiting > 1 }
    third.cancel()
    #expect(await third.value == false)
    #expect(budget.counts.refused == 1)
    withExtendedLifetime(first) {}
    first = nil
    #expect(await second.value)
    #expect(budget.used == 0)
  }

  @Test("work that waits for too long gets no memory")
  func patience() async {
    let budget = MemoryBudget(limit: 64 << 20, patience: .zero)
    let first = budget.grantAtOnce(32 << 20, account: "a")
    #expect(await budget.grant(32 << 20, account: "b") == nil)
    withExtendedLifetime(first) {}
  }
}
