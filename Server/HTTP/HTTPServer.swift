import CFerryMicroHTTPD
import Foundation
import Synchronization

/// An HTTP/1.1 server over libmicrohttpd.
///
/// libmicrohttpd's threads read requests. A separate task answers each whole request while its
/// connection is suspended, so handlers may await as long as they like.
package final class HTTPServer: Sendable {
  /// Bytes of each connection for request line and headers (64 bytes of bookkeeping a header
  /// included) and then for the answer's headers. A longer request line is answered 414, longer
  /// headers 431. It is also the size of the pieces of content read and of live bodies written.
  package static let headerMemory = 24 << 10

  private enum Lifecycle {
    case running
    case stopping([CheckedContinuation<Void, Never>])
    case stopped
  }

  private struct Daemon: @unchecked Sendable {
    // SAFETY: libmicrohttpd's functions on a daemon may be called from any thread; `lifecycle`
    // makes sure that it is stopped once. The options do not change after the start.
    let pointer: OpaquePointer
    let options: UnsafeMutablePointer<ferry_mhd_options>
  }

  /// The port for new connections.
  package let port: UInt16

  private let core: ServerCore
  private let daemon: Daemon
  private let lifecycle = Mutex(Lifecycle.running)

  /// Starts accepting. Throws `HTTPServerError`.
  package init(
    configuration: Configuration, handler: @escaping HTTPHandler
  ) throws(HTTPServerError) {
    let listener = try ListeningSocket(address: configuration.address, port: configuration.port)
    let connections = ConnectionTable(
      ConnectionLedger.Limits(
        connections: configuration.connectionLimit, reserve: configuration.connectionReserve,
        perAddress: configuration.addressLimit),
      pace: configuration.pace, ticks: configuration.cutsOffLate, memory: configuration.memory,
      proxies: configuration.proxies, clock: configuration.clock)
    let acceptor = Acceptor(listener: listener, table: connections)
    let core = ServerCore(
      configuration: configuration, connections: connections, acceptor: acceptor,
      handler: handler)
    guard let daemon = Self.startDaemon(core) else {
      close(listener.descriptor)
      throw .daemon
    }
    self.port = listener.port
    self.core = core
    self.daemon = daemon
    acceptor.start { socket, peer in
      peer.withPointer { MHD_add_connection(daemon.pointer, socket, $0, $1) } == .YES
    }
  }

  deinit {
    guard case .running = lifecycle.withLock({ $0 }) else { return }
    core.acceptor.stop()
    stopDaemon()
  }

  /// The number of open connections, and counts of the others.
  package var load: Load {
    let counts = core.connections.counts
    return Load(
      connections: core.connections.count, refused: counts.refused, late: counts.late,
      evicted: counts.evicted, memory: core.configuration.memory.counts)
  }

  /// Answers that wait for the turns of their users.
  var waitingAnswers: Int { core.answerTurns.waitingCount }

  /// Cuts off all late clients. By default a timer calls it; the configuration can switch the timer
  /// off.
  package func cutOffLate() { core.connections.cutOffLate() }

  /// Stops the server. It accepts nothing more, ends live bodies, and lets requests in progress
  /// finish for up to `grace`. Then it cancels their handlers and closes all connections. Returns
  /// when all is closed. Calling it again waits for the first call.
  package func stop(grace: Duration) async {
    let isFirst = lifecycle.withLock { lifecycle in
      guard case .running = lifecycle else { return false }
      lifecycle = .stopping([])
      return true
    }
    guard isFirst else { return await waitUntilStopped() }
    core.drain()
    await Self.onThread { self.core.acceptor.stop() }
    let timer = Task { [core] in
      try? await Task.sleep(for: grace)
      core.registry.stopWaiting()
    }
    await core.registry.waitUntilEmpty()
    timer.cancel()
    await Self.onThread { self.stopDaemon() }
    let waiters = lifecycle.withLock { lifecycle in
      defer { lifecycle = .stopped }
      if case .stopping(let waiters) = lifecycle { return waiters }
      return []
    }
    for waiter in waiters { waiter.resume() }
  }

  private func waitUntilStopped() async {
    await withCheckedContinuation { continuation in
      let isStopped = lifecycle.withLock { lifecycle in
        guard case .stopping(let waiters) = lifecycle else { return true }
        lifecycle = .stopping(waiters + [continuation])
        return false
      }
      if isStopped { continuation.resume() }
    }
  }

  private static func startDaemon(_ core: ServerCore) -> Daemon? {
    let configuration = core.configuration
    let context = Unmanaged.passRetained(core)
    let threads = max(configuration.threads, 1)
    var options = ferry_mhd_options()
    options.threads = UInt32(threads)
    options.connection_memory = headerMemory
    // The acceptor holds the limit; each thread's share must not be the tighter one.
    options.connections = UInt32(
      clamping: (configuration.connectionLimit + configuration.connectionReserve
        + core.connections.closingMax) * threads)
    options.idle_seconds = UInt32(clamping: max(configuration.idleTimeout.components.seconds, 1))
    options.context = context.toOpaque()
    options.access = DaemonCallbacks.access
    options.request_line = DaemonCallbacks.requestLine
    options.completed = DaemonCallbacks.completed
    options.connection = DaemonCallbacks.connection
    options.fault = DaemonCallbacks.fault
    let kept = UnsafeMutablePointer<ferry_mhd_options>.allocate(capacity: 1)
    kept.initialize(to: options)
    guard let pointer = ferry_mhd_start(kept) else {
      kept.deallocate()
      context.release()
      return nil
    }
    return Daemon(pointer: pointer, options: kept)
  }

  /// Ends libmicrohttpd's threads. Blocks while callbacks run.
  private func stopDaemon() {
    core.abort()
    MHD_stop_daemon(daemon.pointer)
    daemon.options.deallocate()
    Unmanaged.passUnretained(core).release()
  }

  /// Runs blocking work off the cooperative pool.
  private static func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        body()
        continuation.resume()
      }
    }
  }
}
