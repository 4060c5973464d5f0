import FerryNetworking
import FerryTestSupport
import Synchronization
import Testing

@Suite("The network client", .hangLimit)
struct NetworkClientTests {
  private let still = StillSurroundings()

  private func client(
    _ transport: ScriptedTransport, connectivity: any Connectivity = AssumedConnectivity(),
    cache: (any ResponseCache)? = nil, _ change: (inout NetworkConfiguration) -> Void = { _ in }
  ) -> NetworkClient {
    var configuration = NetworkConfiguration("http://host/api")
    change(&configuration)
    return NetworkClient(
      configuration, transport: transport, connectivity: connectivity, cache: cache,
      surroundings: still.surroundings)
  }

  private func failure(
    _ client: NetworkClient, _ request: NetworkRequest = NetworkRequest("/x")
  ) async -> NetworkError? {
    do {
      _ = try await client.send(request)
      return nil
    } catch {
      return error
    }
  }

  @Test("a response contains the server's status, fields and body")
  func answer() async throws {
    let transport = ScriptedTransport(.answer(201, ["A": "b"], "text"))
    let response = try await client(transport).send(NetworkRequest("/x"))
    #expect(
      response
        == NetworkResponse(status: 201, headers: ["A": "b"], body: Array("text".utf8)))
    #expect(transport.requests.map(\.url) == ["http://host/api/x"])
  }

  // MARK: Connectivity

  private struct NoNetwork: Connectivity {
    func status(to host: String) -> ConnectivityStatus { .offline("no way to \(host)") }
  }

  @Test("a client without a network reports it at once, and sends no request")
  func offline() async {
    let transport = ScriptedTransport(.answer(200))
    let error = await failure(client(transport, connectivity: NoNetwork()))
    #expect(error == NetworkError(.offline, "no way to host"))
    #expect(error?.isTransient == true)
    #expect(transport.requests.isEmpty && still.pauses.isEmpty)
  }

  // MARK: Filters

  /// Records `name`, and rejects bodies with this name.
  private struct Marking: ResponseFilter {
    let name: String
    func check(
      _ response: NetworkResponse, for request: NetworkRequest
    ) throws(NetworkError) -> NetworkResponse {
      if response.body == Array(name.utf8) {
        throw NetworkError(rejecting: response, "\(name) on \(request.path)")
      }
      var response = response
      response.headers.add("Seen", name)
      return response
    }
  }

  @Test("the base's filter runs first, then the request's own")
  func filterOrder() async throws {
    let transport = ScriptedTransport(.answer(200), .answer(200))
    let client = client(transport) {
      $0.filter = FilterChain(SuccessFilter(), Marking(name: "base"))
    }
    let both = try await client.send(NetworkRequest("/x", filter: Marking(name: "own")))
    #expect(both.headers.values(of: "Seen") == ["base", "own"])
    let one = try await client.send(NetworkRequest("/x"))
    #expect(one.headers.values(of: "Seen") == ["base"])
  }

  @Test(
    "a filter's refusal contains its reason and the refused answer", arguments: ["base", "own"])
  func filterRefusal(name: String) async {
    let client = client(ScriptedTransport(.answer(200, [:], name))) {
      $0.filter = Marking(name: "base")
    }
    let error = await failure(client, NetworkRequest("/x", filter: Marking(name: "own")))
    #expect(error?.kind == .rejected(status: 200, reason: "\(name) on /x"))
    #expect(error?.response?.body == Array(name.utf8))
    #expect(error?.isTransient == false)
  }

  @Test(
    "a client refuses an unsuccessful status, unless configured otherwise",
    arguments: [(200, true), (204, true), (304, false), (302, false), (404, false), (501, false)])
  func statuses(status: Int, isAccepted: Bool) async {
    let error = await failure(client(ScriptedTransport(.answer(status, [:], "why"))))
    #expect((error == nil) == isAccepted)
    if let error {
      #expect(error.kind == .rejected(status: status, reason: "HTTP \(status)"))
      #expect(error.response?.body == Array("why".utf8))
    }
    let lenient = client(ScriptedTransport(.answer(status))) { $0.filter = Marking(name: "x") }
    #expect(await failure(lenient) == nil)
  }

  @Test("a client accepts a 304 if the caller set a condition")
  func notModified() async throws {
    let client = client(ScriptedTransport(.answer(304)))
    let request = NetworkRequest("/x", headers: ["If-None-Match": "\"a\""])
    #expect(try await client.send(request).status == 304)
  }

  // MARK: Trying again

  @Test("a client retries temporary failures, with the pauses of the policy and of the server")
  func retries() async throws {
    let transport = ScriptedTransport(
      .error(.interrupted), .answer(503, ["Retry-After": "7"]),
      .answer(429, ["Retry-After": "Sun, 06 Nov 1994 08:49:40 GMT"]), .answer(200))
    let response = try await client(transport).send(NetworkRequest("/x"))
    #expect(response.status == 200)
    #expect(transport.requests.count == 4)
    #expect(still.pauses == [.milliseconds(250), .milliseconds(7_250), .milliseconds(3_250)])
  }

  @Test("a request's own policy limits its attempts, and the error has the server's pause")
  func givingUp() async {
    let transport = ScriptedTransport(.answer(503, ["Retry-After": "7"]))
    let error = await failure(client(transport), NetworkRequest("/x", retry: .never))
    #expect(error?.kind == .rejected(status: 503, reason: "HTTP 503"))
    #expect(error?.retryAfter == .seconds(7) && error?.isTransient == true)
    #expect(still.pauses.isEmpty)
  }

  @Test("a client repeats only requests that are safe to repeat")
  func repeatability() async throws {
    let once = ScriptedTransport(.error(.interrupted))
    #expect(
      await failure(client(once), NetworkRequest("/x", method: .post))?.kind == .interrupted)
    let twice = ScriptedTransport(.error(.interrupted), .answer(200))
    _ = try await client(twice).send(NetworkRequest("/x", method: .post, isRepeatable: true))
    #expect(twice.requests.count == 2)
  }

  @Test("a cancelled client stops waiting")
  func cancelledPause() async {
    let transport = ScriptedTransport(.error(.interrupted), .answer(200))
    let client = client(transport)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await failure(client)?.kind
    }
    #expect(await task.value == .cancelled)
    #expect(transport.requests.count == 1)
  }

  // MARK: Cache

  /// Responds by a script and records calls.
  private final class NotingCache: ResponseCache {
    let answer: CacheAnswer
    let stored = Mutex<[NetworkResponse]>([])
    let asked = Mutex<[CacheableRequest]>([])

    init(_ answer: CacheAnswer) { self.answer = answer }

    func lookup(_ request: CacheableRequest) async -> CacheAnswer {
      asked.withLock { $0.append(request) }
      return answer
    }

    func store(
      _ response: NetworkResponse, for request: CacheableRequest
    ) async -> NetworkResponse {
      stored.withLock { $0.append(response) }
      guard case .stale(var kept, _) = answer, response.status == 304 else { return response }
      kept.headers["Renewed"] = "yes"
      return kept
    }
  }

  private static let kept = NetworkResponse(
    status: 200, body: [9], origin: .cache(age: .seconds(60), isStale: false))

  @Test("a client answers from the cache without a server, through the filters")
  func cached() async throws {
    let (cache, transport) = (NotingCache(.fresh(Self.kept)), ScriptedTransport())
    let client = client(transport, cache: cache) {
      $0.cache = .use()
      $0.filter = Marking(name: "base")
    }
    let response = try await client.send(NetworkRequest("/x", query: [QueryItem("a", "b")]))
    #expect(response.origin == Self.kept.origin && response.headers["Seen"] == "base")
    #expect(transport.requests.isEmpty)
    #expect(cache.asked.withLock { $0.map(\.endpoint) } == ["http://host/api/x"])
  }

  @Test("a client caches a fetched response in the server's form")
  func stored() async throws {
    let cache = NotingCache(.none)
    let client = client(ScriptedTransport(.answer(200, [:], "new")), cache: cache) {
      $0.filter = Marking(name: "base")
    }
    let response = try await client.send(NetworkRequest("/x", cache: .use()))
    #expect(response.headers["Seen"] == "base")
    #expect(
      cache.stored.withLock { $0 } == [NetworkResponse(status: 200, body: Array("new".utf8))])
  }

  @Test("a client revalidates a stale response, and answers with the confirmed one")
  func confirmed() async throws {
    let cache = NotingCache(.stale(Self.kept, validators: ["If-None-Match": "\"a\""]))
    let transport = ScriptedTransport(.answer(304))
    let response = try await client(transport, cache: cache).send(
      NetworkRequest("/x", cache: .use()))
    #expect(transport.requests.first?.headers["If-None-Match"] == "\"a\"")
    #expect(response.body == [9] && response.headers["Renewed"] == "yes")
  }

  @Test("a client answers with a stale response without a network, if the request allows it")
  func stale() async throws {
    let cache = NotingCache(.stale(Self.kept, validators: [:]))
    let client = client(ScriptedTransport(), connectivity: NoNetwork(), cache: cache)
    let lenient = NetworkRequest("/x", cache: .use(CacheOptions(staleWhenOffline: true)))
    #expect(try await client.send(lenient) == Self.kept)
    #expect(await failure(client, NetworkRequest("/x", cache: .use()))?.kind == .offline)
  }

  @Test("a client does not use the cache if the rule or the method forbids it")
  func uncached() async throws {
    let cache = NotingCache(.fresh(Self.kept))
    let transport = ScriptedTransport(.answer(200), .answer(200), .answer(200))
    let client = client(transport, cache: cache) { $0.cache = .use() }
    _ = try await client.send(NetworkRequest("/x", cache: .ignore))
    _ = try await client.send(NetworkRequest("/x", method: .post))
    _ = try await client.stream(NetworkRequest("/x"))
    #expect(transport.requests.count == 3)
    #expect(cache.asked.withLock { $0.isEmpty })
  }

  // MARK: Streams

  @Test("a client passes on a stream's body only after the filters accepted its head")
  func stream() async throws {
    let transport = ScriptedTransport(
      .error(.interrupted), .answer(503), .answer(200, [:], "body"))
    let client = client(transport) { $0.filter = FilterChain(SuccessFilter(), Marking(name: "b")) }
    let stream = try await client.stream(NetworkRequest("/x"))
    #expect(stream.status == 200 && stream.headers["Seen"] == "b")
    var body: [UInt8] = []
    for try await part in stream.body { body += part }
    #expect(body == Array("body".utf8))
    #expect(transport.requests.count == 3)
    // The refused one was ended as well.
    #expect(transport.streamsLeft == 2)
  }

  @Test("a client reports the reasons of a refused stream, and ends the stream")
  func refusedStream() async {
    let transport = ScriptedTransport(.answer(403, [:], "not for you"))
    let client = client(transport)
    do throws(NetworkError) {
      _ = try await client.stream(NetworkRequest("/x"))
      Issue.record("it was accepted")
    } catch {
      #expect(error.kind == .rejected(status: 403, reason: "HTTP 403"))
      #expect(error.response?.body == Array("not for you".utf8))
    }
    #expect(transport.streamsLeft == 1)
  }
}
