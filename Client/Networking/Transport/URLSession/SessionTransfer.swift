import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One exchange by tasks of a session: one for each redirect.
final class SessionTransfer: Transfer {
  /// The most bytes waiting for a reader if URLSession cannot pause.
  private static let waitingMax = 64 << 20
  private static let redirectsMax = 5

  private struct State {
    var request: SessionRequest
    var task: URLSessionTask?
    var watchdog: Task<Void, Never>?
    var lastAddress: RequestAddress
    var redirects = 0
    /// The redirect to follow: the answer's field `Location` and status.
    var redirect: (location: String, status: Int)?
    var hasHead = false
    /// The announced bytes of an uncoded body.
    var expected: Int?
    /// Parts without room in the sink, in order, and their bytes.
    var waiting: [Data] = []
    var waitingCount = 0
    /// A thread offers parts to the sink; another one has asked it to continue.
    var isOffering = false
    var offersAgain = false
    /// The task has ended while parts wait.
    var isComplete = false
    var isEnded = false
    var progress = TransportProgress()
    var movedLast = ContinuousClock.now
    var pace: RequestPace?
  }

  private let address: RequestAddress
  private let sink: any TransferSink
  private let limit: TransferLimit
  private let progress: TransportProgressHandler?
  private let session: URLSession
  private let registry: SessionTransfers
  private let timeout: Duration
  private let minimumRate: Int?
  private let state: Mutex<State>

  init(
    _ request: SessionRequest, address: RequestAddress, sink: any TransferSink,
    limit: TransferLimit,
    progress: TransportProgressHandler?, session: URLSession, registry: SessionTransfers
  ) {
    self.address = address
    self.sink = sink
    self.limit = limit
    self.progress = progress
    self.session = session
    self.registry = registry
    timeout = request.request.timeout
    minimumRate = request.request.minimumRate
    var state = State(request: request, lastAddress: address)
    state.pace = minimumRate.map { RequestPace(rateMin: $0, window: request.request.timeout) }
    self.state = Mutex(state)
  }

  /// The error for a cancelled caller.
  var cancellation: TransportError {
    TransportError(.cancelled, "the request to \(address.endpoint) was cancelled")
  }

  /// The PEM file of authorities trusted by the request besides the system's.
  var certificateAuthorities: String? {
    state.withLock { $0.request.request.certificateAuthorities }
  }

  /// Starts the first task, unless the transfer was cancelled before.
  func start() {
    let watchdog = Task { await watch() }
    let isEnded = state.withLock { state in
      state.watchdog = watchdog
      state.movedLast = .now
      return state.isEnded
    }
    if isEnded { watchdog.cancel() } else { startTask() }
  }

  /// Ends the transfer for the caller.
  func cancel() { end(cancellation) }

  private func startTask() {
    let task = state.withLock { state -> URLSessionTask? in
      if state.isEnded { return nil }
      var head = state.request.head
      let task: URLSessionTask
      switch state.request.body?.content {
      case .bytes(let bytes):
        head.httpBody = bytes
        task = session.dataTask(with: head)
      case .file(let url): task = session.uploadTask(with: head, fromFile: url)
      case nil: task = session.dataTask(with: head)
      }
      state.task = task
      state.progress = TransportProgress(sentTotal: state.request.body?.count)
      registry.add(self, for: task)
      return task
    }
    task?.resume()
  }

  /// Ends the transfer once: no event of the task reaches the sink afterwards.
  private func end(_ failure: TransportError?) {
    let (isFirst, task, watchdog) = state.withLock { state in
      defer {
        state.isEnded = true
        (state.waiting, state.waitingCount) = ([], 0)
      }
      return (!state.isEnded, state.task, state.watchdog)
    }
    guard isFirst else { return }
    watchdog?.cancel()
    guard let failure else { return sink.finish(nil) }
    task?.cancel()
    // URLSession reports a file without the last bytes as a broken connection, or waits for them.
    let shortening = failure.isTransient ? state.withLock { $0.request.body?.shortening } : nil
    sink.finish(shortening ?? failure)
  }
}

// The session's events; they come one after another.
extension SessionTransfer {
  /// Receives the head of an answer.
  func receive(_ response: URLResponse) {
    guard let response = response as? HTTPURLResponse else {
      return end(TransportError(.other, "\(address.endpoint): the answer is not HTTP"))
    }
    let head = ResponseHead(status: response.statusCode, headers: Self.headers(response))
    // A head of HTTP/0.9 means an invalid answer.
    guard head.status >= 100 else {
      return end(TransportError(.other, "\(address.endpoint): the answer is not HTTP"))
    }
    let isPassing = state.withLock { state in
      state.movedLast = .now
      let follows = SessionRequest.followsRedirects(state.request.method)
      guard head.isPassing(followsRedirects: follows) else {
        state.hasHead = true
        if head.headers["Content-Encoding"] == nil && state.request.method != .head {
          state.expected = head.headers["Content-Length"].flatMap { Int($0) }
        }
        return false
      }
      state.redirect = head.headers["Location"].map { ($0, head.status) }
      return true
    }
    if !isPassing { sink.receive(head) }
  }

  /// Receives a part of the body.
  func receive(_ data: Data) {
    let isOffered = state.withLock { state in
      state.movedLast = .now
      guard state.redirect == nil, !state.isEnded else { return false }
      state.progress.received += data.count
      state.waiting.append(data)
      state.waitingCount += data.count
      return true
    }
    guard isOffered else { return }
    report()
    resume()
  }

