/// The decision about connections to accept and to close; pure.
///
/// In a full server the oldest connection without a complete request gives way to a new one. Beyond
/// that, a few more are accepted for probes and administration only, so a full server can still be
/// examined and repaired.
struct ConnectionLedger {
  /// The part of a connection's exchange. The first three give way, in this order.
  enum Phase: Int, CaseIterable {
    /// Between two requests.
    case idle
    /// New, or with incomplete headers.
    case headers
    /// The content of the request is incomplete.
    case content
    /// The request is complete.
    case answering

    /// The number of phases whose connections give way.
    static let waitingCount = Phase.answering.rawValue
  }

  /// An accepted connection.
  struct Place: Equatable {
    var number: Int
    /// True if it serves probes and administration only.
    var isReserve = false
    /// The connection that gives way to it: the caller closes it, and removes it then.
    var evicted: Int?
  }

  /// The share of a client in the connections.
  enum Share: Equatable {
    case within
    /// Used up; probes and administration have a little more.
    case reserve
    /// Used up, and no request was counted.
    case none
  }

  struct Limits: Equatable {
    /// Connections at once.
    var connections: Int
    /// Further ones, for probes and administration.
    var reserve = 0
    /// Of one address; `nil` for no limit.
    var perAddress: Int?
    /// Connections that gave way and are not closed yet.
    var closing = 64
  }

  private struct Entry {
    /// `nil` if it does not count for one client.
    var address: ClientAddress?
    var isReserve: Bool
    var phase: Phase
    var gaveWay = false
  }

  private let limits: Limits
  private(set) var openCount = 0
  private(set) var reserveCount = 0
  /// Connections that gave way and are not closed yet.
  private(set) var closingCount = 0
  private var entries: [Int: Entry] = [:]
  private var lines = ConnectionLines(count: 2 * Phase.waitingCount)
  private var countByAddress: [ClientAddress: Int] = [:]
  private var next = 0

  init(_ limits: Limits) {
    self.limits = limits
  }

  /// True if the next connection has to wait until another one closes or waits for its client.
  var isFull: Bool {
    if openCount < limits.connections { return false }
    if closingCount < limits.closing, canEvict(onReserve: false) { return false }
    if reserveCount < limits.reserve { return false }
    return closingCount >= limits.closing || !canEvict(onReserve: true)
  }

  /// Adds a connection; `nil` if the address has reached the limit. Ask ``isFull`` first.
  /// - Parameter address: `nil` for a connection shared by many clients.
  mutating func add(_ address: ClientAddress?) -> Place? {
    let address = address.flatMap { $0.isLimited ? $0 : nil }
    if let address, share(of: address) != .within { return nil }
    let evicted = openCount < limits.connections ? nil : evict(onReserve: false)
    var place = Place(number: next, evicted: evicted)
    if openCount >= limits.connections {
      place.isReserve = true
      if reserveCount >= limits.reserve { place.evicted = evict(onReserve: true) }
    }
    next += 1
    if place.isReserve { reserveCount += 1 } else { openCount += 1 }
    if let address { countByAddress[address, default: 0] += 1 }
    let entry = Entry(address: address, isReserve: place.isReserve, phase: .headers)
    entries[place.number] = entry
    lines.append(place.number, to: Self.line(entry))
    return place
  }

  /// Moves a connection to the end of the line of the new phase.
  mutating func move(_ number: Int, to phase: Phase) {
    guard var entry = entries[number], !entry.gaveWay, entry.phase != phase else { return }
    lines.remove(number)
    entry.phase = phase
    entries[number] = entry
    if phase != .answering { lines.append(number, to: Self.line(entry)) }
  }

  /// Removes a closed connection.
  mutating func remove(_ number: Int) {
    guard let entry = entries.removeValue(forKey: number) else { return }
    if entry.gaveWay {
      closingCount -= 1
    } else {
      lines.remove(number)
      leave(entry)
    }
  }

  // MARK: Clients

  /// Counts a request over a shared connection as a connection of the client, until
  /// ``release(_:)``.
  mutating func charge(_ client: ClientAddress) -> Share {
    guard client.isLimited else { return .within }
    let share = share(of: client)
    if share != .none { countByAddress[client, default: 0] += 1 }
    return share
  }

  /// Ends the counting of a request.
  mutating func release(_ client: ClientAddress) {
    guard let count = countByAddress[client] else { return }
    countByAddress[client] = count > 1 ? count - 1 : nil
  }

  private func share(of client: ClientAddress) -> Share {
    guard let limit = limits.perAddress else { return .within }
    let count = countByAddress[client, default: 0]
    return count < limit ? .within : count < limit + limits.reserve ? .reserve : .none
  }

  // MARK: Giving way

  private func canEvict(onReserve: Bool) -> Bool {
    lines.firstInUse(of: Self.lines(onReserve: onReserve)) != nil
  }

  /// Frees the place of the oldest connection that waits for the client; returns the number.
  private mutating func evict(onReserve: Bool) -> Int? {
    guard closingCount < limits.closing,
      let line = lines.firstInUse(of: Self.lines(onReserve: onReserve)),
      let number = lines.oldest(of: line), let entry = entries[number]
    else { return nil }
    lines.remove(number)
    entries[number]?.gaveWay = true
    closingCount += 1
    leave(entry)
    return number
  }

  private mutating func leave(_ entry: Entry) {
    if entry.isReserve { reserveCount -= 1 } else { openCount -= 1 }
    if let address = entry.address { release(address) }
  }

  /// The lines of ordinary connections come first, then those of the reserve.
  private static func lines(onReserve: Bool) -> Range<Int> {
    let first = onReserve ? Phase.waitingCount : 0
    return first..<first + Phase.waitingCount
  }

  private static func line(_ entry: Entry) -> Int {
    lines(onReserve: entry.isReserve).lowerBound + entry.phase.rawValue
  }
}
