import FerryProtocol

/// The allowances of all accounts and spaces, and of addresses with failures; pure and bounded.
///
/// Principals of one account count as one (``Principal/account``).
struct RateLimiter: Sendable {
  private struct Buckets {
    var requests: TokenBucket
    var bytes: TokenBucket
  }

  private struct Shared {
    var requests: SharedAllowance
    var bytes: SharedAllowance
  }

  private let limits: RateLimits
  private let countMax: Int
  private var accounts: [Principal: Buckets] = [:]
  private var spaces: [SpaceName: Shared] = [:]
  private var addresses: [String: TokenBucket] = [:]

  /// - Parameter countMax: Accounts, spaces, and addresses known at once. Past it, those with a
  ///   full allowance are forgotten, and then all.
  init(_ limits: RateLimits, countMax: Int = 10_000) {
    self.limits = limits
    self.countMax = countMax
  }

  var accountCount: Int { accounts.count }
  var spaceCount: Int { spaces.count }
  var addressCount: Int { addresses.count }

  private var requestRate: Double { Double(limits.requests) }
  private var requestBurst: Double { Double(max(1, limits.requestBurst)) }
  private var byteRate: Double { Double(limits.bytes) }
  private var byteBurst: Double { byteRate * Double(RateLimits.byteBurstSeconds) }

  /// Counts a request. If it is one too many, returns the exceeded limit and the time to wait.
  mutating func countRequest(
    of principal: Principal, in space: SpaceName? = nil, now: Duration
  ) -> RateExcess? {
    if let wait = countRequest(ofAccount: principal.account, now: now) {
      return RateExcess(limit: .principal, wait: wait)
    }
    guard let space else { return nil }
    return countRequest(ofAccount: principal.account, in: space, now: now).map {
      RateExcess(limit: .space, wait: $0)
    }
  }

  private mutating func countRequest(ofAccount account: Principal, now: Duration) -> Duration? {
    guard limits.requests > 0 || limits.bytes > 0 else { return nil }
    var buckets = accounts[account] ?? makeRoom(now)
    defer { accounts[account] = buckets }
    if limits.bytes > 0,
      let wait = buckets.bytes.wait(rate: byteRate, burst: byteBurst, now: now)
    {
      return wait
    }
    guard limits.requests > 0 else { return nil }
    return buckets.requests.consume(1, rate: requestRate, burst: requestBurst, now: now)
  }

  /// Counts bytes of an admitted request. Later requests wait for them.
  mutating func count(
    bytes: Int, of principal: Principal, in space: SpaceName? = nil, now: Duration
  ) {
    let account = principal.account
    if limits.bytes > 0, var buckets = accounts[account] {
      buckets.bytes.force(Double(bytes), rate: byteRate, burst: byteBurst, now: now)
      accounts[account] = buckets
    }
    guard limits.spaceBytes > 0, let space else { return }
    let (rate, burst) = (spaceByteRate, spaceByteBurst)
    spaces[space]?.bytes.force(Double(bytes), of: account, rate: rate, burst: burst, now: now)
  }

  private mutating func makeRoom(_ now: Duration) -> Buckets {
    Self.bound(&accounts, to: countMax) { [self] buckets in
      !buckets.requests.isFull(rate: requestRate, burst: requestBurst, now: now)
        || !buckets.bytes.isFull(rate: byteRate, burst: byteBurst, now: now)
    }
    return Buckets(
      requests: TokenBucket(burst: requestBurst, now: now),
      bytes: TokenBucket(burst: byteBurst, now: now))
  }

  /// Forgets unneeded entries, and all if most are needed: otherwise each new entry would look
  /// through all.
  private static func bound<Key, Value>(
    _ table: inout [Key: Value], to countMax: Int, _ isNeeded: (inout Value) -> Bool
  ) {
    guard table.count >= countMax else { return }
    table = table.filter { entry in
      var value = entry.value
      return isNeeded(&value)
    }
    if table.count > countMax / 2 { table = [:] }
  }

  // MARK: Spaces

  private var spaceRate: Double { Double(limits.spaceRequests) }
  private var spaceBurst: Double { Double(max(1, limits.spaceRequestBurst)) }
  private var spaceByteRate: Double { Double(limits.spaceBytes) }
  private var spaceByteBurst: Double { spaceByteRate * Double(RateLimits.byteBurstSeconds) }

  private mutating func countRequest(
    ofAccount account: Principal, in space: SpaceName, now: Duration
  ) -> Duration? {
    guard limits.spaceRequests > 0 || limits.spaceBytes > 0 else { return nil }
    if spaces[space] == nil {
      Self.bound(&spaces, to: countMax) { [self] shared in
        !shared.requests.isFull(rate: spaceRate, burst: spaceBurst, now: now)
          || !shared.bytes.isFull(rate: spaceByteRate, burst: spaceByteBurst, now: now)
      }
      spaces[space] = Shared(
        requests: SharedAllowance(burst: spaceBurst, now: now),
        bytes: SharedAllowance(burst: spaceByteBurst, now: now))
    }
    let (byteRate, byteBurst) = (spaceByteRate, spaceByteBurst)
    if limits.spaceBytes > 0,
      let wait = spaces[space]?.bytes.wait(of: account, rate: byteRate, burst: byteBurst, now: now)
    {
      return wait
    }
    guard limits.spaceRequests > 0 else { return nil }
    let (rate, burst) = (spaceRate, spaceBurst)
    return spaces[space]?.requests.consume(1, of: account, rate: rate, burst: burst, now: now)
  }

  // MARK: Failures

  private var failureRate: Double { Double(limits.failures) / 60 }
  private var failureBurst: Double { Double(max(1, limits.failures)) }

  /// Look-ups of unknown tokens a second, of all addresses together; a few seconds of them at once.
  private static let guessRate = 100.0
  private static let guessBurst = 1_000.0
  private var guesses = TokenBucket(burst: guessBurst, now: .zero)

  /// Returns how long an address has to wait before another unknown credential of it is looked up.
  mutating func failureWait(at address: String, now: Duration) -> Duration? {
    guard limits.failures > 0 else { return nil }
    if let wait = guesses.wait(rate: Self.guessRate, burst: Self.guessBurst, now: now) {
      return wait
    }
    guard var bucket = addresses[Self.network(address)] else { return nil }
    return bucket.wait(rate: failureRate, burst: failureBurst, now: now)
  }

  /// Counts a credential unknown to the store.
  mutating func recordFailure(at address: String, now: Duration) {
    guard limits.failures > 0 else { return }
    guesses.force(1, rate: Self.guessRate, burst: Self.guessBurst, now: now)
    let network = Self.network(address)
    if addresses[network] == nil {
      Self.bound(&addresses, to: countMax) { [self] bucket in
        !bucket.isFull(rate: failureRate, burst: failureBurst, now: now)
      }
    }
    var bucket = addresses[network] ?? TokenBucket(burst: failureBurst, now: now)
    bucket.force(1, rate: failureRate, burst: failureBurst, now: now)
    addresses[network] = bucket
  }

  /// Returns an IPv4 address, or the 64 bits of an IPv6 address usually assigned to one customer.
  private static func network(_ address: String) -> String {
    ListenAddress.network(of: address) ?? address
  }
}

/// The exceeded limit of a request, and the time to wait.
struct RateExcess: Sendable, Equatable {
  enum Limit: Sendable, Equatable {
    /// The limit of the principal's account.
    case principal
    /// The principal's share of the space's limit.
    case space
  }

  let limit: Limit
  let wait: Duration
}
