import CFerryMicroHTTPD
import FerryPlatform
import Glibc
import Synchronization

/// One request and the answer, from the request line to the last byte.
///
/// libmicrohttpd calls in on the thread of the connection; the handler's task hands the answer over
/// through `handover`.
final class Exchange: @unchecked Sendable {
  // SAFETY: the variables below are used on the connection's thread only, except `handover`, which
  // locks. libmicrohttpd keeps a connection on one thread for its whole life.

  enum Phase {
    case headers
    /// Suspended until it is decided whether the content is read.
    case deciding(RequestIntake)
    case content(RequestIntake)
    /// Refused; the little remaining content is read and thrown away.
    case discarding(HTTPResponse)
    case handling
    case answered
  }

  /// The state shared by the connection's thread and the handler's task.
  private struct Handover {
    var admission: HTTPAdmission?
    var answer: HTTPResponse?
    var task: Task<Void, Never>?
    var stream: HTTPStream?
    var isCancelled = false
    /// True from the resumption for an answer until the socket thread has it.
    var hasTurn = false
  }

  let core: ServerCore
  let socket: Int32
  /// The request in libmicrohttpd; valid until `ended`.
  let connection: OpaquePointer
  /// The thread of the connection in libmicrohttpd.
  let thread = pthread_self()
  private let target: RequestLineTarget
  /// `nil` in no known case.
  private let client: ClientConnection?
  /// The address of the client; the proxy's until the headers are here.
  private(set) var remoteAddress: String
  /// The client for which the request counts as a connection.
  private var charged: ClientAddress?
  /// The flow of the request's work.
  private var flow = WorkFlow.own
  private let started: Duration
  var phase = Phase.headers
  var method = ""
  var status: Int?
  private var contentBytes = 0
  var responseBytes = 0
  /// The time at which the content began to come.
  private var contentStarted = Duration.zero
  /// The bytes of a chunked content read by libmicrohttpd before the last call.
  var consumedBytes: UInt64?
  /// Bytes acknowledged by the client before the answer.
  private var acknowledgedBefore: UInt64?
  var isRefused = false
  private var sendsFile = false
  private let handover = Mutex(Handover())

  init(core: ServerCore, target: RequestLineTarget, connection: OpaquePointer) {
    self.core = core
    self.target = target
    self.connection = connection
    socket = ferry_mhd_socket(connection)
    client = DaemonCallbacks.client(of: connection)
    remoteAddress = SocketAddress.ip(of: ferry_mhd_peer(connection))?.description ?? ""
    started = core.configuration.clock()
    core.registry.insert(self, socket: socket)
    enter(.headers)
    client?.expect(by: started + core.pace(of: client).headers)
  }

  /// Records whether the connection waits for the client.
  private func enter(_ phase: ConnectionLedger.Phase) {
    if let client { core.acceptor.connection(client, isIn: phase) }
  }

  /// Proceeds when the headers are here, or a piece of content, or (with an empty piece) all of it,
  /// or the connection was resumed. Returns `false` if the connection is to be closed.
  func proceed(
    _ line: (method: UnsafePointer<CChar>, version: UnsafePointer<CChar>),
    piece: UnsafeRawBufferPointer
  ) -> Bool {
    endTurn()
    switch phase {
    case .headers:
      method = String(cString: line.method)
      guard isHeadWhole(line) else { return refuse(.malformedHeader) }
      return arrive(version: line.version)
    case .deciding(let intake):
      // Resumed without a decision: the server is closing.
      guard let admission = handover.withLock({ $0.admission.take() }) else { return false }
      return apply(admission, intake)
    case .content(var intake):
      // The array inside must stay uniquely owned, or each piece would copy it.
      phase = .handling
      if piece.isEmpty { return handle(intake) }
      contentBytes += piece.count
      if let failure = intake.receive(piece) { return refuse(failure) }
      // libmicrohttpd overlooks an end of input that arrives together with input.
      if intake.lacksContent, PendingInput(peeking: socket) == .ended { return false }
      recordProgress(of: intake)
      phase = .content(intake)
      return true
    case .discarding(let response):
      if piece.isEmpty {
        enter(.answering)
        return answer(response)
      }
      contentBytes += piece.count
      return true
    case .handling:
      return queueAnswer()
    case .answered:
      return !isRefused
    }
  }

