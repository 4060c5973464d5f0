@preconcurrency import Dispatch
import Synchronization

/// All connections, with the deadlines of their clients.
final class ConnectionTable: Sendable {
  /// Counts of connections turned away or cut off since the start.
  struct Counts: Sendable, Equatable {
    /// Connections of addresses that had as many as they may.
    var refused = 0
    /// Connections whose client was too slow.
    var late = 0
  }

  private struct State {
    var ledger: ConnectionLedger
    var bySocket: [Int32: ClientConnection] = [:]
    var counts = Counts()
    var isTicking = false
  }

  /// The time between two looks at the deadlines.
  private static let period = DispatchTimeInterval.milliseconds(500)
  private static let queue = DispatchQueue(label: "ferry.http.deadlines")

  private let state: Mutex<State>
  private let pace: TransferPace
  private let clock: @Sendable () -> Duration
  private let ticks: Bool

  /// - Parameters:
  ///   - clock: Time since some moment.
  ///   - ticks: Whether a timer looks at the deadlines; a test calls ``cutOffLate()`` itself.
  init(
    _ limits: ConnectionLedger.Limits, pace: TransferPace, ticks: Bool,
    clock: @escaping @Sendable () -> Duration
  ) {
    state = Mutex(State(ledger: ConnectionLedger(limits)))
    self.pace = pace
    self.ticks = ticks
    self.clock = clock
  }

  var isFull: Bool { state.withLock { $0.ledger.isFull } }

  /// Connections that are open, those for probes and administration included.
  var count: Int { state.withLock { $0.ledger.openCount + $0.ledger.reserveCount } }

  var counts: Counts { state.withLock { $0.counts } }

  /// Takes a connection; `nil` when it is refused, and the caller closes it.
  func open(_ socket: Int32, from address: ClientAddress) -> ClientConnection? {
    let (connection, begins) = state.withLock { state -> (ClientConnection?, Bool) in
      let verdict = state.ledger.add(address)
      guard verdict != .refused else {
        state.counts.refused += 1
        return (nil, false)
      }
      let connection = ClientConnection(
        socket: socket, address: address, isReserve: verdict == .reserve,
        deadline: clock() + pace.headers)
      state.bySocket[socket] = connection
      defer { state.isTicking = true }
      return (connection, !state.isTicking)
    }
    if begins, ticks { scheduleTick() }
    return connection
  }

  /// Returns the connection of a socket.
  func connection(of socket: Int32) -> ClientConnection? {
    state.withLock { $0.bySocket[socket] }
  }

  /// Forgets a connection, whose socket is still open. Returns whether the table was full until
  /// then: decided under one lock, since the acceptor of a full table waits for it.
  @discardableResult
  func close(_ connection: ClientConnection) -> Bool {
    state.withLock { state in
      let wasFull = state.ledger.isFull
      guard state.bySocket[connection.socket] === connection else { return wasFull }
      state.bySocket[connection.socket] = nil
      state.ledger.remove(connection.address, wasReserve: connection.isReserve)
      return wasFull
    }
  }

  /// Cuts off all connections whose clients are late.
  func cutOffLate() {
    let now = clock()
    state.withLock { state in
      for connection in state.bySocket.values where connection.isLate(now) {
        connection.expect(by: nil)
        state.counts.late += 1
        // Under the lock, so that the number does not name another socket meanwhile.
        SocketReset.begin(connection.socket)
      }
    }
  }

  private func scheduleTick() {
    Self.queue.asyncAfter(deadline: .now() + Self.period) { [weak self] in self?.tick() }
  }

  private func tick() {
    cutOffLate()
    let goesOn = state.withLock { state in
      state.isTicking = !state.bySocket.isEmpty
      return state.isTicking
    }
    if goesOn { scheduleTick() }
  }
}
