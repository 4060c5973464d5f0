import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("The plan of a request", .hangLimit)
struct RequestPlanTests {
  private typealias Step = RequestPlan.Step
  private typealias Event = RequestPlan.Event

  private static let transport = TransportRequest(.get, "http://host/x")
  private static let ok = NetworkResponse(status: 200, body: [1])
  private static let kept = NetworkResponse(
    status: 200, body: [2], origin: .cache(age: .seconds(9), isStale: true))
  private static let notModified = NetworkResponse(status: 304)
  private static let validators: TransportHeaders = ["If-None-Match": "\"a\""]
  private static let interrupted = NetworkError(.interrupted, "broke")
  private static let offline = NetworkError(.offline, "no interface")

  private func request(
    cache: CacheOptions? = nil, attempts: Int? = 3, mayRepeat: Bool = true
  ) -> AssembledRequest {
    AssembledRequest(
      transport: Self.transport, host: "host",
      retry: RetryPolicy(delayBase: .seconds(1), delayMax: .seconds(8), attemptsMax: attempts),
      mayRepeat: mayRepeat,
      cacheable: cache.map { CacheableRequest(endpoint: "http://host/x", options: $0) })
  }

  /// Feeds the events and compares each step; draws of randomness give the middle.
  private func walk(
    _ request: AssembledRequest, _ walk: [(Event, Step)],
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var plan = RequestPlan(request)
    #expect(plan.start == .look(host: "host"), sourceLocation: sourceLocation)
    for (event, step) in walk {
      let next = plan.next(event, random: { 1 << 63 })
      #expect(next == step, "after \(event)", sourceLocation: sourceLocation)
    }
  }

  private func asking(_ headers: TransportHeaders = [:]) -> Step {
    var request = Self.transport
    request.headers = headers
    return .attempt(request)
  }

  @Test("a plan checks the connectivity, makes an attempt, and runs the filters")
  func plain() {
    let altered = NetworkResponse(status: 200, body: [3])
    walk(
      request(),
      [
        (.looked(.reachable), asking()), (.answered(Self.ok, now: 0), .judge(Self.ok)),
        (.accepted(altered), .finish(.success(altered))),
      ])
  }

  @Test("a plan ends at once without a network")
  func noNetwork() {
    walk(
      request(),
      [(.looked(.offline("no interface")), .finish(.failure(Self.offline)))])
  }

  @Test("a plan retries temporary failures until the policy gives up")
  func retries() {
    walk(
      request(),
      [
        (.looked(.reachable), asking()),
        (.failed(Self.interrupted), .wait(.milliseconds(500))),
        (.waited, .look(host: "host")), (.looked(.reachable), asking()),
        (.failed(Self.interrupted), .wait(.seconds(1))),
        (.waited, .look(host: "host")), (.looked(.reachable), asking()),
        (.failed(Self.interrupted), .finish(.failure(Self.interrupted))),
      ])
  }

  @Test("a plan does not retry if the network has gone")
  func networkLost() {
    walk(
      request(),
      [
        (.looked(.reachable), asking()), (.failed(Self.interrupted), .wait(.milliseconds(500))),
        (.waited, .look(host: "host")),
        (.looked(.offline("no interface")), .finish(.failure(Self.offline))),
      ])
  }

  @Test("a plan does not retry unsafe requests, or permanent failures")
  func noRetries() {
    for (request, error) in [
      (request(mayRepeat: false), Self.interrupted), (request(attempts: 1), Self.interrupted),
      (request(), NetworkError(.secureConnectionFailed, "")),
      (request(), NetworkError(.cancelled, "")), (request(), NetworkError(.responseTooLarge, "")),
      (request(), NetworkError(.fileFailed, "")),
    ] {
      walk(
        request,
        [(.looked(.reachable), asking()), (.failed(error), .finish(.failure(error)))])
    }
  }

