extension NetworkClient {
  /// How many parts of a rejected stream are read: reasons are short.
  private static let refusalPartsMax = 8

  /// Returns the log of a request; `nil` if nobody reads it.
  func log(_ request: NetworkRequest) -> RequestLog? {
    RequestLog(request, sink: assembly.configuration.log, instant: surroundings.instant)
  }

  /// Returns the plan for a request; throws kind `badAddress`.
  func plan(
    for request: NetworkRequest, asksCache: Bool, log: RequestLog?
  ) throws(NetworkError) -> RequestPlan {
    do throws(NetworkError) {
      var assembled = try assembly.assemble(request)
      if cache == nil || !asksCache { assembled.cacheable = nil }
      return RequestPlan(assembled)
    } catch {
      log?.end(nil, error)
      throw error
    }
  }

  /// Opens a stream by a plan from `step` on.
  func open(
    _ plan: inout RequestPlan, from step: RequestPlan.Step, for request: NetworkRequest,
    progress: TransportProgressHandler?
  ) async throws(NetworkError) -> TransportStream {
    var stream: TransportStream?
    do throws(NetworkError) {
      let head = try await run(&plan, from: step, for: request, hasBody: false) {
        (request: TransportRequest) async throws(NetworkError) -> NetworkResponse in
        stream?.body.cancel()
        stream = nil
        let permit = try await gate?.enter(request)
        do throws(TransportError) {
          let opened = try await transport.stream(request, progress: progress)
          // A rejected stream holds no turn: an interceptor may need it for another request.
          stream = 200..<300 ~= opened.status ? opened.limited(by: permit) : opened
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

  /// Adds the beginning of a rejected stream's body, with the server's reasons if there are any,
  /// and ends the stream.
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

  /// Performs one step after another until the request has an answer.
  ///
  /// - Parameter hasBody: true if an attempt returns the whole response, and not only the head.
  func run(
    _ plan: inout RequestPlan, from first: RequestPlan.Step? = nil, for request: NetworkRequest,
    hasBody: Bool = true,
    attempt: (TransportRequest) async throws(NetworkError) -> NetworkResponse
  ) async throws(NetworkError) -> NetworkResponse {
    let interceptors = InterceptorChain(interceptors: assembly.configuration.interceptors)
      .seeing(request.base)
    var step = first ?? plan.start
    while true {
      let event: RequestPlan.Event
      switch step {
      case .look(let host): event = .looked(connectivity.status(to: host))
      case .lookUp(let cacheable): event = .found(await cache?.lookup(cacheable) ?? .none)
      case .attempt(let transport):
        event = await outcome(
          of: transport, for: request, interceptors, maySendAgain: plan.maySendAgain, attempt)
      case .judge(let response):
        event = judge(response, for: request, plan.request.accepts, hasBody: hasBody)
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
    of transport: TransportRequest, for request: NetworkRequest, _ interceptors: InterceptorChain,
    maySendAgain: Bool,
    _ attempt: (TransportRequest) async throws(NetworkError) -> NetworkResponse
  ) async -> RequestPlan.Event {
    do {
      let sent = try await interceptors.prepare(transport, for: request)
      let response = try await attempt(sent)
      let asksToWait = response.headers["Retry-After"] != nil
      let now = asksToWait ? surroundings.now() : 0
      let review = try await interceptors.review(
        AnsweredRequest(
          request: request, sent: sent, response: response, maySendAgain: maySendAgain))
      return review == .sendAgain ? .repelled(response, now: now) : .answered(response, now: now)
    } catch {
      return .failed(error)
    }
  }

  private func judge(
    _ response: NetworkResponse, for request: NetworkRequest, _ accepts: AcceptedTypes?,
    hasBody: Bool
  ) -> RequestPlan.Event {
    do {
      let accepted = try assembly.configuration.filter.check(response, for: request)
      try accepts?.check(accepted, hasBody: hasBody)
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
