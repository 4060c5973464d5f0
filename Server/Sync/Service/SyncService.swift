import FerryHTTPServer
import FerryPlatform
import FerryProtocol
import Synchronization

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
  let committer: PacketCommitter
  let directory: SpaceDirectory
  let lifecycle: ServiceLifecycle
  let uploads: UploadShares
  let streams: EventStreams
  let admissions: AdmissionMemory
  /// The observations of devices, refusals and activity, for administrators.
  package let inspection: InspectionKeeper
  private let load = Mutex<@Sendable () -> HTTPServer.Load>({ HTTPServer.Load() })
  private let startedAt: Int64

  package init(_ parts: Parts) {
    self.parts = parts
    committer = PacketCommitter(
      store: parts.store, clock: parts.clock, metrics: parts.metrics, log: parts.log,
      memory: parts.memory, executor: parts.executor)
    directory = SpaceDirectory(store: parts.store, clock: parts.clock)
    lifecycle = ServiceLifecycle()
    uploads = UploadShares(clock: parts.clock)
    streams = EventStreams(limit: parts.streamLimit, perAddress: parts.addressStreamLimit)
    admissions = AdmissionMemory(clock: parts.clock)
    inspection = InspectionKeeper(store: parts.store, clock: parts.clock, log: parts.log)
    startedAt = parts.clock.wall()
  }

  /// Answers one request; writes it to the log and counts it. A stream is logged when it ends.
  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    var context = begin(request)
    context.span = beginSpan(of: context)
    var response = await flow(of: request, from: request.remoteAddress).run {
      guard let span = context.span else { return await answerOrRefuse(&context) }
      return await span.run { await answerOrRefuse(&context) }
    }
    response.account = context.principal?.memoryAccount
    if case .stream(let stream) = response.body {
      let status = response.status
      stream.onClose { [context] in self.record(context, status: status, bytesOut: nil) }
    } else {
      record(
        context, status: response.status, bytesOut: response.contentCount(for: request.method))
    }
    return response
  }

  private func answerOrRefuse(_ context: inout RequestContext) async -> HTTPResponse {
    do {
      return try await answer(&context)
    } catch {
      return refusal(error, &context)
    }
  }

  func begin(_ request: HTTPRequest) -> RequestContext {
    let match = RouteMatch(
      method: request.method, segments: request.segments, path: request.path)
    return RequestContext(request: request, match: match, started: parts.clock.uptime())
  }

  func refusal(_ problem: Problem, _ context: inout RequestContext) -> HTTPResponse {
    context.problem = problem.code
    return problem.response(headers: headers(for: problem, context))
  }

  /// Answers a request refused by the HTTP layer.
  /// - Parameter remote: The address of the client.
  package func respond(to failure: HTTPFailure, from remote: String) -> HTTPResponse {
    let problem = Problem(failure)
    parts.metrics.count(refused: problem.code.status)
    parts.log.write(refused: failure.detail, kind: problem.code.rawValue, remote: remote)
    return problem.response()
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
    self.load.withLock { $0 = load }
  }

  /// Makes `/readyz` fail from now on, so no more requests are sent here.
  package func beginStopping() { lifecycle.beginStopping() }

  // MARK: Dispatch

  private func answer(_ context: inout RequestContext) async throws(Problem) -> HTTPResponse {
    let match = context.match
    if let answer = try parts.crossOrigin.preflight(context.request, match.route) { return answer }
    let endpoint = try endpoint(of: context)
    switch endpoint.handler {
    case .open(let build): return try await build(self)(&context)
    case .administrator(let build):
      let caller = try await caller(&context)
      return try await withMemory(endpoint.memory, context) { () async throws(Problem) in
        try await build(self)(context, caller)
      }
    case .space(let build):
      let (name, _) = try await enter(&context, need: endpoint.need)
      return try await withMemory(endpoint.memory, context) { () async throws(Problem) in
        try await build(self)(context, name)
      }
    case .member(let build):
      let (name, admission) = try await enter(&context, need: endpoint.need)
      return try await withMemory(endpoint.memory, context) { () async throws(Problem) in
        try await build(self)(&context, name, admission)
      }
    }
  }

  /// Admits a request to its space, and counts it.
  private func enter(
    _ context: inout RequestContext, need: Role?
  ) async throws(Problem) -> (SpaceName, Admission) {
    let name = try space(named: context.match.spaceText ?? "")
    context.space = name
    let admission = try await admit(context, to: name, need: need ?? .admin)
    context.principal = admission.principal
    context.isServerAdmin = admission.isServerAdmin
    admissions.store(admission.principal, of: context.request.headers["Authorization"])
    try count(&context)
    return (name, admission)
  }

  /// Returns the endpoint of a request, which states one version of the protocol at most (SPEC.md §9).
  func endpoint(of context: RequestContext) throws(Problem) -> Endpoint {
    let match = context.match
    if match.route == .unknown {
      throw Problem(
        .notFound,
        "Ferry's addresses are below /v1/spaces/{space}, /v1/blobs, /v1/tokens and /v1/audit")
    }
    guard let endpoint = match.endpoint else {
      throw Problem(
        .methodNotAllowed, "\(match.route.rawValue) takes \(match.route.allow)")
    }
    guard context.request.headers.values(of: ProtocolVersion.header).count <= 1 else {
      throw Problem(.malformedMessage, "the request has \(ProtocolVersion.header) more than once")
    }
    return endpoint
  }

  func space(named text: String) throws(Problem) -> SpaceName {
    guard let name = SpaceName(text) else {
      throw Problem(
        .unknownSpace,
        "a space's name has 1 to 63 characters of A–Z a–z 0–9 . _ - and begins with a letter or "
          + "digit")
    }
    return name
  }

  private func admit(
    _ context: RequestContext, to space: SpaceName, need: Role
  ) async throws(Problem) -> Admission {
    let (request, match) = (context.request, context.match)
    // The transaction of a packet looks whether tokens exist.
    if match.route == .packets,
      let admission = parts.gate.admitAssumingOpen(
        Self.visitor(request, match.route), to: space, need: need)
    {
      return admission
    }
    return try await admit(request, match.route, to: space, need: need)
  }

  func admit(
    _ request: HTTPRequest, _ route: Route, to space: SpaceName, need: Role
  ) async throws(Problem) -> Admission {
    let visitor = Self.visitor(request, route)
    let gate = parts.gate
    return try await ask { () async throws(StoreError) in
      try await gate.admit(visitor, to: space, need: need)
    }.get()
  }

  static func visitor(_ request: HTTPRequest, _ route: Route) -> Visitor {
    var visitor = Visitor(
      headers: request.headers, address: request.remoteAddress,
      takesAnyContent: route == .upload)
    if !request.body.isEmpty { visitor.hasContent = true }
    return visitor
  }

  /// Counts an admitted request against the rates of the principal and of the space, and assigns
  /// the work to the principal's flow.
  func count(_ context: inout RequestContext) throws(Problem) {
    guard let principal = context.principal else { return }
    WorkFlow(
      of: principal, in: context.space?.value, at: context.request.remoteAddress
    ).assign()
    guard let excess = parts.gate.countRequest(of: principal, in: context.space)
    else { return }
    context.retryAfter = excess.wait
    let reason =
      switch excess.limit {
      case .principal: "\(principal.account) sends more than this server's rate allows"
      case .space: "this space gets more than this server's rate allows, and much of it from you"
      }
    throw .rateLimited(reason, excess.wait)
  }

  /// Calls the store; a failure goes to the log, and to the client as a problem. If there is no
  /// memory for the task's answer, it waits outside of the store, and calls again.
  func ask<T>(_ call: () async throws(StoreError) -> T) async throws(Problem) -> T {
    do throws(StoreError) {
      do throws(StoreError) {
        return try await call()
      } catch .needsMemory {
        guard await PageRoom.current?.wait() ?? false else { throw .noMemory }
        return try await call()
      }
    } catch {
      parts.metrics.countStoreError()
      parts.log.write(error)
      throw Problem(error)
    }
  }

  // MARK: The server itself

  func health(_ context: inout RequestContext) -> HTTPResponse { .text("ok\n") }

  func readiness(_ context: inout RequestContext) async throws(Problem) -> HTTPResponse {
    if lifecycle.isStopping { throw Problem(.unavailable, "the server is stopping") }
    let store = parts.store
    try await ask { () async throws(StoreError) in try await store.check() }
    return .text("ready\n")
  }

  func metricsPage(_ context: inout RequestContext) -> HTTPResponse {
    let page = MetricsPage(
      counts: parts.metrics.snapshot, listeners: parts.hub.listenerCount,
      droppedLogLines: parts.log.droppedLines, leftOutLogLines: parts.log.leftOutLines,
      version: FerryVersion.current,
      startedAt: startedAt, load: load.withLock { $0 }(), streams: streams.counts,
      standbyPulls: parts.store.counts.standbyPulls,
      workerRequests: parts.store.counts.workerRequests,
      notifications: parts.store.counts.notifications, signatures: parts.gate.signatureCounts,
      tracing: parts.tracer.map(TraceCounts.init), mirrors: parts.mirrors.all)
    return .text(page.text(), mediaType: PrometheusText.mediaType)
  }

  // MARK: After the answer

  private func headers(for problem: Problem, _ context: RequestContext) -> HTTPHeaders {
    switch problem.code {
    case .rateLimited:
      return context.retryAfter.map { ["Retry-After": String($0.wholeSeconds)] } ?? [:]
    case .unauthorized:
      let credential = Credential(authorization: context.request.headers["Authorization"])
      return ["WWW-Authenticate": AccessRule.challenge(for: credential)]
    case .upgradeRequired:
      // RFC 9110 §15.5.22 asks for both.
      return ["Upgrade": "Ferry", "Connection": "Upgrade"]
    case .methodNotAllowed: return ["Allow": context.match.route.allow]
    case .uploadConflict:
      return [
        "Upload-Offset": context.uploadOffset.map(String.init) ?? "0", "Upload-Complete": "?0",
      ]
    case .streamQuota: return ["Connection": "close"]
    case .unavailable where context.match.route == .events:
      // A rejected listener leaves the connection to others.
      return ["Connection": "close"]
    default: return [:]
    }
  }

  func record(_ context: RequestContext, status: Int, bytesOut: Int?) {
    var entry = RequestEntry(
      wall: parts.clock.wall(), method: context.request.method, route: context.match.route,
      path: context.request.path, status: status,
      duration: parts.clock.uptime() - context.started,
      bytesIn: context.request.bodyWireBytes, bytesOut: bytesOut, space: context.space,
      device: context.device, remote: context.request.remoteAddress, problem: context.problem)
    entry.isAdmitted = context.principal != nil
    if let span = context.span {
      entry.trace = span.context.trace
      span.end(entry, of: context.request)
    }
    if let principal = context.principal, context.problem != .rateLimited {
      // Compressed content costs the server as much as the uncompressed content.
      let received = max(context.request.bodyWireBytes, context.request.body.count)
      parts.gate.count(bytes: received + (bytesOut ?? 0), of: principal, in: context.space)
    }
    parts.metrics.count(entry)
    parts.log.write(entry)
  }
}