  /// Offers waiting parts to the sink, as many as it takes. The session and the reader may call at
  /// once: one of them offers, for both.
  func resume() {
    let isFirst = state.withLock { state in
      defer { (state.isOffering, state.offersAgain) = (true, state.isOffering) }
      return !state.isOffering
    }
    guard isFirst else { return }
    while let data = next() {
      switch data.withUnsafeBytes({ sink.receive($0) }) {
      case .taken: continue
      case .refused(let failure):
        return end(TransportError(failure.kind, "\(address.endpoint): \(failure.message)"))
      case .full: if !buffer(data) { return }
      }
    }
  }

  /// Returns the next part to offer; `nil` at the end and when none has come yet.
  private func next() -> Data? {
    let (data, isLast) = state.withLock { state -> (Data?, Bool) in
      if state.waiting.isEmpty {
        state.isOffering = false
        Self.pause(&state, false)
        return (nil, state.isComplete && !state.isEnded)
      }
      let data = state.waiting.removeFirst()
      state.waitingCount -= data.count
      return (data, false)
    }
    if isLast { end(nil) }
    return data
  }

  /// Buffers a part without room in the sink, and pauses the task. Returns true if the reader has
  /// made room meanwhile.
  private func buffer(_ data: Data) -> Bool {
    let (hasRoom, isTooMuch) = state.withLock { state in
      state.waiting.insert(data, at: 0)
      state.waitingCount += data.count
      if state.offersAgain {
        state.offersAgain = false
        return (true, false)
      }
      state.isOffering = false
      Self.pause(&state, true)
      return (false, !Self.canPause && state.waitingCount > Self.waitingMax)
    }
    if isTooMuch {
      end(
        TransportError(
          .responseTooLarge,
          "\(address.endpoint): the body comes faster than its reader takes it, and URLSession "
            + "cannot pause on this system"))
    }
    return hasRoom
  }

  /// True if URLSession can pause a transfer. On Linux a suspended task loses its connection.
  private static var canPause: Bool {
    #if canImport(Darwin)
      true
    #else
      false
    #endif
  }

  private static func pause(_ state: inout State, _ isPaused: Bool) {
    guard canPause, !state.isComplete, let task = state.task else { return }
    if isPaused && task.state == .running { task.suspend() }
    if !isPaused && task.state == .suspended { task.resume() }
  }

  /// Records sent bytes of the request's body.
  func sent(_ total: Int64) {
    state.withLock { state in
      state.movedLast = .now
      state.progress.sent = Int(clamping: total)
    }
    report()
  }

  /// Handles the end of the current task.
  func complete(_ failure: (any Error)?) {
    if let failure {
      let reached = state.withLock { $0.lastAddress }
      return end(
        SessionFailure.error(failure, at: reached.endpoint(redirectedFrom: address)))
    }
    if let redirect = state.withLock({ $0.redirect }) {
      return startRedirect(redirect.location, redirect.status)
    }
    let missing = state.withLock { state in
      state.expected.map { $0 - state.progress.received } ?? 0
    }
    if missing > 0 {
      return end(
        TransportError(
          .interrupted,
          "the connection to \(address.endpoint) broke: \(missing) bytes of the body are missing"))
    }
    let waits = state.withLock { state in
      state.isComplete = true
      return !state.waiting.isEmpty
    }
    if !waits { end(nil) }
  }

  private func startRedirect(_ location: String, _ status: Int) {
    let failure = state.withLock { state -> TransportError? in
      state.redirect = nil
      state.redirects += 1
      guard state.redirects <= Self.redirectsMax else {
        return TransportError(
          .other, "\(address.endpoint) redirects more than \(Self.redirectsMax) times")
      }
      do throws(TransportError) {
        try state.request.redirect(
          location, status: status, first: address, previous: &state.lastAddress)
        return nil
      } catch {
        return error
      }
    }
    if let failure { end(failure) } else { startTask() }
  }

  private func report() {
    guard let progress else { return }
    let (isEnded, state) = state.withLock { state in
      state.progress.receivedTotal = state.expected
      return (state.isEnded, state.progress)
    }
    if !isEnded { progress(state) }
  }

  private static func headers(_ response: HTTPURLResponse) -> TransportHeaders {
    var headers = TransportHeaders()
    let fields = response.allHeaderFields.compactMap { name, value in
      (name as? String).map { ($0, "\(value)") }
    }
    for (name, value) in fields.sorted(by: { $0.0 < $1.0 }) { headers.add(name, value) }
    return headers
  }
}

// Time.
extension SessionTransfer {
  /// Ends the transfer at the time limit.
  private func watch() async {
    let began = ContinuousClock.now
    while !Task.isCancelled {
      let left = limit == .exchange ? timeout - began.duration(to: .now) : patience()
      if left <= .zero { return end(timeoutFailure) }
      try? await Task.sleep(for: left)
    }
  }

  /// Returns how long the transfer may stay silent. Waiting for the reader is no silence.
  private func patience() -> Duration {
    let now = ContinuousClock.now
    return state.withLock { state in
      guard state.waiting.isEmpty else {
        state.movedLast = now
        state.pace?.rest()
        return timeout
      }
      let silence = timeout - state.movedLast.duration(to: now)
      guard state.hasHead,
        let left = state.pace?.patience(received: state.progress.received, at: now)
      else { return silence }
      return min(silence, left)
    }
  }

  private var timeoutFailure: TransportError {
    let endpoint = address.endpoint
    switch limit {
    case .exchange:
      return TransportError(.timedOut, "no complete answer from \(endpoint) within \(timeout)")
    case .silence:
      let isSilent = state.withLock { $0.movedLast.duration(to: .now) >= timeout }
      guard !isSilent, let rate = minimumRate else {
        return TransportError(.timedOut, "\(endpoint) was silent for \(timeout)")
      }
      return TransportError(
        .timedOut, "\(endpoint) sent less than \(rate) bytes a second for \(timeout)")
    }
  }
}
