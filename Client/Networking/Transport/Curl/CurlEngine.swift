#if SystemLibraries && !canImport(Darwin)
  import CFerryCurl
  import FerryCryptography
  import Foundation
  import Synchronization

  /// Owns the transport's thread: starts it, passes transfers to it, and ends it when released.
  final class CurlEngine: Sendable {
    private let queue: CurlQueue

    /// Starts the thread; calls `threadEnded` as the last step on it.
    init(
      _ configuration: TransportConfiguration,
      threadEnded: @escaping @Sendable () -> Void = {}
    ) {
      let queue = CurlQueue()
      self.queue = queue
      let environment = ProcessInfo.processInfo.environment
      let exceptions = ProxyExceptions.list(environment: environment)
      let proxies = ProxyAddresses(configured: configuration.proxy, environment: environment)
      let thread = Thread {
        let settings = EasyHandle.Settings(
          configuration: configuration, proxyExceptions: exceptions, proxies: proxies)
        CurlLoop(queue, settings).run()
        threadEnded()
      }
      thread.stackSize = 1 << 20
      thread.start()
    }

    deinit { queue.close() }

    /// Begins a transfer; the transfer's sink receives all further events.
    func start(_ transfer: CurlTransfer) { queue.push(.start(transfer)) }

    /// Resumes a transfer after its sink has made room.
    func resume(_ transfer: CurlTransfer) { queue.push(.resume(transfer)) }

    /// Limits all transfers together.
    func limitBandwidth(_ limits: BandwidthLimits) { queue.push(.limit(limits)) }

    /// Ends a transfer, also before it begins; the sink receives no further event.
    func cancel(_ transfer: CurlTransfer) {
      let (isFirst, _) = transfer.abandoned.compareExchange(
        expected: false, desired: true, ordering: .sequentiallyConsistent)
      if isFirst { queue.push(.cancel(transfer)) }
    }
  }

  /// A command of a task to the transport's thread.
  enum CurlCommand: Sendable {
    case start(CurlTransfer)
    case resume(CurlTransfer)
    case cancel(CurlTransfer)
    case limit(BandwidthLimits)
  }

  /// Commands in order, and the multi handle with a poll that they interrupt.
  final class CurlQueue: Sendable {
    private struct State {
      var commands: [CurlCommand] = []
      var isClosed = false
    }

    // SAFETY: the thread alone uses the handle, but for curl_multi_wakeup; curl allows it from any
    // thread. `close` is the last to wake it, under the lock that the thread takes before it frees
    // the handle.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    private let state = Mutex(State())

    init() {
      // curl uses OpenSSL as well.
      OpenSSL.prepare()
      curl_global_init(Int(CURL_GLOBAL_ALL))
      guard let multi = curl_multi_init() else { preconditionFailure("out of memory") }
      self.multi = multi
    }

    func push(_ command: CurlCommand) {
      // If the queue has commands, it has woken the thread already.
      let isFirst = state.withLock { state in
        state.commands.append(command)
        return state.commands.count == 1
      }
      if isFirst { curl_multi_wakeup(multi) }
    }

    func close() {
      state.withLock { state in
        state.isClosed = true
        curl_multi_wakeup(multi)
      }
    }

    /// Removes all commands from the queue. Returns also whether these were the last.
    func drain() -> (commands: [CurlCommand], isClosed: Bool) {
      state.withLock { state in
        defer { state.commands = [] }
        return (state.commands, state.isClosed)
      }
    }
  }
#endif
