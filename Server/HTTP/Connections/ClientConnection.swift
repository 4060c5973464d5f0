import Synchronization

/// One connection, from acceptance to close.
final class ClientConnection: Sendable {
  /// The number in the ledger.
  let number: Int
  let socket: Int32
  let peer: IPAddress
  /// True if it serves probes and administration only.
  let isReserve: Bool
  /// Nanoseconds on the server's clock; `never` while the client owes nothing.
  private let deadline: Atomic<Int64>

  /// The progress of an answer with reserved memory; `nil` if there is none.
  private let stall = Mutex<ReaderStall?>(nil)

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

  /// Records if an answer holds memory from now on.
  func setStall(_ stall: ReaderStall?) { self.stall.withLock { $0 = stall } }

  /// Returns `true` if an answer holds memory, and the client does not read it.
  func isStalled(_ now: Duration) -> Bool {
    stall.withLock { stall in
      guard stall != nil, let count = SocketProgress.acknowledgedBytes(of: socket) else {
        return false
      }
      return stall?.isStalled(count, at: now) ?? false
    }
  }

  private static func nanoseconds(_ time: Duration) -> Int64 {
    let (seconds, attoseconds) = time.components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflow
      ? never : product.addingReportingOverflow(attoseconds / 1_000_000_000).partialValue
  }
}
