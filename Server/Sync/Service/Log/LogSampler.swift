/// The decision about lines of strangers and of rejected requests; pure and bounded.
///
/// Such a line costs the sender nothing. So each client has an allowance for each kind of line, and
/// all of them together have one. Every omitted line is counted.
struct LogSampler: Sendable {
  enum Verdict: Equatable {
    /// Write the line, with the number of lines of this client and kind omitted before.
    case write(leftOut: Int)
    case leaveOut
  }

  struct Limits: Equatable {
    /// Lines a second of one client and kind, and the number to write at once after a pause.
    var rate = 1.0
    var burst = 20.0
    /// The same for all of them together.
    var totalRate = 200.0
    var totalBurst = 1_000.0
    /// Clients and kinds known at once. Past it, those with a full allowance are forgotten, and
    /// then all.
    var countMax = 4_096
  }

  private struct Key: Hashable {
    var client: String
    var kind: String
  }

  private struct Entry {
    var bucket: TokenBucket
    var leftOut = 0
  }

  private let limits: Limits
  private var entries: [Key: Entry] = [:]
  private var total: TokenBucket
  /// Lines omitted since the last report.
  private var unreported = 0
  /// Lines omitted since the start.
  private(set) var leftOut = 0

  init(_ limits: Limits = Limits()) {
    self.limits = limits
    total = TokenBucket(burst: limits.totalBurst, now: .zero)
  }

  var entryCount: Int { entries.count }

  /// Decides about one line.
  mutating func decide(client: String, kind: String, now: Duration) -> Verdict {
    let key = Key(client: client, kind: kind)
    if entries[key] == nil { makeRoom(now) }
    var entry = entries[key] ?? Entry(bucket: TokenBucket(burst: limits.burst, now: now))
    defer { entries[key] = entry }
    let isWithin =
      entry.bucket.consume(1, rate: limits.rate, burst: limits.burst, now: now) == nil
      && total.consume(1, rate: limits.totalRate, burst: limits.totalBurst, now: now) == nil
    guard isWithin else {
      entry.leftOut += 1
      leftOut += 1
      unreported += 1
      return .leaveOut
    }
    defer { entry.leftOut = 0 }
    return .write(leftOut: entry.leftOut)
  }

  /// Returns the number of lines omitted since the last call.
  mutating func report() -> Int {
    defer { unreported = 0 }
    return unreported
  }

  private mutating func makeRoom(_ now: Duration) {
    guard entries.count >= limits.countMax else { return }
    entries = entries.filter { entry in
      var bucket = entry.value.bucket
      return !bucket.isFull(rate: limits.rate, burst: limits.burst, now: now)
    }
    if entries.count >= limits.countMax { entries = [:] }
  }
}