  @Test("a plan waits as long as the server asks after a temporary refusal")
  func retryAfter() {
    let busy = NetworkResponse(status: 503, headers: ["Retry-After": "20"])
    let refusal = NetworkError(rejecting: busy, "HTTP 503")
    var told = refusal
    told.retryAfter = .seconds(20)
    walk(
      request(attempts: 2),
      [
        (.looked(.reachable), asking()), (.answered(busy, now: 0), .judge(busy)),
        // The wish is a lower bound, with half of the first ceiling as jitter.
        (.refused(refusal), .wait(.milliseconds(20_500))), (.waited, .look(host: "host")),
        (.looked(.reachable), asking()), (.answered(busy, now: 0), .judge(busy)),
        (.refused(refusal), .finish(.failure(told))),
      ])
  }

  @Test("a date in Retry-After counts as the time until then")
  func retryAfterDate() {
    let busy = NetworkResponse(
      status: 429, headers: ["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"])
    walk(
      request(),
      [
        (.looked(.reachable), asking()), (.answered(busy, now: 784_111_770), .judge(busy)),
        (.refused(NetworkError(rejecting: busy, "")), .wait(.milliseconds(7_500))),
      ])
  }

  @Test("a plan forgets the pause of one answer when the next attempt breaks off")
  func retryAfterOnce() {
    let busy = NetworkResponse(status: 503, headers: ["Retry-After": "20"])
    walk(
      request(attempts: 2),
      [
        (.looked(.reachable), asking()), (.answered(busy, now: 0), .judge(busy)),
        (.refused(NetworkError(rejecting: busy, "")), .wait(.milliseconds(20_500))),
        (.waited, .look(host: "host")), (.looked(.reachable), asking()),
        (.failed(Self.interrupted), .finish(.failure(Self.interrupted))),
      ])
  }

  @Test("a plan ends with a permanent refusal")
  func refusal() {
    let missing = NetworkResponse(status: 404)
    let refusal = NetworkError(rejecting: missing, "HTTP 404")
    walk(
      request(),
      [
        (.looked(.reachable), asking()), (.answered(missing, now: 0), .judge(missing)),
        (.refused(refusal), .finish(.failure(refusal))),
      ])
  }

  @Test("a plan draws random numbers only for pauses")
  func randomness() {
    var plan = RequestPlan(request(attempts: 1))
    var draws = 0
    let random: () -> UInt64 = {
      draws += 1
      return 0
    }
    _ = plan.next(.looked(.reachable), random: random)
    _ = plan.next(.failed(Self.interrupted), random: random)
    #expect(draws == 0)
  }
}

extension RequestPlanTests {
  private func lookUp(_ options: CacheOptions) -> Step {
    .lookUp(CacheableRequest(endpoint: "http://host/x", options: options))
  }

  private func keep(_ response: NetworkResponse, _ options: CacheOptions) -> Step {
    .keep(response, CacheableRequest(endpoint: "http://host/x", options: options))
  }

  @Test("a plan needs no server if the cache has a fresh answer, with or without a network")
  func fresh() {
    let options = CacheOptions()
    for status in [ConnectivityStatus.reachable, .offline("no interface")] {
      walk(
        request(cache: options),
        [
          (.looked(status), lookUp(options)), (.found(.fresh(Self.kept)), .judge(Self.kept)),
          (.accepted(Self.kept), .finish(.success(Self.kept))),
        ])
    }
  }

  @Test("a plan caches the server's answer, not the filters' result")
  func store() {
    let options = CacheOptions()
    let altered = NetworkResponse(status: 200, body: [3])
    walk(
      request(cache: options),
      [
        (.looked(.reachable), lookUp(options)), (.found(.none), asking()),
        (.answered(Self.ok, now: 0), .judge(Self.ok)),
        (.accepted(altered), keep(Self.ok, options)),
        (.kept(Self.ok), .finish(.success(altered))),
      ])
  }

  @Test("a plan does not cache refused answers")
  func storeNothing() {
    let options = CacheOptions()
    let refusal = NetworkError(rejecting: Self.ok, "no task")
    walk(
      request(cache: options),
      [
        (.looked(.reachable), lookUp(options)), (.found(.none), asking()),
        (.answered(Self.ok, now: 0), .judge(Self.ok)),
        (.refused(refusal), .finish(.failure(refusal))),
      ])
  }

