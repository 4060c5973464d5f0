import FerryHTTPServer
import FerryProtocol

/// The decision which streams of events are open; pure.
///
/// A principal and an address have a limit each. In a full server, the principal with the most
/// streams gives one up for a principal with fewer. So no principal takes all streams from the
/// others.
struct StreamShares {
  enum Verdict: Equatable {
    /// The stream is open. A stream of another principal gives way and is to be ended.
    case open(number: Int, evicted: Int?)
    /// The principal has as many as it may.
    case principalFull
    /// The address has as many as it may.
    case addressFull(limit: Int)
    /// The server has as many as it may, and no principal has more than this one.
    case full
  }

  struct Limits: Equatable {
    /// Streams at once.
    var total: Int
    /// Of one address; `nil` for no limit.
    var perAddress: Int?
  }

  /// The holder of a share: while a server has no tokens, all principals are one.
  private enum Party: Hashable {
    case principal(Principal)
    case address(ClientAddress)
    case unknown
  }

  private struct Stream {
    var principal: Principal
    var address: ClientAddress?
    var party: Party
  }

  private let limits: Limits
  private var streams: [Int: Stream] = [:]
  private var numbersByParty: [Party: Set<Int>] = [:]
  private var countByPrincipal: [Principal: Int] = [:]
  private var countByAddress: [ClientAddress: Int] = [:]
  private var next = 0

  init(_ limits: Limits) {
    self.limits = limits
  }

  var count: Int { streams.count }

  /// The numbers of all streams, the oldest first.
  var numbers: [Int] { streams.keys.sorted() }

  /// Returns the number of streams of one principal.
  func count(of principal: Principal) -> Int { countByPrincipal[principal] ?? 0 }

  /// Opens a stream, if there is room for it.
  ///
  /// While a server has no tokens, all listeners are one principal, without a limit.
  /// - Parameters:
  ///   - address: The address of the listener; `nil` if unknown. This machine's addresses have no
  ///     limit.
  ///   - quota: Streams of one principal.
  mutating func begin(_ principal: Principal, _ address: ClientAddress?, quota: Int) -> Verdict {
    let isAnonymous = principal == .anonymous
    guard isAnonymous || count(of: principal) < quota else { return .principalFull }
    let address = address.flatMap { $0.isLimited ? $0 : nil }
    if let address, let limit = limits.perAddress, countByAddress[address, default: 0] >= limit {
      return .addressFull(limit: limit)
    }
    let party: Party =
      !isAnonymous ? .principal(principal) : address.map { .address($0) } ?? .unknown
    var evicted: Int?
    if streams.count >= limits.total {
      evicted = surplus(beside: party)
      guard let evicted else { return .full }
      end(evicted)
    }
    next += 1
    streams[next] = Stream(principal: principal, address: address, party: party)
    numbersByParty[party, default: []].insert(next)
    countByPrincipal[principal, default: 0] += 1
    if let address { countByAddress[address, default: 0] += 1 }
    return .open(number: next, evicted: evicted)
  }

  /// Removes a stream. Calling it again changes nothing.
  mutating func end(_ number: Int) {
    guard let stream = streams.removeValue(forKey: number) else { return }
    numbersByParty[stream.party]?.remove(number)
    if numbersByParty[stream.party]?.isEmpty == true { numbersByParty[stream.party] = nil }
    Self.decrement(&countByPrincipal, stream.principal)
    if let address = stream.address { Self.decrement(&countByAddress, address) }
  }

  /// Returns the newest stream of the party with the most streams, if the party has more than
  /// `other` will have.
  private func surplus(beside other: Party) -> Int? {
    let own = numbersByParty[other]?.count ?? 0
    let most = numbersByParty.values.max { one, other in
      // Of two with as many, the newer one gives way: no order of hashes decides.
      (one.count, one.max() ?? 0) < (other.count, other.max() ?? 0)
    }
    guard let most, most.count > own + 1 else { return nil }
    return most.max()
  }

  private static func decrement<Key>(_ counts: inout [Key: Int], _ key: Key) {
    guard let count = counts[key] else { return }
    counts[key] = count > 1 ? count - 1 : nil
  }
}
