/// The steps of one request from the first check to the answer: a pure machine.
///
/// The order is connectivity, cache, attempt, filters, cache again. After a temporary failure, a
/// pause and another attempt follow. The caller passes the result of a step and gets the next step.
struct RequestPlan: Sendable {
  /// The next step.
  enum Step: Sendable, Equatable {
    /// Check the connection to the host.
    case look(host: String)
    /// Ask the cache.
    case lookUp(CacheableRequest)
    /// Send the request.
    case attempt(TransportRequest)
    /// Let the filters check an answer.
    case judge(NetworkResponse)
    /// Store an answer in the cache.
    case keep(NetworkResponse, CacheableRequest)
    /// Wait before the next attempt.
    case wait(Duration)
    /// Return the result.
    case finish(Result<NetworkResponse, NetworkError>)
  }

  /// The result of a step.
  enum Event: Sendable, Equatable {
    case looked(ConnectivityStatus)
    case found(CacheAnswer)
    /// An answer, at `now` seconds since 1970.
    case answered(NetworkResponse, now: Int64)
    /// An answer; an interceptor wants to send the request once more after it.
    case repelled(NetworkResponse, now: Int64)
    /// No answer, or an answer with a broken body.
    case failed(NetworkError)
    case accepted(NetworkResponse)
    case refused(NetworkError)
    case kept(NetworkResponse)
    case waited
  }

  let request: AssembledRequest
  /// The number of attempts so far.
  private(set) var attempts = 0
  /// True if an interceptor may have the request sent again: once, whatever the retry policy.
  private(set) var maySendAgain = true
  private var failures = 0
  private var hasLookedUp = false
  private var offline: String?
  /// The cache's answer, not usable without confirmation.
  private var stale: (response: NetworkResponse?, validators: TransportHeaders)?
  private var hasAskedToValidate = false
  private var received: NetworkResponse?
  private var accepted: NetworkResponse?
  private var retryAfter: Duration?
  private var isFromCache = false

  init(_ request: AssembledRequest) { self.request = request }

  /// The first step: the check of the connection.
  var start: Step { .look(host: request.host) }

  /// Applies the result of the last step; draws from `random` only when a pause begins.
  mutating func next(_ event: Event, random: () -> UInt64) -> Step {
    switch event {
    case .looked(let status): looked(status)
    case .found(let answer): found(answer)
    case .answered(let response, let now): answered(response, now)
    case .repelled(let response, let now): repelled(response, now)
    case .failed(let error): failed(error, random)
    case .accepted(let response): accept(response)
    case .refused(let error): refuse(error, random)
    case .kept(let response): kept(response)
    case .waited: .look(host: request.host)
    }
  }

  // MARK: Before an attempt

  private mutating func looked(_ status: ConnectivityStatus) -> Step {
    if case .offline(let reason) = status { offline = reason } else { offline = nil }
    if let cacheable = request.cacheable, !hasLookedUp {
      hasLookedUp = true
      return .lookUp(cacheable)
    }
    return attempt()
  }

  private mutating func found(_ answer: CacheAnswer) -> Step {
    switch answer {
    case .none:
      return attempt()
    case .fresh(let response):
      return serve(response)
    case .stale(let response, let validators):
      stale = (response, validators)
      return attempt()
    case .unconfirmed(let validators):
      stale = (nil, validators)
      return attempt()
    }
  }

  /// Returns the attempt, unless it would certainly fail.
  private mutating func attempt() -> Step {
    isFromCache = false
    if request.isOnlyIfCached {
      let stale = offline == nil ? nil : serveStale()
      return stale ?? .finish(.failure(NetworkError(.notCached, "no stored answer is usable")))
    }
    if let offline {
      return serveStale() ?? .finish(.failure(NetworkError(.offline, offline)))
    }
    var transport = request.transport
    hasAskedToValidate = false
    if let validators = stale?.validators, !validators.fields.isEmpty {
      transport.headers.replace(with: validators)
      hasAskedToValidate = true
    }
    attempts += 1
    return .attempt(transport)
  }

  /// Returns the stale answer, if the rule and the cache permit the use of it while the server is
  /// unreachable.
  private mutating func serveStale() -> Step? {
    guard request.cacheable?.options.staleWhenOffline == true, let response = stale?.response
    else { return nil }
    stale = nil
    return serve(response)
  }

  private mutating func serve(_ response: NetworkResponse) -> Step {
    isFromCache = true
    return .judge(response)
  }

  // MARK: After an attempt

  private mutating func answered(_ response: NetworkResponse, _ now: Int64) -> Step {
    retryAfter = response.headers["Retry-After"].flatMap { RetryPolicy.retryAfter($0, now: now) }
    if response.status == 304, hasAskedToValidate, let cacheable = request.cacheable {
      return .keep(response, cacheable)
    }
    received = response
    return .judge(response)
  }

  private mutating func repelled(_ response: NetworkResponse, _ now: Int64) -> Step {
    guard maySendAgain else { return answered(response, now) }
    maySendAgain = false
    return attempt()
  }

  private mutating func kept(_ response: NetworkResponse) -> Step {
    if let accepted { return .finish(.success(accepted)) }
    stale = nil
    // The answer confirmed by the server is gone: request the whole one.
    if response.status == 304 { return attempt() }
    return serve(response)
  }

  private mutating func accept(_ response: NetworkResponse) -> Step {
    guard !isFromCache, let cacheable = request.cacheable ?? request.change, let received else {
      return .finish(.success(response))
    }
    // The cache keeps the server's answer: filters check it again whenever it serves.
    accepted = response
    return .keep(received, cacheable)
  }

  private mutating func refuse(_ error: NetworkError, _ random: () -> UInt64) -> Step {
    guard isFromCache else { return failed(error, random) }
    // Today's filters may reject an answer accepted by filters once: ask the server.
    stale = nil
    return attempt()
  }

  private mutating func failed(_ error: NetworkError, _ random: () -> UInt64) -> Step {
    var error = error
    error.retryAfter = error.retryAfter ?? retryAfter
    retryAfter = nil
    failures += 1
    if error.isUnreachable, let step = serveStale() { return step }
    guard error.isTransient, request.mayRepeat, !request.retry.givesUp(afterFailures: failures),
      let delay = request.retry.delay(
        afterFailures: failures, retryAfter: error.retryAfter, random: random())
    else { return .finish(.failure(error)) }
    return .wait(delay)
  }
}

extension NetworkError {
  /// True if no server has answered.
  fileprivate var isUnreachable: Bool {
    switch kind {
    case .offline, .timedOut, .interrupted: true
    default: false
    }
  }
}
