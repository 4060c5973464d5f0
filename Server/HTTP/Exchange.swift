import CMicroHTTPD
import Glibc
import Synchronization

/// One request and its answer, from the request line to the last byte.
///
/// libmicrohttpd calls in on the thread of the connection; the handler's task hands its answer
/// over through `handover`.
final class Exchange: @unchecked Sendable {
  // SAFETY: the variables below are used on the connection's thread only, except `handover`,
  // which locks. libmicrohttpd keeps a connection on one thread for its whole life.

  private enum Phase {
    case headers
    case content(RequestIntake)
    case handling
    case answered
  }

  /// What passes between the connection's thread and the handler's task.
  private struct Handover {
    var answer: HTTPResponse?
    var task: Task<Void, Never>?
    var stream: HTTPStream?
    var isCancelled = false
  }

  private let core: ServerCore
  private let target: String
  private let socket: Int32
  private let remoteAddress: String
  private let started = ContinuousClock.now
  private var phase = Phase.headers
  private var method = ""
  private var status: Int?
  private var contentBytes = 0
  private var responseBytes = 0
  /// Bytes that the client had acknowledged before the answer.
  private var acknowledgedBefore: UInt64?
  private var isRefused = false
  private var sendsFile = false
  private let handover = Mutex(Handover())

  init(core: ServerCore, target: String, socket: Int32, remoteAddress: String) {
    self.core = core
    self.target = target
    self.socket = socket
    self.remoteAddress = remoteAddress
    core.registry.insert(self, socket: socket)
  }

  /// The headers are here, or a piece of content, or (with an empty piece) all of it, or the
  /// connection was resumed. False when the connection is to be closed.
  func proceed(
    _ connection: OpaquePointer, method: UnsafePointer<CChar>, piece: UnsafeRawBufferPointer
  ) -> Bool {
    switch phase {
    case .headers:
      self.method = String(cString: method)
      return admit(connection)
    case .content(var intake):
      // The array inside must stay uniquely owned, or each piece would copy it.
      phase = .handling
      if piece.isEmpty { return handle(intake, connection) }
      contentBytes += piece.count
      if let failure = intake.receive(piece) { return refuse(failure) }
      // libmicrohttpd overlooks an end of input that arrives together with input.
      if intake.lacksContent, PendingInput(peeking: socket) == .ended { return false }
      phase = .content(intake)
      return true
    case .handling:
      return queueAnswer(connection)
    case .answered:
      return true
    }
  }

  /// libmicrohttpd is done with the request.
  func ended(_ connection: OpaquePointer, isComplete: Bool) {
    // An answer that libmicrohttpd gave on its own counts as well.
    let answered =
      status ?? Int(exactly: ferry_mhd_status(connection)).flatMap { $0 > 0 ? $0 : nil }
    let exchange = HTTPExchange(
      method: method, path: String(target.prefix { $0 != "?" }), status: answered,
      requestBytes: ferry_mhd_header_size(connection) + contentBytes,
      responseBytes: isComplete || isRefused ? responseBytes : cutOffBytes(),
      duration: started.duration(to: .now),
      remoteAddress: remoteAddress, isComplete: isComplete || isRefused)
    core.registry.remove(self)
    if sendsFile { core.truncationWatch.end(self) }
    let (stream, task) = handover.withLock { handover in
      let orphan = handover.answer.take()?.stream
      return (handover.stream.take() ?? orphan, handover.task.take())
    }
    if case .answered = phase {} else { task?.cancel() }
    stream?.connectionEnded()
    core.configuration.onComplete(exchange)
  }

  /// Ends a live body after what is queued.
  func finishStream() {
    handover.withLock { $0.stream }?.finish()
  }

  /// Cancels the handler's task.
  func cancel() {
    let task = handover.withLock { handover in
      handover.isCancelled = true
      return handover.task
    }
    task?.cancel()
  }

  /// Cuts the connection off.
  func disconnect() {
    core.registry.disconnect(self)
  }

  private func admit(_ connection: OpaquePointer) -> Bool {
    var intake = RequestIntake(
      method: method, target: target, headers: receivedHeaders(of: connection),
      limit: core.configuration.bodyLimit)
    if let failure = intake.refusalBeforeContent() { return refuse(failure) }
    phase = .content(intake)
    return true
  }

  private func handle(_ intake: RequestIntake, _ connection: OpaquePointer) -> Bool {
    guard core.registry.suspend(self, ConnectionHandle(pointer: connection)) else { return false }
    let task = Task { [self] in
      deliver(await core.answer(intake, remoteAddress: remoteAddress))
    }
    let isCancelled = handover.withLock { handover in
      handover.task = task
      return handover.isCancelled
    }
    if isCancelled { task.cancel() }
    return true
  }

  private func deliver(_ response: HTTPResponse) {
    handover.withLock { handover in
      handover.answer = response
      handover.stream = response.stream
      handover.task = nil
    }
    // Draining finishes the streams it finds; this one may have come after.
    if core.isDraining { response.stream?.finish() }
    guard !core.registry.resume(self) else { return }
    // The server gave up on this request.
    let stream = handover.withLock { handover in
      handover.answer = nil
      return handover.stream.take()
    }
    stream?.connectionEnded()
  }

  private func queueAnswer(_ connection: OpaquePointer) -> Bool {
    // Resumed without an answer: the server is closing.
    guard let answer = handover.withLock({ $0.answer.take() }) else { return false }
    phase = .answered
    status = answer.status
    let outlet = StreamOutlet(
      exchange: self, registry: core.registry, socket: socket,
      connection: ConnectionHandle(pointer: connection))
    guard
      let response = answer.daemonResponse(
        outlet: outlet, method: method, closes: core.isDraining)
    else { return false }
    defer { MHD_destroy_response(response) }
    responseBytes = answer.contentCount(for: method) ?? 0
    if responseBytes > 0 { acknowledgedBefore = SocketProgress.acknowledgedBytes(of: socket) }
    if case .file(let content) = answer.body, responseBytes > 0 {
      sendsFile = true
      core.truncationWatch.begin(self, content)
    }
    return MHD_queue_response(connection, UInt32(answer.status), response) == .YES
  }

  /// Of an answer that did not go out whole, what the client acknowledged, as far as that is known.
  private func cutOffBytes() -> Int {
    guard let before = acknowledgedBefore,
      let after = SocketProgress.acknowledgedBytes(of: socket), after >= before
    else { return responseBytes }
    return min(responseBytes, Int(clamping: after - before))
  }

  /// Bytes of a live body that were handed to libmicrohttpd.
  func countStreamed(_ count: Int) {
    responseBytes += count
  }

  /// Answers and closes in the middle of a request, which libmicrohttpd cannot do: it would
  /// first read all content, and reset the connection where it does not.
  private func refuse(_ failure: HTTPFailure) -> Bool {
    let response = core.configuration.failure(failure).negotiated(acceptEncoding: nil)
    let message = response.closingMessage(omitsContent: method == "HEAD")
    let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
    // Nothing else is on its way here, so the kernel's buffer takes the message whole.
    if send(socket, message, message.count, flags) == message.count {
      status = response.status
      responseBytes = message.count
      isRefused = true
      LingeringClose.begin(socket)
    }
    phase = .answered
    return false
  }
}
