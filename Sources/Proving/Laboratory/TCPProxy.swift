import Foundation
import Synchronization

/// A proxy between clients and one server of 127.0.0.1 that breaks passing traffic on request: for
/// tests and chaos.
///
/// It parses just enough of HTTP/1.1 to assign bytes to requests. Other protocols pass as well,
/// with traps that match everything. It uses one thread for each direction of a connection.
/// Everything is closed when this object is released.
package final class TCPProxy: Sendable {
  /// Which way bytes go.
  package enum Direction: Sendable {
    /// From the client to the server.
    case request
    /// From the server to the client.
    case answer
  }

  /// Where it listens.
  package let port: UInt16
  private let listener: Int32
  private let core: ProxyCore

  /// Creates a proxy for the server on `target`, on `port` or on any free one.
  ///
  /// - Parameter answerBytesMax: About the number of bytes of responses that the system may buffer
  ///   on each side of the proxy. Without it the system buffers megabytes, which arrive although
  ///   the server is gone.
  package init(to target: UInt16, port: UInt16 = 0, answerBytesMax: Int? = nil) throws {
    let core = ProxyCore(target: target, answerBytesMax: answerBytesMax)
    let (listener, bound) = try LoopbackSocket.listen(port: port)
    (self.port, self.listener, self.core) = (bound, listener, core)
    ProxyCore.onThread("proxy-accept") {
      while let client = LoopbackSocket.accept(on: listener) { core.connect(client) }
      close(listener)
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    core.stop()
  }

  /// `http://127.0.0.1:PORT`.
  package var url: String { "http://127.0.0.1:\(port)" }

  /// Sets a trap for bytes from now on. Traps are checked in the order in which they were set.
  ///
  /// - Parameters:
  ///   - request: Matches only exchanges with this text in the request line, such as "POST /v1".
  ///   - bytes: The number of bytes of such exchanges to pass before it springs. The count covers
  ///     several exchanges, since the trap was set or sprang last.
  ///   - skipping: The number of such exchanges to pass untouched before.
  ///   - times: How often it springs, once an exchange at most.
  @discardableResult
  package func trap(
    _ direction: Direction, of request: String = "", after bytes: Int = 0, skipping: Int = 0,
    times: Int = 1, _ action: ProxyTrap.Action
  ) -> ProxyTrap {
    let trap = ProxyTrap(
      ProxyTrap.Pattern(
        direction: direction, request: request, bytes: bytes, skipping: skipping, times: times),
      action)
    core.add(trap)
    return trap
  }

  /// Removes all traps and releases the bytes held by them.
  package func removeTraps() { core.removeTraps() }

  /// Resets new connections from now on, or stops the resets.
  package func refuse(_ isRefusing: Bool = true) { core.refuse(isRefusing) }

  /// Sends new connections to another server.
  package func retarget(to port: UInt16) { core.retarget(to: port) }

  /// Sets the conditions for all bytes from now on, on open connections too.
  package func set(_ conditions: LinkConditions) { core.gate.set(conditions) }

  /// Closes every open connection.
  package func cutAll() { core.cutAll() }

  /// Resets every open connection, to both sides. Returns their number.
  @discardableResult
  package func resetAll() -> Int { core.resetAll() }

  /// Returns the bytes that passed in a direction so far.
  package func byteCount(_ direction: Direction) -> Int { core.byteCount(direction) }

  /// Returns the bytes of responses really read by the processes behind connections: the passed
  /// bytes without those in the system's buffers.
  ///
  /// The number is exact while the readers are stopped and no bytes move any more. It is never too
  /// low (Linux only; elsewhere all passed bytes).
  package func readByteCount() -> Int { core.readByteCount(port) }

  /// Open connections.
  package var connectionCount: Int { core.linkCount }
}

/// The state shared by the proxy's threads; it outlives the proxy until they have ended.
final class ProxyCore: Sendable {
  private struct State {
    var target: UInt16
    var isRefusing = false
    var isStopped = false
    var traps: [ProxyTrap] = []
    var links: [Int: ProxyLink] = [:]
    var linkCount = 0
    var bytes: [TCPProxy.Direction: Int] = [:]
  }

  let gate = LinkGate()
  private let answerBytesMax: Int?
  private let state: Mutex<State>

  init(target: UInt16, answerBytesMax: Int?) {
    self.answerBytesMax = answerBytesMax
    state = Mutex(State(target: target))
  }

  static func onThread(_ name: String, _ body: @escaping @Sendable () -> Void) {
    let thread = Thread(block: body)
    thread.name = name
    thread.stackSize = 256 << 10
    thread.start()
  }

  /// Joins a client with the server.
  func connect(_ client: Int32) {
    let (target, isRefusing) = state.withLock { ($0.target, $0.isRefusing || $0.isStopped) }
    guard !isRefusing, let server = try? LoopbackSocket.connect(to: target) else {
      return LoopbackSocket.reset(client)
    }
    if let answerBytesMax {
      LoopbackSocket.limit(sending: client, to: answerBytesMax)
      LoopbackSocket.limit(receiving: server, to: answerBytesMax)
    }
    let (link, isStopped) = state.withLock { state in
      state.linkCount += 1
      let link = ProxyLink(number: state.linkCount, client: client, server: server, core: self)
      state.links[link.number] = link
      return (link, state.isStopped)
    }
    if isStopped { link.cut() }
    link.start()
  }

  func forget(_ link: ProxyLink) {
    _ = state.withLock { $0.links.removeValue(forKey: link.number) }
  }

  func add(_ trap: ProxyTrap) { state.withLock { $0.traps.append(trap) } }

  /// Returns the first trap to spring within these bytes, and how many of them pass before.
  func sprung(
    _ direction: TCPProxy.Direction, _ exchange: ProxyTrap.Exchange, count: Int
  ) -> (trap: ProxyTrap, offset: Int)? {
    for trap in state.withLock({ $0.traps }) {
      if let offset = trap.consider(direction, exchange, count: count) { return (trap, offset) }
    }
    return nil
  }

  func count(_ bytes: Int, _ direction: TCPProxy.Direction) {
    state.withLock { $0.bytes[direction, default: 0] += bytes }
  }

  func byteCount(_ direction: TCPProxy.Direction) -> Int {
    state.withLock { $0.bytes[direction] ?? 0 }
  }

  var linkCount: Int { state.withLock(\.links.count) }

  func readByteCount(_ port: UInt16) -> Int {
    let links = state.withLock { Array($0.links.values) }
    let queues = SocketQueues(ofPeersOn: port)
    let unread = links.reduce(0) { $0 + $1.unread(queues) }
    // Read last: bytes that have moved meanwhile count as read.
    return byteCount(.answer) - unread
  }

  func refuse(_ isRefusing: Bool) { state.withLock { $0.isRefusing = isRefusing } }

  func retarget(to port: UInt16) { state.withLock { $0.target = port } }

  func removeTraps() {
    let traps = state.withLock { state in
      defer { state.traps = [] }
      return state.traps
    }
    for trap in traps { trap.release() }
  }

  func cutAll() {
    for link in state.withLock({ Array($0.links.values) }) { link.cut() }
  }

  func resetAll() -> Int {
    let links = state.withLock { Array($0.links.values) }
    for link in links { link.reset() }
    return links.count
  }

  func stop() {
    gate.remove()
    let traps = state.withLock { state in
      state.isStopped = true
      return state.traps
    }
    for trap in traps { trap.cut() }
    cutAll()
  }
}
