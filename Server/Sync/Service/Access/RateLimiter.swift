/// The buckets of all principals, and of addresses that failed; pure and bounded.
struct RateLimiter: Sendable {
  private struct Buckets {
    var requests: TokenBucket
    var bytes: TokenBucket
  }

  private let limits: RateLimits
  private let countMax: Int
  private var principals: [Principal: Buckets] = [:]
  private var addresses: [String: TokenBucket] = [:]
  private var spareChecks = TokenBucket(burst: spareCheckRate, now: .zero)

  /// - Parameter countMax: Principals, and addresses, that are known at once. Past it, those with a
  ///   full allowance are forgotten, and then all.
  init(_ limits: RateLimits, countMax: Int = 10_000) {
    self.limits = limits
    self.countMax = countMax
  }

  var principalCount: Int { principals.count }
  var addressCount: Int { addresses.count }

  private var requestRate: Double { Double(limits.requests) }
  private var requestBurst: Double { Double(max(1, limits.requestBurst)) }
  private var byteRate: Double { Double(limits.bytes) }
  private var byteBurst: Double { byteRate * Double(RateLimits.byteBurstSeconds) }

  /// Counts a request. Returns how long to wait if it is one too many.
  mutating func countRequest(of principal: Principal, now: Duration) -> Duration? {
    guard limits.requests > 0 || limits.bytes > 0 else { return nil }
    var buckets = principals[principal] ?? makeRoom(now)
    defer { principals[principal] = buckets }
    if limits.bytes > 0,
      let wait = buckets.bytes.wait(rate: byteRate, burst: byteBurst, now: now)
    {
      return wait
    }
    guard limits.requests > 0 else { return nil }
    return buckets.requests.take(1, rate: requestRate, burst: requestBurst, now: now)
  }

  /// Counts bytes of an admitted request. Later requests wait for them.
  mutating func count(bytes: Int, of principal: Principal, now: Duration) {
    guard limits.bytes > 0, var buckets = principals[principal] else { return }
    buckets.bytes.force(Double(bytes), rate: byteRate, burst: byteBurst, now: now)
    principals[principal] = buckets
  }

  private mutating func makeRoom(_ now: Duration) -> Buckets {
    if principals.count >= countMax {
      principals = principals.filter { entry in
        var buckets = entry.value
        return !buckets.requests.isFull(rate: requestRate, burst: requestBurst, now: now)
          || !buckets.bytes.isFull(rate: byteRate, burst: byteBurst, now: now)
      }
      if principals.count >= countMax { principals = [:] }
    }
    return Buckets(
      requests: TokenBucket(burst: requestBurst, now: now),
      bytes: TokenBucket(burst: byteBurst, now: now))
  }

  // MARK: Failures

  private var failureRate: Double { Double(limits.failures) / 60 }
  private var failureBurst: Double { Double(max(1, limits.failures)) }

  /// Returns how long an address has to wait before another unknown credential of it is looked up.
  mutating func failureWait(at address: String, now: Duration) -> Duration? {
    guard limits.failures > 0, var bucket = addresses[Self.network(address)] else { return nil }
    return bucket.wait(rate: failureRate, burst: failureBurst, now: now)
  }

  /// JSON Web Tokens checked in a second although their addresses failed too often. A check takes
  /// about 0.1 ms of the processor and needs no call to the store.
  private static let spareCheckRate = 200.0

  /// Returns whether a token is checked although its address failed too often.
  mutating func takeSpareCheck(now: Duration) -> Bool {
    spareChecks.take(1, rate: Self.spareCheckRate, burst: Self.spareCheckRate, now: now) == nil
  }

  /// Counts a credential that was not good.
  mutating func noteFailure(at address: String, now: Duration) {
    guard limits.failures > 0 else { return }
    let network = Self.network(address)
    if addresses[network] == nil, addresses.count >= countMax {
      addresses = addresses.filter { entry in
        var bucket = entry.value
        return !bucket.isFull(rate: failureRate, burst: failureBurst, now: now)
      }
      if addresses.count >= countMax { addresses = [:] }
    }
    var bucket = addresses[network] ?? TokenBucket(burst: failureBurst, now: now)
    bucket.force(1, rate: failureRate, burst: failureBurst, now: now)
    addresses[network] = bucket
  }

  /// Returns an IPv4 address, or the 64 bits of an IPv6 address that one customer usually has.
  private static func network(_ address: String) -> String {
    ListenAddress.network(of: address) ?? address
  }
}
