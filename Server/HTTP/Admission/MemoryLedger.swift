/// The rules to share a process's budget of memory; pure.
///
/// Three kinds of use share it. *Transfers* are bodies and answers, which live as long as their
/// clients are slow. *Work* is the memory of a transaction, which ends by itself. *Large work* is
/// above a sixteenth of the budget. Each kind leaves some of the budget to the others:
///
/// | kind | all together | one account |
/// |---|---|---|
/// | transfers above 64 KiB | three eighths, with the small ones | a quarter |
/// | transfers | seven sixteenths | a quarter |
/// | large work | a half | one at a time |
/// | work | all | — |
///
/// So a sixteenth is always there for small work. Large work never depends on slow clients, and
/// small work never waits for both of them.
///
/// Requests for work wait in turns: one of each account after the other. The next one in turn waits
/// until enough memory is free. No later request overtakes it. If it is turned away before, its
/// account keeps its age, and goes before later ones when it comes back. So a large request does
/// not starve.
struct MemoryLedger<Ticket: Hashable> {
  /// The answer to a request for work.
  enum Verdict: Equatable {
    case granted
    /// The caller is in the queue; ``release(_:)`` returns the ticket.
    case waits
    /// As many wait as may.
    case refused
  }

  /// Memory in use.
  struct Grant: Equatable {
    var bytes: Int
    var kind: Kind
    var account: String?
  }

  enum Kind: Equatable {
    case transfer
    case work
    case largeWork
  }

  private struct Waiter {
    let ticket: Ticket
    let grant: Grant
  }

  /// Transfers up to this size have a share of their own.
  static var smallTransfer: Int { 64 << 10 }
  /// Requests for work that may wait together, and those of one account.
  static var waitersMax: Int { 1_024 }
  static var waitersOfAccountMax: Int { 64 }
  /// Accounts with a stored age after they were turned away.
  static var rememberedMax: Int { 1_024 }

  /// In bytes.
  let limit: Int
  private(set) var used = 0
  private(set) var transfers = 0
  private(set) var largeWork = 0
  private var transfersOf: [String: Int] = [:]
  /// Accounts with large work under way.
  private var atLargeWork: Set<String> = []
  /// Waiting requests of each account, and the accounts in their turns; ordinary and large ones.
  private var small = MemoryTurns<Waiter>()
  private var large = MemoryTurns<Waiter>()

  init(limit: Int) { self.limit = max(limit, 16) }

  var transferMax: Int { limit / 16 * 6 }
  var smallTransferMax: Int { limit / 16 * 7 }
  var accountMax: Int { limit / 4 }
  var largeWorkMax: Int { limit / 2 }

  /// Requests for work in the queue.
  var waiting: Int { small.count + large.count }

  // MARK: Transfers

  /// Grants all of `bytes` to a transfer, or none.
  ///
  /// - Parameter total: All bytes of the transfer, with these.
  mutating func admitTransfer(_ bytes: Int, total: Int, account: String?) -> Bool {
    let ceiling = total <= Self.smallTransfer ? smallTransferMax : transferMax
    guard bytes <= limit - used, bytes <= ceiling - transfers else { return false }
    if let account {
      let held = transfersOf[account, default: 0]
      guard bytes <= accountMax - held else { return false }
      transfersOf[account] = held + bytes
    }
    used += bytes
    transfers += bytes
    return true
  }

  mutating func endTransfer(_ bytes: Int, account: String?) -> [Ticket] {
    used -= bytes
    transfers -= bytes
    if let account, let held = transfersOf[account] {
      transfersOf[account] = held > bytes ? held - bytes : nil
    }
    return admitWaiters()
  }

  // MARK: Work

  /// Returns a grant for work of this size. Work above the share of large work gets all of the
  /// share: it runs alone.
  func grant(_ bytes: Int, account: String?) -> Grant {
    let kind: Kind = bytes > limit / 16 ? .largeWork : .work
    return Grant(bytes: min(bytes, largeWorkMax), kind: kind, account: account)
  }

  /// Grants work if it need not wait.
  mutating func admitAtOnce(_ grant: Grant) -> Bool {
    guard !isOvertaking(grant), hasRoom(for: grant) else { return false }
    begin(grant)
    return true
  }

  /// Grants work, or makes it wait in the account's turn.
  mutating func admit(_ grant: Grant, ticket: Ticket) -> Verdict {
    if admitAtOnce(grant) { return .granted }
    let waiter = Waiter(ticket: ticket, grant: grant)
    guard waiting < Self.waitersMax else { return .refused }
    let (account, max) = (grant.account ?? "", Self.waitersOfAccountMax)
    let isAdded =
      grant.kind == .largeWork
      ? large.add(waiter, of: account, max: max) : small.add(waiter, of: account, max: max)
    return isAdded ? .waits : .refused
  }

  /// Ends work. Returns the requests granted now.
  mutating func release(_ grant: Grant) -> [Ticket] {
    used -= grant.bytes
    if grant.kind == .largeWork {
      largeWork -= grant.bytes
      if let account = grant.account { atLargeWork.remove(account) }
    }
    return admitWaiters()
  }

