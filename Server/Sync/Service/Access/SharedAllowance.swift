/// An allowance for several accounts together; pure.
///
/// While it lasts, each account takes as much as it wants. When it is used up, each account has an
/// equal share of the rate. Accounts with much use before are in debt then, and wait. Accounts with
/// little use go on.
struct SharedAllowance: Sendable {
  /// Accounts known at once. Past it, those with a full share are forgotten, and then all.
  static let accountsMax = 1_000

  private var common: TokenBucket
  /// The accounts' shares; empty while most of the allowance is there.
  private var shares: [Principal: TokenBucket] = [:]

  /// Creates a full allowance.
  init(burst: Double, now: Duration) { common = TokenBucket(burst: burst, now: now) }

  /// Accounts with a share.
  var accountCount: Int { shares.count }

  /// Consumes the amount for an account. Returns the time to wait otherwise.
  mutating func consume(
    _ amount: Double, of account: Principal, rate: Double, burst: Double, now: Duration
  ) -> Duration? {
    if let wait = wait(of: account, rate: rate, burst: burst, now: now) { return wait }
    force(amount, of: account, rate: rate, burst: burst, now: now)
    return nil
  }

  /// Returns how long an account has to wait until it may take anything; `nil` if it may.
  mutating func wait(
    of account: Principal, rate: Double, burst: Double, now: Duration
  ) -> Duration? {
    if common.wait(rate: rate, burst: burst, now: now) == nil { return nil }
    let parts = Double(max(1, shares.count + (shares[account] == nil ? 1 : 0)))
    return shares[account]?.wait(rate: rate / parts, burst: max(1, burst / parts), now: now)
  }

  /// Consumes the amount for an account, even if nothing is left.
  mutating func force(
    _ amount: Double, of account: Principal, rate: Double, burst: Double, now: Duration
  ) {
    common.force(amount, rate: rate, burst: burst, now: now)
    if common.level > burst / 2 {
      shares = [:]
      return
    }
    if shares[account] == nil { makeRoom(rate: rate, burst: burst, now: now) }
    let parts = Double(shares.count + (shares[account] == nil ? 1 : 0))
    let (rate, burst) = (rate / parts, max(1, burst / parts))
    var share = shares[account] ?? TokenBucket(burst: burst, now: now)
    share.force(amount, rate: rate, burst: burst, now: now)
    shares[account] = share
  }

  /// Returns `true` after such a long time without use that the allowance may be dropped.
  mutating func isFull(rate: Double, burst: Double, now: Duration) -> Bool {
    common.isFull(rate: rate, burst: burst, now: now)
  }

  private mutating func makeRoom(rate: Double, burst: Double, now: Duration) {
    guard shares.count >= Self.accountsMax else { return }
    let parts = Double(shares.count)
    shares = shares.filter { entry in
      var share = entry.value
      return !share.isFull(rate: rate / parts, burst: max(1, burst / parts), now: now)
    }
    // Otherwise each new account would look through all.
    if shares.count > Self.accountsMax / 2 { shares = [:] }
  }
}
