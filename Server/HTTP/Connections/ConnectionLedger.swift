/// The decision which connections are accepted; pure.
///
/// Beyond the limit a few more are accepted that serve probes and administration only, so that a
/// full server can still be examined and repaired.
struct ConnectionLedger {
  enum Verdict: Equatable {
    case open
    /// A connection of the reserve.
    case reserve
    /// Its address has as many as it may.
    case refused
  }

  struct Limits: Equatable {
    /// Connections at once.
    var connections: Int
    /// Further ones, for probes and administration.
    var reserve = 0
    /// Of one address; `nil` for no limit.
    var perAddress: Int?
  }

  private let limits: Limits
  private(set) var openCount = 0
  private(set) var reserveCount = 0
  private var countByAddress: [ClientAddress: Int] = [:]

  init(_ limits: Limits) {
    self.limits = limits
  }

  /// Whether the next connection has to wait until another one closes.
  var isFull: Bool { openCount >= limits.connections && reserveCount >= limits.reserve }

  /// Takes a connection, unless it is refused. Ask ``isFull`` first.
  mutating func add(_ address: ClientAddress) -> Verdict {
    if let limit = limits.perAddress, address.isLimited {
      guard countByAddress[address, default: 0] < limit else { return .refused }
    }
    if address.isLimited { countByAddress[address, default: 0] += 1 }
    guard openCount < limits.connections else {
      reserveCount += 1
      return .reserve
    }
    openCount += 1
    return .open
  }

  /// Forgets a connection that was taken.
  mutating func remove(_ address: ClientAddress, wasReserve: Bool) {
    if wasReserve { reserveCount -= 1 } else { openCount -= 1 }
    guard let count = countByAddress[address] else { return }
    countByAddress[address] = count > 1 ? count - 1 : nil
  }
}

/// The client of a connection: an IPv4 address, or the first 64 bits of an IPv6 address. These name
/// a network; one machine chooses the others as it likes.
struct ClientAddress: Hashable, Sendable {
  private let bits: UInt64
  private let isIPv6: Bool

  init(ipv4: UInt32) {
    bits = UInt64(ipv4)
    isIPv6 = false
  }

  init(ipv6Network: UInt64, interface: UInt64) {
    let isLoopback = ipv6Network == 0 && interface == 1
    // ::ffff:0:0/96 holds the IPv4 addresses.
    let isMapped = ipv6Network == 0 && interface >> 32 == 0xFFFF
    bits = isMapped ? interface & 0xFFFF_FFFF : isLoopback ? Self.loopback : ipv6Network
    isIPv6 = !isMapped && !isLoopback
  }

  /// False for this machine: a proxy on it speaks for many clients.
  var isLimited: Bool { isIPv6 || bits >> 24 != Self.loopback >> 24 }

  private static let loopback: UInt64 = 0x7F00_0001
}