  /// Ends a wait. Returns `true` if the request was still waiting, and the requests granted now.
  ///
  /// - Parameter isTurnedAway: Whether the sender would have waited on. Then its account keeps its
  ///   age for the next request.
  mutating func withdraw(
    _ ticket: Ticket, isTurnedAway: Bool
  ) -> (wasWaiting: Bool, granted: [Ticket]) {
    let remembered = isTurnedAway ? Self.rememberedMax : nil
    let wasWaiting =
      small.remove(remembered: remembered) { $0.ticket == ticket }
      || large.remove(remembered: remembered) { $0.ticket == ticket }
    return (wasWaiting, wasWaiting ? admitWaiters() : [])
  }

  /// Returns `true` if an earlier request waits for memory, and not only for its own account.
  private func isOvertaking(_ grant: Grant) -> Bool {
    grant.kind == .largeWork
      ? large.next(skipping: atLargeWork) != nil : small.next(skipping: []) != nil
  }

  private func hasRoom(for grant: Grant) -> Bool {
    guard grant.bytes <= limit - used else { return false }
    guard grant.kind == .largeWork else { return true }
    if let account = grant.account, atLargeWork.contains(account) { return false }
    return grant.bytes <= largeWorkMax - largeWork
  }

  private mutating func begin(_ grant: Grant) {
    used += grant.bytes
    guard grant.kind == .largeWork else { return }
    largeWork += grant.bytes
    if let account = grant.account { atLargeWork.insert(account) }
  }

  /// Grants waiting requests in their turns, for as long as there is room for the next one.
  private mutating func admitWaiters() -> [Ticket] {
    var granted: [Ticket] = []
    while let next = large.next(skipping: atLargeWork), hasRoom(for: next.grant) {
      large.removeNext(skipping: atLargeWork)
      begin(next.grant)
      granted.append(next.ticket)
    }
    while let next = small.next(skipping: []), hasRoom(for: next.grant) {
      small.removeNext(skipping: [])
      begin(next.grant)
      granted.append(next.ticket)
    }
    return granted
  }
}

/// Waiting requests of accounts that take turns; pure.
///
/// An account that was turned away after a wait keeps its age. When it comes back, it goes before
/// all accounts that came after its first request. So it gets a turn some time, however many others
/// there are: each of them goes before it once at most.
private struct MemoryTurns<Waiter> {
  /// The place of an account.
  private struct Place {
    let account: String
    /// A number, larger for each later place.
    let age: Int
  }

  private var queues: [String: [Waiter]] = [:]
  /// The oldest first.
  private var order: [Place] = []
  private var nextAge = 0
  /// The ages of accounts that were turned away and did not come back.
  private var turnedAway: [String: Int] = [:]
  private(set) var count = 0

  mutating func add(_ waiter: Waiter, of account: String, max: Int) -> Bool {
    if let queue = queues[account] {
      guard queue.count < max else { return false }
    } else {
      let age = turnedAway.removeValue(forKey: account) ?? newAge()
      let place = order.firstIndex { $0.age > age } ?? order.count
      order.insert(Place(account: account, age: age), at: place)
    }
    queues[account, default: []].append(waiter)
    count += 1
    return true
  }

  private mutating func newAge() -> Int {
    nextAge += 1
    return nextAge
  }

  /// Returns the first request of the next account outside of this set.
  func next(skipping accounts: Set<String>) -> Waiter? {
    order.first { !accounts.contains($0.account) }.flatMap { queues[$0.account]?.first }
  }

  /// Removes this request. The account's turn comes again behind all others.
  mutating func removeNext(skipping accounts: Set<String>) {
    guard let place = order.firstIndex(where: { !accounts.contains($0.account) }) else { return }
    let account = order.remove(at: place).account
    queues[account]?.removeFirst()
    count -= 1
    if queues[account]?.isEmpty == true {
      queues[account] = nil
    } else {
      order.append(Place(account: account, age: newAge()))
    }
  }

  /// Removes a request. Returns `true` if it was there.
  ///
  /// - Parameter remembered: Accounts with stored ages, if this account is to be among them; `nil`
  ///   for a request given up by the sender.
  mutating func remove(remembered: Int?, where isWanted: (Waiter) -> Bool) -> Bool {
    for (account, queue) in queues {
      guard let index = queue.firstIndex(where: isWanted) else { continue }
      queues[account]?.remove(at: index)
      count -= 1
      guard queues[account]?.isEmpty == true else { return true }
      queues[account] = nil
      if let place = order.firstIndex(where: { $0.account == account }) {
        let age = order.remove(at: place).age
        if let remembered { remember(account, age, max: remembered) }
      }
      return true
    }
    return false
  }

  /// Stores the age of an account; of too many, only the oldest ones stay.
  private mutating func remember(_ account: String, _ age: Int, max: Int) {
    turnedAway[account] = age
    guard turnedAway.count > max else { return }
    if let youngest = turnedAway.max(by: { $0.value < $1.value })?.key {
      turnedAway[youngest] = nil
    }
  }
}
