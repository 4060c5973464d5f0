import CFerryPostgres
import Foundation
import Synchronization

/// A server as libpq names it: a name or a socket's directory, an IP address, a port.
struct PostgresAddress: Sendable, Hashable {
  let host: String
  let address: String
  let port: String
}

/// A check whether a server answers at all, if a statement has been silent for long: the statement
/// may only be slow. All connections of a pool share one, and one question at a time is under way.
final class PostgresPulse: Sendable {
  private struct Beat {
    var time: ContinuousClock.Instant
    var isAlive: Bool
  }

  private let target: ConnectionTarget
  private let limit: Duration
  /// Held while a server is asked. Other connections with the same question wait for the same
  /// answer.
  private let beats = Mutex<[PostgresAddress: Beat]>([:])

  /// The time for which an answer counts.
  private static let freshness = Duration.seconds(1)

  /// - Parameter limit: How long a server may take to answer.
  init(_ target: ConnectionTarget, limit: Duration = .seconds(2)) {
    self.target = target
    self.limit = limit
  }

  /// Returns `true` if the server answers. It blocks for ``limit`` at most, and during a check of
  /// others under way.
  func beats(at server: PostgresAddress) -> Bool {
    beats.withLock { beats in
      if let last = beats[server], .now - last.time < Self.freshness { return last.isAlive }
      let isAlive = ask(server)
      beats[server] = Beat(time: .now, isAlive: isAlive)
      return isAlive
    }
  }

  /// Asks the server. Any answer counts, even about too many connections.
  private func ask(_ server: PostgresAddress) -> Bool {
    let deadline = ContinuousClock.now + limit
    let start = target.only(server).withParameters { PQconnectStartParams($0, $1, 1) }
    guard let handle = start else { return true }
    defer { PQfinish(handle) }
    var step = PQstatus(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
    while step == PGRES_POLLING_READING || step == PGRES_POLLING_WRITING {
      let events = step == PGRES_POLLING_READING ? POLLIN : POLLOUT
      var descriptor = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
      let left = max(.zero, deadline - .now)
      if poll(&descriptor, 1, left.wholeMilliseconds) > 0 {
        step = PQconnectPoll(handle)
      } else if ContinuousClock.now >= deadline {
        return false
      }
    }
    return true
  }
}
