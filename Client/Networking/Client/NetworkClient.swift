/// Sends every request of an application, uploads and downloads included. Callers get answers that
/// the filters accept, or a typed error.
///
/// The client checks connectivity first. Then the cache answers if the request permits it.
/// Otherwise the client sends the request, and repeats it if that may help. Cancelling the calling
/// task ends everything at once with kind `cancelled`.
///
/// ```swift
/// var configuration = NetworkConfiguration("https://api.example.org/v1")
/// configuration.alternatives["test"] = "https://test.example.org/v1"
/// let client = NetworkClient(configuration)
/// let answer = try await client.send(NetworkRequest("/tasks", query: [QueryItem("page", "2")]))
/// ```
public final class NetworkClient: Sendable {
  let transport: any Transport
  let surroundings: NetworkSurroundings
  /// How many parts of a rejected stream are read: reasons are short.
  private static let refusalPartsMax = 8

  private let assembly: RequestAssembly
  private let connectivity: any Connectivity
  private let cache: (any ResponseCache)?

  /// Creates a client.
  ///
  /// - Parameters:
  ///   - transport: carries requests; all its clients share its connections.
  ///   - connectivity: checked before each attempt.
  ///   - cache: keeps answers; without one every rule is `ignore`.
  public init(
    _ configuration: NetworkConfiguration, transport: any Transport = SystemTransport(),
    connectivity: any Connectivity = SystemConnectivity(), cache: (any ResponseCache)? = nil,
    surroundings: NetworkSurroundings = .system
  ) {
    assembly = RequestAssembly(configuration: configuration)
    self.transport = transport
    self.connectivity = connectivity
    self.cache = cache
    self.surroundings = surroundings
  }

  /// Sends a request and returns the whole response after the filters.
  ///
  /// - Parameter progress: receives progress in both directions; it starts at zero for each
  ///   attempt.
  @discardableResult
  public func send(
    _ request: NetworkRequest, progress: TransportProgressHandler? = nil
  ) async throws(NetworkError) -> NetworkResponse {
    var plan = try plan(for: request, asksCache: true)
    return try await follow(&plan, for: request) {
      (request: TransportRequest) async throws(NetworkError) -> NetworkResponse in
      do throws(TransportError) {
        let response = try await transport.send(request, progress: progress)
        return NetworkResponse(
          status: response.status, headers: response.headers, body: response.body)
      } catch {
        throw NetworkError(error)
      }
    }
  }

  /// Sends a request and returns as soon as the filters have accepted the response's head.
  ///
  /// The request's policy repeats failures before that point; the caller handles a body that breaks
  /// off. No cache is asked, so `only-if-cached` ends in ``NetworkError/Kind/notCached`` here.
  public func stream(
    _ request: NetworkRequest, progress: TransportProgressHandler? = nil
  ) async throws(NetworkError) -> TransportStream {
    var plan = try plan(for: request, asksCache: false)
    return try await open(&plan, from: plan.start, for: request, progress: progress)
  }

  // MARK: Following a plan

  /// Returns the plan for a request; throws kind `badAddress`.
  func plan(
    for request: NetworkRequest, asksCache: Bool
  ) throws(NetworkError) -> RequestPlan {
    var assembled = try assembly.assemble(request)
    if cache == nil || !asksCache { assembled.cacheable = nil }
    return RequestPlan(assembled)
  }

  /// Opens a stream by a plan from `step` on.
  func open(
    _ plan: inout RequestPlan, from step: RequestPlan.Step, for request: NetworkRequest,
    progress: TransportProgressHandler?
  ) async throws(NetworkError) -> TransportStream {
    var stream: TransportStream?
    do throws(NetworkError) {
      let head = try await follow(&plan, from: step, for: request) {
        (request: TransportRequest) async throws(NetworkError) -> NetworkResponse in
        stream?.body.cancel()
        do throws(TransportError) {
          let opened = try await transport.stream(request, progress: progress)
          stream = opened
          return NetworkResponse(status: opened.status, headers: opened.headers)
        } catch {
          throw NetworkError(error)
        }
      }
      guard let stream else { preconditionFailure("a stream is never answered from a cache") }
      return TransportStream(status: head.status, headers: head.headers, body: stream.body)
    } catch {
      throw await describe(error, by: stream)
    }
  }

  /// Adds the beginning of a rejected stream's body, which may contain the server's reasons, and
  /// ends the stream.
  private func describe(
    _ error: NetworkError, by stream: TransportStream?
  ) async -> NetworkError {
    guard let stream else { return error }
    defer { stream.body.cancel() }
    guard let response = error.response, !response.isSuccess else { return error }
    var error = error
    var parts = stream.body.makeAsyncIterator()
    for _ in 1...Self.refusalPartsMax {
      guard let part = try? await parts.next() else { break }
      error.response?.body += part
    }
    return error
  }

  /// Performs one step after another until the request has its answer.
  private func follow(
    _ plan: inout RequestPlan, from first: RequestPlan.Step? = nil, for request: NetworkRequest,
    attempt: (TransportRequest) async throws(NetworkError) -> NetworkResponse
  ) async throws(NetworkError) -> NetworkResponse {
    var step = first ?? plan.start
    while true {
      let event: RequestPlan.Event
      switch step {
      case .look(let host): event = .looked(connectivity.status(to: host))
      case .lookUp(let cacheable): event = .found(await cache?.lookup(cacheable) ?? .none)
      case .attempt(let transport): event = await outcome(of: transport, attempt)
      case .judge(let response): event = judge(response, for: request)
      case .keep(let response, let cacheable):
        event = .kept(await cache?.store(response, for: cacheable) ?? response)
      case .wait(let delay):
        try await sleep(delay)
        event = .waited
      case .finish(let result): return try result.get()
      }
      step = plan.next(event, random: surroundings.random)
    }
  }

  private func outcome(
    of request: TransportRequest,
    _ attempt: (TransportRequest) async throws(NetworkError) -> NetworkResponse
  ) async -> RequestPlan.Event {
    do {
      let response = try await attempt(request)
      let asksToWait = response.headers["Retry-After"] != nil
      return .answered(response, now: asksToWait ? surroundings.now() : 0)
    } catch {
      return .failed(error)
    }
  }

  private func judge(
    _ response: NetworkResponse, for request: NetworkRequest
  ) -> RequestPlan.Event {
    do {
      let accepted = try assembly.configuration.filter.check(response, for: request)
      return .accepted(try request.filter?.check(accepted, for: request) ?? accepted)
    } catch {
      return .refused(error)
    }
  }

  private func sleep(_ delay: Duration) async throws(NetworkError) {
    do {
      try await surroundings.sleep(delay)
    } catch {
      throw NetworkError(.cancelled, "the request was cancelled before its next attempt")
    }
  }
}
