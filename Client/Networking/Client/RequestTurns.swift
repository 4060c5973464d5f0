/// Decides which requests run at once: in the order of their arrival, as far as the limits permit. A
/// request for a busy host does not stop those for other hosts. Pure.
struct RequestTurns {
  /// The most requests at once; `nil` for no limit.
  let limit: Int?
  /// The most requests at once for one host; `nil` for no limit.
  let hostLimit: Int?
  private var running: [Int: String] = [:]
  private var counts: [String: Int] = [:]
  private var waiting: [(number: Int, host: String)] = []
  private var last = 0

  init(limit: Int?, hostLimit: Int?) {
    self.limit = limit.map { max(1, $0) }
    self.hostLimit = hostLimit.map { max(1, $0) }
  }

  /// Adds a request. Returns the request's number, and whether it may run now.
  mutating func enter(_ host: String) -> (number: Int, mayRun: Bool) {
    last += 1
    guard allows(host) else {
      waiting.append((last, host))
      return (last, false)
    }
    begin(last, host)
    return (last, true)
  }

  /// Removes an ended request, or one no longer waiting. Returns those that may run now.
  mutating func leave(_ number: Int) -> [Int] {
    if let host = running.removeValue(forKey: number) {
      let rest = (counts[host] ?? 1) - 1
      counts[host] = rest > 0 ? rest : nil
    } else {
      waiting.removeAll { $0.number == number }
    }
    var started: [Int] = []
    var rest: [(number: Int, host: String)] = []
    for next in waiting {
      if allows(next.host) {
        begin(next.number, next.host)
        started.append(next.number)
      } else {
        rest.append(next)
      }
    }
    if !started.isEmpty { waiting = rest }
    return started
  }

  private func allows(_ host: String) -> Bool {
    if let limit, running.count >= limit { return false }
    if let hostLimit, counts[host, default: 0] >= hostLimit { return false }
    return true
  }

  private mutating func begin(_ number: Int, _ host: String) {
    running[number] = host
    counts[host, default: 0] += 1
  }
}