  /// Ends the exchange: libmicrohttpd is done with the request.
  func ended(isComplete: Bool) {
    // An answer of libmicrohttpd itself counts as well.
    let answered =
      status ?? Int(exactly: ferry_mhd_status(connection)).flatMap { $0 > 0 ? $0 : nil }
    let exchange = HTTPExchange(
      method: method, path: String(target.text.until("?")), status: answered,
      requestBytes: ferry_mhd_header_size(connection) + contentBytes,
      responseBytes: isComplete || isRefused ? responseBytes : cutOffBytes(),
      duration: core.configuration.clock() - started,
      remoteAddress: remoteAddress, isComplete: isComplete || isRefused)
    core.registry.remove(self)
    endTurn()
    if let charged { core.connections.release(charged) }
    client?.setStall(nil)
    client?.expect(by: core.nextRequestDeadline(of: client))
    enter(.idle)
    if sendsFile { core.truncationWatch.end(self) }
    let (stream, task) = handover.withLock { handover in
      let orphan = handover.answer.take()?.stream
      return (handover.stream.take() ?? orphan, handover.task.take())
    }
    if case .answered = phase {} else { task?.cancel() }
    stream?.connectionEnded()
    core.configuration.onComplete(exchange)
  }

  /// Ends a live body after the queued bytes.
  func finishStream() {
    handover.withLock { $0.stream }?.drain()
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

  // MARK: Admission

  /// Records the arrival of all headers. Returns `false` if the connection is to be closed.
  private func arrive(version: UnsafePointer<CChar>) -> Bool {
    let intake = RequestIntake(
      method: method, target: target.text(before: version), headers: receivedHeaders(),
      version: String(cString: version), limit: core.configuration.bodyLimit,
      budget: core.configuration.memory)
    if let failure = intake.framingFailure { return refuse(failure) }
    let share: ConnectionLedger.Share
    do {
      share = try identifyClient(intake.headers)
    } catch {
      return apply(.refuse(core.configuration.failure(error, remoteAddress)), intake)
    }
    let isOnReserve = client?.isReserve ?? false
    let head = intake.head(remoteAddress: remoteAddress)
    flow = core.configuration.flow(head, remoteAddress)
    guard intake.hasContent || isOnReserve || share != .within, let head else {
      return apply(.proceed(limit: core.configuration.bodyLimit), intake)
    }
    let arrival = HTTPArrival(
      request: head, declaredLength: intake.declaredLength, isOnReserve: isOnReserve,
      isBeyondShare: share != .within)
    return apply(core.configuration.admission(arrival), intake)
  }

  /// Finds the client behind a trusted proxy, and counts the request for it. Returns the remaining
  /// share for the request.
  private func identifyClient(
    _ headers: HTTPHeaders
  ) throws(HTTPFailure) -> ConnectionLedger.Share {
    guard let peer = client?.peer else { return .within }
    let address = try core.configuration.proxies.client(of: peer, headers)
    guard address != peer else { return .within }
    remoteAddress = address.description
    let share = core.connections.charge(address.client)
    guard share != .none else { throw .tooManyRequests }
    charged = address.client
    return share
  }

  private func apply(_ admission: HTTPAdmission, _ intake: RequestIntake) -> Bool {
    switch admission {
    case .proceed(let limit, let account):
      var intake = intake
      if let failure = intake.admit(limit: limit, account: account) { return refuse(failure) }
      contentStarted = core.configuration.clock()
      enter(intake.hasContent ? .content : .answering)
      recordProgress(of: intake)
      phase = .content(intake)
      return true
    case .refuse(let response):
      let response = core.configuration.amend(
        response.negotiated(acceptEncoding: nil), intake.headers)
      guard let length = intake.declaredLength, length <= Self.discardedMax,
        length == 0 || !intake.expectsContinue
      else { return refuse(response) }
      contentStarted = core.configuration.clock()
      client?.expect(by: core.pace(of: client).deadline(start: contentStarted, count: 0))
      enter(length > 0 ? .content : .answering)
      phase = .discarding(response)
      return true
    case .decide(let decide):
      phase = .deciding(intake)
      enter(.answering)
      client?.expect(by: nil)
      return work { [self] in
        let decided = await decide().decided()
        handover.withLock { handover in
          handover.admission = decided
          handover.task = nil
        }
        await resumeInTurn()
      }
    }
  }

  /// A refused request's content up to this size is read, to keep the connection.
  private static let discardedMax = 64 << 10

  /// Records new content, or a wait for it.
  private func recordProgress(of intake: RequestIntake) {
    guard intake.hasContent else { return }
    let deadline = core.pace(of: client).deadline(start: contentStarted, count: contentBytes)
    client?.expect(by: deadline)
    if intake.declaredLength == nil { consumedBytes = SocketProgress.consumedBytes(of: socket) }
  }

  // MARK: Answering

  private func handle(_ intake: RequestIntake) -> Bool {
    client?.expect(by: nil)
    if intake.hasContent { enter(.answering) }
    // A change of threads costs more than reading a small content. A coded one may be large.
    let isSmall = (1...Self.smallContentMax).contains(contentBytes) && !intake.isCoded
    let mayBeginHere = core.handlerBegins()
    let goesOn = work(beginsHere: isSmall && mayBeginHere) { [self] in
      let answer = await core.answer(intake, remoteAddress: remoteAddress)
      core.handlerEnded()
      await deliver(answer)
    }
    if !goesOn { core.handlerEnded() }
    return goesOn
  }

  /// The bytes of a content that the connection's thread may take the time to read.
  private static let smallContentMax = 4 << 10

  /// Suspends the connection and runs a task that resumes it.
  ///
  /// - Parameter beginsHere: Whether the connection's thread runs the task until the first wait.
  private func work(
    beginsHere: Bool = false, _ body: @escaping @Sendable () async -> Void
  ) -> Bool {
    guard core.registry.suspend(self, ConnectionHandle(pointer: connection)) else { return false }
    let executor = core.configuration.executor?(flow)
    let task =
      beginsHere
      ? Task.immediate(executorPreference: executor) { await body() }
      : Task(executorPreference: executor) { await body() }
    let isCancelled = handover.withLock { handover in
      handover.task = task
      return handover.isCancelled
    }
    if isCancelled { task.cancel() }
    return true
  }

  /// Resumes the connection when it is the turn of the request's user. Returns `false` if it was not
  /// suspended.
  @discardableResult
  private func resumeInTurn() async -> Bool {
    // No limit of waiting callers: it never refuses.
    _ = await core.answerTurns.enter(flow.path)
    handover.withLock { $0.hasTurn = true }
    let isResumed = core.registry.resume(self)
    if !isResumed { endTurn() }
    return isResumed
  }

  /// Ends the turn of an answer, if it has one.
  private func endTurn() {
    let hadTurn = handover.withLock { handover in
      defer { handover.hasTurn = false }
      return handover.hasTurn
    }
    if hadTurn { core.answerTurns.leave(flow.path) }
  }

  private func deliver(_ response: HTTPResponse) async {
    handover.withLock { handover in
      handover.answer = response
      handover.stream = response.stream
      handover.task = nil
    }
    // Draining finishes the streams it finds; this one may have come after.
    if core.isDraining { response.stream?.drain() }
    guard await !resumeInTurn() else { return }
    // The server gave up on this request, unless the closing server has sent the answer already.
    let stream = handover.withLock { handover in
      handover.answer.take() == nil ? nil : handover.stream.take()
    }
    stream?.connectionEnded()
  }

  private func queueAnswer() -> Bool {
    // Resumed without an answer: the server is closing.
    guard let answer = handover.withLock({ $0.answer.take() }) else { return false }
    return self.answer(answer)
  }

  private func answer(_ answer: HTTPResponse) -> Bool {
    phase = .answered
    status = answer.status
    let outlet = StreamOutlet(
      exchange: self, registry: core.registry, socket: socket,
      connection: ConnectionHandle(pointer: connection))
    let closes = core.isDraining || client?.isReserve ?? false
    guard
      let response = answer.daemonResponse(outlet: outlet, method: method, closes: closes)
    else { return false }
    defer { MHD_destroy_response(response) }
    // The bytes of a live body are counted as they are handed over.
    responseBytes = answer.stream == nil ? answer.contentCount(for: method) ?? 0 : 0
    if responseBytes > 0 { acknowledgedBefore = SocketProgress.acknowledgedBytes(of: socket) }
    if case .file(let content) = answer.body, responseBytes > 0 {
      sendsFile = true
      core.truncationWatch.begin(self, content)
    }
    client?.expect(by: core.deadline(of: answer, responseBytes))
    if answer.share != nil {
      client?.setStall(ReaderStall(acknowledgedBefore ?? 0, at: core.configuration.clock()))
    }
    return MHD_queue_response(connection, UInt32(answer.status), response) == .YES
  }

  /// Returns the bytes of a cut-off answer acknowledged by the client, as far as known.
  private func cutOffBytes() -> Int {
    guard let before = acknowledgedBefore,
      let after = SocketProgress.acknowledgedBytes(of: socket), after >= before
    else { return responseBytes }
    return min(responseBytes, Int(clamping: after - before))
  }

  /// Counts bytes of a live body handed to libmicrohttpd.
  func countStreamed(_ count: Int) {
    responseBytes += count
  }
}