  @Test("a plan asks the server to confirm a stale answer")
  func revalidation() {
    let options = CacheOptions()
    let renewed = NetworkResponse(
      status: 200, body: [2], origin: .cache(age: .zero, isStale: false))
    walk(
      request(cache: options),
      [
        (.looked(.reachable), lookUp(options)),
        (.found(.stale(Self.kept, validators: Self.validators)), asking(Self.validators)),
        (.answered(Self.notModified, now: 0), keep(Self.notModified, options)),
        (.kept(renewed), .judge(renewed)), (.accepted(renewed), .finish(.success(renewed))),
      ])
  }

  @Test("a plan requests the whole answer if the confirmed one is gone")
  func confirmedButGone() {
    let options = CacheOptions()
    walk(
      request(cache: options),
      [
        (.looked(.reachable), lookUp(options)),
        (.found(.stale(Self.kept, validators: Self.validators)), asking(Self.validators)),
        (.answered(Self.notModified, now: 0), keep(Self.notModified, options)),
        (.kept(Self.notModified), asking()),
        // The request had no condition: a 304 is no usable response.
        (.answered(Self.notModified, now: 0), .judge(Self.notModified)),
      ])
  }

  @Test("a plan asks the server if the filters refuse the cached answer")
  func refusedFromCache() {
    let options = CacheOptions()
    walk(
      request(cache: options),
      [
        (.looked(.reachable), lookUp(options)), (.found(.fresh(Self.kept)), .judge(Self.kept)),
        (.refused(NetworkError(rejecting: Self.kept, "")), asking()),
        (.answered(Self.ok, now: 0), .judge(Self.ok)), (.accepted(Self.ok), keep(Self.ok, options)),
      ])
  }

  @Test("a plan uses a stale answer while no server can be reached, if the rule allows it")
  func staleWhenOffline() {
    let options = CacheOptions(staleWhenOffline: true)
    let found = Event.found(.stale(Self.kept, validators: Self.validators))
    let served: [(Event, Step)] = [(.accepted(Self.kept), .finish(.success(Self.kept)))]
    walk(
      request(cache: options),
      [(.looked(.offline("no interface")), lookUp(options)), (found, .judge(Self.kept))] + served)
    // The user does not wait for further attempts.
    for kind in [NetworkError.Kind.offline, .timedOut, .interrupted] {
      walk(
        request(cache: options),
        [
          (.looked(.reachable), lookUp(options)), (found, asking(Self.validators)),
          (.failed(NetworkError(kind, "")), .judge(Self.kept)),
        ] + served)
    }
  }

  @Test("a plan does not use a stale answer otherwise")
  func staleOtherwise() {
    let strict = CacheOptions()
    let found = Event.found(.stale(Self.kept, validators: [:]))
    walk(
      request(cache: strict),
      [
        (.looked(.offline("no interface")), lookUp(strict)),
        (found, .finish(.failure(Self.offline))),
      ])
    let lenient = CacheOptions(staleWhenOffline: true)
    let missing = NetworkResponse(status: 404)
    let refusal = NetworkError(rejecting: missing, "HTTP 404")
    walk(
      request(cache: lenient),
      [
        (.looked(.reachable), lookUp(lenient)), (found, asking()),
        (.answered(missing, now: 0), .judge(missing)),
        (.refused(refusal), .finish(.failure(refusal))),
      ])
  }

  @Test("a plan asks the cache once, with any number of attempts")
  func oneLookup() {
    let options = CacheOptions()
    walk(
      request(cache: options),
      [
        (.looked(.reachable), lookUp(options)), (.found(.none), asking()),
        (.failed(Self.interrupted), .wait(.milliseconds(500))), (.waited, .look(host: "host")),
        (.looked(.reachable), asking()),
      ])
  }
}
