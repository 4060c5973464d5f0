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
    /// Turned away because there were as many as there may be.
    var refused = 0
    /// Ended because the credential was not good any more.
    var revoked = 0
  }

  /// A listener and its principal.
  struct Entry: Sendable {
    let stream: any HeadListener
    let principal: Principal
    let visitor: Visitor
    let space: SpaceName

    fileprivate var account: Principal { principal.account }
  }

  private struct State {
    var entries: [Int: Entry] = [:]
    var countByAccount: [Principal: Int] = [:]
    var counts = Counts()
    /// Streams that the server ended and that are not closed yet.
    var ended: Set<Int> = []
    var next = 0
  }

  private let limit: Int
  private let state = Mutex(State())

  /// - Parameter limit: Streams at once.
  package init(limit: Int) {
    self.limit = limit
  }

  /// Returns the number of streams of a principal's account, in all spaces.
  package func count(of principal: Principal) -> Int {
    state.withLock { $0.countByAccount[principal.account] ?? 0 }
  }

  var counts: Counts { state.withLock { $0.counts } }

  /// Takes a stream and returns its number, which ``end(_:)`` takes.
  ///
  /// While a server has no tokens, all its listeners are one principal, which has no limit of its
  /// own.
  /// - Parameter quota: Streams of one principal.
  /// - Throws: `streamQuota` if the principal has as many as it may, `unavailable` if the server
  ///   has.
  func begin(_ entry: Entry, quota: Int) throws(Problem) -> Int {
    let taken = state.withLock { state -> Result<Int, Problem> in
      let count = state.countByAccount[entry.account] ?? 0
      guard count < quota || entry.principal == .anonymous else {
        return .failure(.tooManyStreams(of: quota))
      }
      guard state.entries.count < limit else {
        state.counts.refused += 1
        return .failure(.tooManyStreams)
      }
      state.next += 1
      state.entries[state.next] = entry
      state.countByAccount[entry.account] = count + 1
      return .success(state.next)
    }
    return try taken.get()
  }

  /// Forgets a stream. Calling it again changes nothing.
  func end(_ number: Int) {
    state.withLock { state in
      state.ended.remove(number)
      guard let entry = state.entries.removeValue(forKey: number) else { return }
      let count = state.countByAccount[entry.account] ?? 0
      state.countByAccount[entry.account] = count > 1 ? count - 1 : nil
    }
  }

  /// Ends the streams whose listeners may listen no more. If in doubt, a stream goes on.
  /// - Parameter mayListen: Returns `nil` if that cannot be decided now: the other streams are not
  ///   asked about.
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

  fileprivate static let tooManyStreams = Problem(
    .unavailable,
    "the server has reached its limit of event streams; listen again in a moment, and pull "
      + "meanwhile")
}
