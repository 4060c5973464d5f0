import Synchronization

/// One connection, from its acceptance to its end.
final class ClientConnection: Sendable {
  /// Its number in the ledger.
  let number: Int
  let socket: Int32
  let peer: IPAddress
  /// Whether it serves probes and administration only.
  let isReserve: Bool
  /// Nanoseconds on the server's clock; `never` while the client owes nothing.
  private let deadline: Atomic<Int64>

  private static let never = Int64.max

  init(place: ConnectionLedger.Place, socket: Int32, peer: IPAddress, deadline: Duration) {
    number = place.number
    self.socket = socket
    self.peer = peer
    isReserve = place.isReserve
    self.deadline = Atomic(Self.nanoseconds(deadline))
  }

  /// Sets the client's deadline; `nil` for none.
  func expect(by time: Duration?) {
    deadline.store(time.map(Self.nanoseconds) ?? Self.never, ordering: .relaxed)
  }

  /// Returns whether the client is late.
  func isLate(_ now: Duration) -> Bool {
    deadline.load(ordering: .relaxed) < Self.nanoseconds(now)
  }

  private static func nanoseconds(_ time: Duration) -> Int64 {
    let (seconds, attoseconds) = time.components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflow
      ? never : product.addingReportingOverflow(attoseconds / 1_000_000_000).partialValue
  }
}
