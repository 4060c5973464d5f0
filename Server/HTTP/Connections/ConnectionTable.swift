import CFerryMicroHTTPD
@preconcurrency import Dispatch
import Glibc
import Synchronization

/// All connections, with the deadlines of their clients.
final class ConnectionTable: Sendable {
  /// Counts of connections turned away or cut off since the start.
  struct Counts: Sendable, Equatable {
    /// Connections of addresses at their limit.
    var refused = 0
    /// Connections whose client was too slow.
    var late = 0
    /// Connections without a complete request that gave way to new ones.
    var evicted = 0
  }

  private struct State {
    var ledger: ConnectionLedger
    var bySocket: [Int32: ClientConnection] = [:]
    var byNumber: [Int: ClientConnection] = [:]
    var counts = Counts()
    var isTicking = false
  }

  /// The time between two looks at the deadlines.
  private static let period = DispatchTimeInterval.milliseconds(500)
  private static let queue = DispatchQueue(label: "ferry.http.deadlines")

  /// The most connections that gave way and are perhaps still open.
  let closingMax: Int
  private let state: Mutex<State>
  private let pace: TransferPace
  private let proxies: TrustedProxies
  private let clock: @Sendable () -> Duration
  private let ticks: Bool
  private let memory: MemoryBudget

  /// - Parameters:
  ///   - clock: Time since some moment.
  ///   - ticks: Whether a timer looks at the deadlines; a test calls ``cutOffLate()`` itself.
  ///   - memory: The budget of answers. Stalled readers are cut off while it is scarce.
  init(
    _ limits: ConnectionLedger.Limits, pace: TransferPace, ticks: Bool,
    memory: MemoryBudget = MemoryBudget(limit: 256 << 20),
    proxies: TrustedProxies = TrustedProxies(),
    clock: @escaping @Sendable () -> Duration
  ) {
    state = Mutex(State(ledger: ConnectionLedger(limits)))
    closingMax = limits.closing
    self.pace = pace
    self.proxies = proxies
    self.ticks = ticks
    self.memory = memory
    self.clock = clock
  }

  var isFull: Bool { state.withLock { $0.ledger.isFull } }

  /// Open connections, those for probes and administration included.
  var count: Int { state.withLock { $0.ledger.openCount + $0.ledger.reserveCount } }

  var counts: Counts { state.withLock { $0.counts } }

  /// Adds a connection; `nil` when it is refused, and the caller closes it. If the table is full,
  /// another connection is closed and gives way.
  func open(_ socket: Int32, from peer: IPAddress) -> ClientConnection? {
    // A trusted proxy speaks for many clients.
    let address = proxies.contains(peer) ? nil : peer.client
    let (connection, begins) = state.withLock { state -> (ClientConnection?, Bool) in
      guard let place = state.ledger.add(address) else {
        state.counts.refused += 1
        return (nil, false)
      }
      if let evicted = place.evicted.flatMap({ state.byNumber[$0] }) {
        state.counts.evicted += 1
        evicted.expect(by: nil)
        // Under the lock, so the number does not name another socket meanwhile. No reset: the last
        // answer may still be under way.
        shutdown(evicted.socket, Int32(SHUT_RDWR))
      }
      let connection = ClientConnection(
        place: place, socket: socket, peer: peer, deadline: clock() + pace.headers)
      state.bySocket[socket] = connection
      state.byNumber[place.number] = connection
      defer { state.isTicking = true }
      return (connection, !state.isTicking)
    }
    if begins, ticks { scheduleTick() }
    return connection
  }

  /// Counts a client's request through a trusted proxy as a connection of the client, until
  /// ``release(_:)``.
  func charge(_ client: ClientAddress) -> ConnectionLedger.Share {
    state.withLock { $0.ledger.charge(client) }
  }

  func release(_ client: ClientAddress) {
    state.withLock { $0.ledger.release(client) }
  }

  /// Records the present phase of a connection. Returns `true` if the table was full until then,
  /// and is not any more.
  func move(_ connection: ClientConnection, to phase: ConnectionLedger.Phase) -> Bool {
    state.withLock { state in
      let wasFull = state.ledger.isFull
      state.ledger.move(connection.number, to: phase)
      return wasFull && !state.ledger.isFull
    }
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
      state.byNumber[connection.number] = nil
      state.ledger.remove(connection.number)
      return wasFull
    }
  }

  /// Cuts off all connections whose clients are late.
  func cutOffLate() {
    let (now, isScarce) = (clock(), memory.isScarce)
    state.withLock { state in
      for connection in state.bySocket.values
      where connection.isLate(now) || isScarce && connection.isStalled(now) {
        connection.setStall(nil)
        connection.expect(by: nil)
        state.counts.late += 1
        // Under the lock, so the number does not name another socket meanwhile.
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
