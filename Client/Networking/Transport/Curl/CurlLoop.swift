#if SystemLibraries && !canImport(Darwin)
  import CFerryCurl
  import Foundation

  /// The transport's thread: runs every transfer until the queue is closed.
  ///
  /// All of it runs on this thread; curl's callbacks come from `turn`.
  final class CurlLoop {
    private static let idleHandlesMax = 64

    private let queue: CurlQueue
    private let multi: UnsafeMutableRawPointer
    private let settings: EasyHandle.Settings
    private var running: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    private var idle: [EasyHandle] = []
    /// Current transfers with a time limit for silence.
    private var streams: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    private let gate: BandwidthGate

    init(_ queue: CurlQueue, _ settings: EasyHandle.Settings) {
      self.queue = queue
      self.settings = settings
      multi = queue.multi
      let configuration = settings.configuration
      gate = BandwidthGate(configuration.bandwidth)
      ferry_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, configuration.idleConnectionsMax)
      ferry_curl_multi_set_long(
        multi, CURLMOPT_MAX_HOST_CONNECTIONS, configuration.connectionsPerHostMax ?? 0)
    }

    func run() {
      Thread.current.name = "ferry-network"
      blockBrokenPipeSignal()
      while true {
        let (commands, isClosed) = queue.drain()
        for command in commands { perform(command) }
        if isClosed { break }
        turn()
        let patience = min(expireSilent(), gate.release() ?? .seconds(3600))
        curl_multi_poll(multi, nil, 0, Int32(patience / .milliseconds(1)) + 1, nil)
      }
      for transfer in running.values {
        end(transfer, transfer.cancellation)
      }
      idle.removeAll()
      curl_multi_cleanup(multi)
    }

    private func perform(_ command: CurlCommand) {
      switch command {
      case .start(let transfer):
        if !transfer.abandoned.load(ordering: .relaxed) { start(transfer) }
      case .resume(let transfer):
        transfer.resume(.sink)
      case .cancel(let transfer):
        end(transfer, transfer.cancellation)
      case .limit(let limits):
        gate.change(limits)
      }
    }

    private func start(_ transfer: CurlTransfer) {
      guard let easy = idle.popLast() ?? EasyHandle() else {
        return transfer.finish(TransportError(.other, "out of memory"))
      }
      transfer.gate = gate
      do {
        try easy.prepare(transfer, settings)
      } catch {
        recycle(easy)
        return transfer.finish(error)
      }
      transfer.easy = easy
      running[easy.pointer] = transfer
      if transfer.limit == .silence { streams[easy.pointer] = transfer }
      curl_multi_add_handle(multi, easy.pointer)
    }

    /// Moves every transfer as far as possible without waiting, and ends finished ones.
    private func turn() {
      var count: Int32 = 0
      curl_multi_perform(multi, &count)
      while let message = curl_multi_info_read(multi, &count) {
        guard message.pointee.msg == CURLMSG_DONE, let pointer = message.pointee.easy_handle,
          let transfer = running[pointer], let easy = transfer.easy
        else { continue }
        end(transfer, transfer.failure(message.pointee.data.result, easy))
      }
    }

    private func end(_ transfer: CurlTransfer, _ failure: TransportError?) {
      guard let easy = transfer.easy else { return }
      transfer.easy = nil
      // A finished stream with an existing consumer must keep neither a file nor a place at the gate.
      (transfer.source, transfer.gate) = (nil, nil)
      running[easy.pointer] = nil
      streams[easy.pointer] = nil
      curl_multi_remove_handle(multi, easy.pointer)
      recycle(easy)
      transfer.finish(failure)
    }

    private func recycle(_ easy: EasyHandle) {
      guard idle.count < Self.idleHandlesMax else { return }
      easy.reset()
      idle.append(easy)
    }

    /// Ends streams after too long silence. Returns how long to sleep at most.
    private func expireSilent() -> Duration {
      // curl shortens the sleep by timers; commands interrupt it.
      var sleep = Duration.seconds(3600)
      if streams.isEmpty { return sleep }
      let now = ContinuousClock.now
      for transfer in streams.values {
        guard let patience = transfer.patience(at: now) else { continue }
        if patience <= .zero { end(transfer, transfer.silenceFailure) }
        sleep = min(sleep, max(patience, .zero))
      }
      return sleep
    }

    /// Blocks SIGPIPE; OpenSSL's writes to a closed socket raise it.
    private func blockBrokenPipeSignal() {
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
  }
#endif
