import FerryHTTPServer
import FerryPlatform
import FerryProtocol

/// The handler of Ferry's requests: it checks access, reads the request, and asks the store.
package final class SyncService: Sendable {
  /// The parts of the service.
  package struct Parts: Sendable {
    package var store: any SyncStore
    package var gate: AccessGate
    package var hub: HeadHub
    package var metrics: ServiceMetrics
    package var log: ServiceLog
    package var clock: ServiceClock
    package var limits: Limits
    package var quotas: Quotas
    /// The memory for all requests.
    package var memory = MemoryBudget(limit: 256 << 20)
    /// `nil` if there is no directory for missions' content.
    package var missions: MissionService?
    /// The origins whose pages may use the service.
    package var crossOrigin = CrossOriginRule.none
    /// The names of spaces that every user may create; `nil` for none.
    package var userSpaces: SpacePattern?
    /// Streams of events at once.
    package var streamLimit = Int.max
    /// Streams of events of one address; `nil` for no limit.
    package var addressStreamLimit: Int?
    /// `nil` if no spans are exported.
    package var tracer: Tracer?
    /// The figures of mirrors in this process.
    package var mirrors = MirrorGauges()
    /// Runs the service's own tasks; `nil` for the shared pool.
    package var executor: (any TaskExecutor)?

    package init(
      store: any SyncStore, gate: AccessGate, hub: HeadHub, metrics: ServiceMetrics,
      log: ServiceLog, clock: ServiceClock, limits: Limits, quotas: Quotas = .standard,
      missions: MissionService? = nil, executor: (any TaskExecutor)? = nil
    ) {
      self.store = store
      self.gate = gate
      self.hub = hub
      self.metrics = metrics
      self.log = log
      self.clock = clock
      self.limits = limits
      self.quotas = quotas
      self.missions = missions
      self.executor = executor
    }
  }

  let parts: Parts
  private let access: RequestAccess
  private let memory: AnswerMemory
  private let recorder: RequestRecorder
  private let handlers: Handlers
  private let lifecycle = ServiceLifecycle()
  /// The observations of devices, refusals and activity, for administrators.
  package let inspection: InspectionKeeper

  package init(_ parts: Parts) {
    self.parts = parts
    let core = ServiceCore(parts)
    access = RequestAccess(core, gate: parts.gate)
    memory = AnswerMemory(budget: parts.memory, limits: parts.limits)
    recorder = RequestRecorder(core, gate: parts.gate, tracer: parts.tracer)
    inspection = InspectionKeeper(store: parts.store, clock: parts.clock, log: parts.log)
    handlers = Handlers(
      parts, core, access, memory: memory, inspection: inspection, lifecycle: lifecycle)
  }

  /// Answers one request; writes it to the log and counts it. A stream is logged when it ends.
  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    var context = recorder.begin(request)
    context.span = recorder.beginSpan(of: context)
    var response = await flow(of: request, from: request.remoteAddress).run {
      guard let span = context.span else { return await answerOrRefuse(&context) }
      return await span.run { await answerOrRefuse(&context) }
    }
    response.account = context.principal?.memoryAccount
    recorder.record(context, response)
    return response
  }

  /// Answers a request refused by the HTTP layer.
  /// - Parameter remote: The address of the client.
  package func respond(to failure: HTTPFailure, from remote: String) -> HTTPResponse {
    let problem = Problem(failure)
    parts.metrics.count(refused: problem.code.status)
    parts.log.write(refused: failure.detail, kind: problem.code.rawValue, remote: remote)
    return problem.response()
  }

  /// Decides if a request's content is worth reading. The request is checked again when it is
  /// answered, and only this check counts.
  package func admission(of arrival: HTTPArrival) -> HTTPAdmission {
    ArrivalAdmission(
      access: access, recorder: recorder, crossOrigin: parts.crossOrigin, limits: parts.limits
    ).decide(arrival)
  }

  /// Returns the flow of a request's work until it is admitted.
  ///
  /// - Parameter request: The request; `nil` for one without an address of Ferry's form.
  package func flow(of request: HTTPRequest?, from address: String) -> WorkFlow {
    access.flow(of: request, from: address)
  }

  /// Counts the bytes of an answer after they were sent.
  package func ended(_ exchange: HTTPExchange) {
    guard exchange.responseBytes > 0 else { return }
    let segments = Substring(exchange.path.utf8.dropFirst()).parts(at: "/")
    let match = RouteMatch(method: exchange.method, segments: segments.map(String.init))
    parts.metrics.countSent(exchange.responseBytes, from: match.route)
  }

  /// Shows the load of the HTTP server in the metrics from now on.
  package func observe(_ load: @escaping @Sendable () -> HTTPServer.Load) {
    handlers.status.observe(load)
  }

  /// Ends the streams of events whose credentials are not valid any more.
  package func checkStreams() async { await handlers.events.checkStreams() }

  /// Makes `/readyz` fail from now on, so no more requests are sent here.
  package func beginStopping() { lifecycle.beginStopping() }

  /// The open streams of events.
  var streams: EventStreams { handlers.events.streams }

  // MARK: Dispatch

  private func answerOrRefuse(_ context: inout RequestContext) async -> HTTPResponse {
    do {
      return try await answer(&context)
    } catch {
      return context.refuse(error)
    }
  }

  private func answer(_ context: inout RequestContext) async throws(Problem) -> HTTPResponse {
    let match = context.match
    if let answer = try parts.crossOrigin.preflight(context.request, match.route) { return answer }
    let endpoint = try context.endpoint()
    switch endpoint.handler {
    case .open(let handler): return try await handler(handlers)(&context)
    case .administrator(let handler):
      let caller = try await access.caller(&context)
      return try await memory.run(endpoint.memory, context) { () async throws(Problem) in
        try await handler(handlers)(context, caller)
      }
    case .user(let handler):
      let caller = try await access.user(&context)
      return try await memory.run(endpoint.memory, context) { () async throws(Problem) in
        try await handler(handlers)(context, caller)
      }
    case .space(let handler):
      let (name, _) = try await access.enter(&context, need: endpoint.need)
      return try await memory.run(endpoint.memory, context) { () async throws(Problem) in
        try await handler(handlers)(context, name)
      }
    case .member(let handler):
      let (name, admission) = try await access.enter(&context, need: endpoint.need)
      return try await memory.run(endpoint.memory, context) { () async throws(Problem) in
        try await handler(handlers)(&context, name, admission)
      }
    }
  }
}
