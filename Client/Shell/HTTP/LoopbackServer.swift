import FerryPlatform
import Foundation
import Synchronization

/// Answers the requests of a ``LoopbackServer``.
protocol LoopbackHandler: Sendable {
  /// Decides about a head before the body is read.
  func admit(_ head: RequestHead) -> Admission
  /// Answers an admitted request.
  func respond(to head: RequestHead, _ body: [UInt8]) async -> ShellResponse
  /// Records the end of the connection with a channel's lines.
  func ended(_ channel: LineChannel)
}

/// The decision about a request by the head.
enum Admission: Sendable {
  /// Reads a body of the declared length, and answers.
  case accepted
  /// Answers at once, and closes the connection.
  case refused(status: Int)
}

/// A small HTTP server for one browser of this machine, on 127.0.0.1 only. Each connection has a
/// thread.
final class LoopbackServer: Sendable {
  /// Limits of connections.
  struct Limits: Sendable {
    /// The most connections. A further one replaces the oldest one without an admitted request.
    var connections = 64
    /// The longest time for a head, and of silence before a first request.
    var headTime = Duration.seconds(10)
    /// The longest time for a body.
    var bodyTime = Duration.seconds(30)
    /// The longest silence between two requests.
    var idleTime = Duration.seconds(120)
    /// The interval between empty lines of a channel.
    var beatTime = Duration.seconds(15)
  }

  /// The port.
  let port: UInt16
  private let wake: WakePipe
  private let handler: any LoopbackHandler
  private let limits: Limits
  private let state = Mutex(State())

  private struct State {
    /// The listening socket; `nil` after the end.
    var listener: Int32?
    var isStopped = false
    var next = 0
    var open: [Int: LoopbackConnection] = [:]
  }

  /// Listens.
  ///
  /// - Parameter makeHandler: gets the port.
  init(
    port: UInt16, limits: Limits = Limits(), makeHandler: (UInt16) -> any LoopbackHandler
  ) throws(ShellError) {
    guard let wake = WakePipe() else {
      throw .cannotListen(port, "the process has too many open files")
    }
    self.wake = wake
    let (listener, bound) = try ShellSocket.open(port: port)
    self.port = bound
    state.withLock { $0.listener = listener }
    handler = makeHandler(self.port)
    self.limits = limits
  }

  /// Begins to accept connections.
  func start() {
    Self.thread("ferry-shell") { [self] in
      while let listener = state.withLock({ $0.listener }) {
        serve(listener)
        replaceListener()
      }
    }
  }

  /// The failures in a row before a listening socket counts as ended.
  private static let failuresMax = 16

  /// Accepts connections until the server stops, or the system has ended the socket. iOS does so to
  /// a suspended app.
  private func serve(_ listener: Int32) {
    var failures = 0
    while failures < Self.failuresMax, !state.withLock({ $0.isStopped }) {
      switch wake.wait(beside: listener, reads: true, limit: -1) {
      case .woken, .timeout: continue
      case .gone: return
      case .readable: break
      }
      switch ShellSocket.next(listener) {
      case .connection(let descriptor):
        failures = 0
        acceptConnection(descriptor)
      case .none: failures += 1
      case .dead: return
      }
    }
  }

  /// Closes the listening socket, and listens again on the same port unless the server stops.
  private func replaceListener() {
    // Under the lock, so `stop` never shuts down a reused number.
    let isStopped = state.withLock { state in
      if let listener = state.listener { Platform.closeDescriptor(listener) }
      state.listener = state.isStopped ? nil : try? ShellSocket.open(port: port).descriptor
      return state.isStopped
    }
    if !isStopped { usleep(20_000) }
  }

  /// Ends all connections.
  func stop() {
    let open = state.withLock { state -> [LoopbackConnection]? in
      if state.isStopped { return nil }
      state.isStopped = true
      // Linux refuses connections from now on; elsewhere the thread closes the socket soon.
      if let listener = state.listener { shutdown(listener, Int32(SHUT_RDWR)) }
      return Array(state.open.values)
    }
    guard let open else { return }
    wake.wake()
    for connection in open { connection.cut() }
  }

  private func acceptConnection(_ descriptor: Int32) {
    guard let connection = LoopbackConnection(descriptor, handler, limits) else {
      return Platform.closeDescriptor(descriptor)
    }
    let (number, evicted) = state.withLock { state -> (Int?, LoopbackConnection?) in
      if state.isStopped { return (nil, nil) }
      var evicted: LoopbackConnection?
      if state.open.count >= limits.connections {
        let oldest = state.open.filter { !$0.value.isAdmitted }.keys.min()
        guard let oldest else { return (nil, nil) }
        evicted = state.open.removeValue(forKey: oldest)
      }
      state.next += 1
      state.open[state.next] = connection
      return (state.next, evicted)
    }
    evicted?.cut()
    guard let number else { return connection.close() }
    Self.thread("ferry-page") { [self] in
      connection.run()
      _ = state.withLock { $0.open.removeValue(forKey: number) }
      connection.close()
    }
  }

  private static func thread(_ name: String, _ body: @escaping @Sendable () -> Void) {
    Thread.start(named: name, stackSize: 512 << 10, body)
  }
}
