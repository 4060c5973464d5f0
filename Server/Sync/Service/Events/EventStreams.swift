import FerryHTTPServer
import FerryProtocol
import Synchronization

/// The open streams of events: their number, their principals, and whether their listeners may
/// still listen.
///
/// A listener holds a connection for hours, so listeners alone could take all connections. Their
/// limit is lower than the limit of connections.
package final class EventStreams: Sendable {
  /// Counts of streams since the start.
  struct Counts: Sendable, Equatable {
    /// Ended for principals with fewer streams, because there were as many as there may be.
    var evicted = 0
    /// Turned away because there were as many as there may be.
    var refused = 0
    /// Ended because the credential was not good any more.
    var revoked = 0
  }

  /// A listener and its principal.
  struct Entry: Sendable {
    let stream: HTTPStream
    let principal: Principal
    let visitor: Visitor
    let space: SpaceName

    fileprivate var account: Principal { principal.account }
  }

  private struct State {
    var shares: StreamShares
    var entries: [Int: Entry] = [:]
    var counts = Counts()
    /// Streams ended by the server and not closed yet.
    var ended: Set<Int> = []
  }

  private let state: Mutex<State>

  package convenience init(limit: Int, perAddress: Int? = nil) {
    self.init(StreamShares.Limits(total: limit, perAddress: perAddress))
  }

  init(_ limits: StreamShares.Limits) {
    state = Mutex(State(shares: StreamShares(limits)))
  }

  /// Returns the number of streams of a principal's account, in all spaces.
  package func count(of principal: Principal) -> Int {
    state.withLock { $0.shares.count(of: principal.account) }
  }

  var counts: Counts { state.withLock { $0.counts } }

  /// Adds a stream and returns the number for ``end(_:)``. A stream of a principal with more
  /// streams may end for it.
  ///
  /// - Parameter quota: Streams of one principal.
  /// - Throws: `streamQuota` if the principal or the address is at the limit, `unavailable` if the
  ///   server is.
  func begin(_ entry: Entry, quota: Int) throws(Problem) -> Int {
    let address = IPAddress(entry.visitor.address.utf8)?.client
    let (result, evicted) = state.withLock { state -> (Result<Int, Problem>, Entry?) in
      switch state.shares.begin(entry.account, address, quota: quota) {
      case .open(let number, let evicted):
        state.entries[number] = entry
        let loser = evicted.flatMap { state.entries.removeValue(forKey: $0) }
        if loser != nil { state.counts.evicted += 1 }
        return (.success(number), loser)
      case .principalFull: return (.failure(.tooManyStreams(of: quota)), nil)
      case .addressFull(let limit): return (.failure(.tooManyStreams(ofAddress: limit)), nil)
      case .full:
        state.counts.refused += 1
        return (.failure(.tooManyStreams), nil)
      }
    }
    evicted?.stream.finish()
    return try result.get()
  }

  /// Forgets a stream. Calling it again changes nothing.
  func end(_ number: Int) {
    state.withLock { state in
      state.ended.remove(number)
      state.entries[number] = nil
      state.shares.end(number)
    }
  }

  /// Ends the streams of listeners without permission. If in doubt, a stream goes on.
  /// - Parameter mayListen: Returns `nil` if there is no decision now: the other streams are not
  ///   checked.
  func end(unless mayListen: (Entry) async -> Bool?) async {
    for number in state.withLock({ $0.entries.keys.sorted() }) {
      guard let entry = state.withLock({ $0.entries[number] }) else { continue }
      guard let may = await mayListen(entry) else { return }
      if may { continue }
      let isFirst = state.withLock { state in
        guard state.ended.insert(number).inserted else { return false }
        state.counts.revoked += 1
        return true
      }
      if isFirst { entry.stream.finish() }
    }
  }
}

extension Problem {
  fileprivate static func tooManyStreams(of quota: Int) -> Problem {
    Problem(
      .streamQuota,
      "you have \(quota) event streams open at this server, the limit of one user. Close some")
  }

  fileprivate static func tooManyStreams(ofAddress limit: Int) -> Problem {
    Problem(
      .streamQuota,
      "your address has \(limit) event streams open at this server, the limit of one address. "
        + "Close some")
  }

  fileprivate static let tooManyStreams = Problem(
    .unavailable,
    "the server has reached its limit of event streams; listen again in a moment, and pull "
      + "meanwhile")
}
