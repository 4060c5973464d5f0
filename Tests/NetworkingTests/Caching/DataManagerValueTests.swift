import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryCaching

extension User: Equatable {
  static func == (one: User, other: User) -> Bool { one.name == other.name }
}

@Suite("Values of the data manager", .hangLimit)
struct DataManagerValueTests {
  private func manager(
    _ transport: AnsweringTransport, envelope: Envelope? = Envelope(payload: "data", code: "code"),
    _ change: (inout NetworkConfiguration) -> Void = { _ in }
  ) -> DataManager {
    var configuration = NetworkConfiguration("http://host")
    configuration.cache = .use()
    configuration.retry = .never
    change(&configuration)
    return DataManager(
      configuration, folder: nil, envelope: envelope, transport: transport,
      connectivity: AssumedConnectivity())
  }

  private func answering(_ bodies: [String: (Int, String)]) -> AnsweringTransport {
    AnsweringTransport { request async throws(TransportError) in
      let path = String(request.url.dropFirst("http://host".count).prefix { $0 != "?" })
      let (status, body) = bodies[path] ?? (404, "")
      return TransportResponse(
        status: status,
        headers: ["Content-Type": "application/json", "Cache-Control": "max-age=60"],
        body: Array(body.utf8))
    }
  }

  private func failure<Value: Decodable & Sendable>(
    _ type: Value.Type, _ manager: DataManager, _ path: String
  ) async -> NetworkError? {
    do throws(NetworkError) {
      _ = try await manager.value(type, for: NetworkRequest(path))
      return nil
    } catch {
      return error
    }
  }

  @Test("an answer becomes the caller's value, and the cache serves it again")
  func value() async throws {
    let transport = answering(["/me": (200, #"{"code":0,"data":{"name":"Ada"}}"#)])
    let manager = manager(transport)
    for _ in 1...2 {
      let user: User = try await manager.value(for: NetworkRequest("/me"))
      #expect(user == User(name: "Ada"))
    }
    #expect(transport.requests.count == 1)
    let plain = DataManagerValueTests().manager(
      answering(["/me": (200, #"{"name":"Bob"}"#)]), envelope: nil)
    #expect(try await plain.value(User.self, for: NetworkRequest("/me")).name == "Bob")
  }

  @Test("an error of the server's own is typed, in a rejected response as well, and never kept")
  func business() async throws {
    let transport = answering([
      "/a": (200, #"{"code":12,"message":"no seats"}"#),
      "/b": (400, #"{"code":7,"message":"bad date"}"#), "/c": (500, "{}"),
    ])
    let manager = manager(transport)
    for _ in 1...2 {
      let error = await failure(User.self, manager, "/a")
      #expect(error?.kind == .business(code: "12") && error?.message.contains("no seats") == true)
    }
    #expect(transport.requests.count == 2)
    let rejected = await failure(User.self, manager, "/b")
    #expect(rejected?.kind == .business(code: "7") && rejected?.response?.status == 400)
    #expect(
      await failure(User.self, manager, "/c")?.kind == .rejected(status: 500, reason: "HTTP 500"))
  }

  @Test("an answer of another shape is an error with the place, and without the value")
  func undecodable() async throws {
    let manager = manager(
      answering([
        "/a": (200, #"{"code":0,"data":{"name":["secret"]}}"#), "/b": (200, "secret"),
        "/c": (200, #"{"code":0,"data":{"nom":"secret"}}"#),
      ]))
    let messages = [
      "/a": "data.name is no String", "/b": "not valid JSON", "/c": "“name” is missing in data",
    ]
    for (path, message) in messages.sorted(by: { $0.key < $1.key }) {
      let error = await failure(User.self, manager, path)
      #expect(error?.kind == .undecodable)
      #expect(error?.message.contains(message) == true, "\(error?.message ?? "none")")
      #expect(error?.message.contains("secret") == false)
    }
  }

  @Test("requests with one key of their own share an answer, whatever their parameters")
  func ownKey() async throws {
    let transport = answering(["/me": (200, #"{"code":0,"data":{"name":"Ada"}}"#)])
    let manager = manager(transport)
    for trace in ["1", "2"] {
      _ = try await manager.value(
        User.self,
        for: NetworkRequest(
          "/me", query: [QueryItem("trace", trace)], cache: .use(CacheOptions(key: "me"))))
    }
    #expect(transport.requests.count == 1)
    let kept = await manager.requests.get("me")
    #expect(kept.map { String(decoding: $0.body, as: UTF8.self).contains("Ada") } == true)
    await manager.requests.put(
      Array(#"{"code":0,"data":{"name":"Eve"}}"#.utf8), for: "me", contentType: "application/json")
    let put = try await manager.value(
      User.self, for: NetworkRequest("/me", cache: .use(CacheOptions(key: "me"))))
    #expect(put.name == "Eve")
  }

  @Test("the answers of two users are separate, although only interceptors know the users")
  func users() async throws {
    let folder = Folder()
    let transport = AnsweringTransport { request async throws(TransportError) in
      let token = request.headers["Authorization"] ?? "-"
      return TransportResponse(
        status: 200, headers: ["Cache-Control": "max-age=60"],
        body: Array("{\"name\":\"\(token)\"}".utf8))
    }
    for name in ["ada", "bob", "ada"] {
      var configuration = NetworkConfiguration("http://host")
      configuration.cache = .use()
      configuration.interceptors = [TokenInterceptor(user: name) { _ in name }]
      let manager = DataManager(
        configuration, folder: folder.path, transport: transport,
        connectivity: AssumedConnectivity())
      #expect(
        try await manager.value(User.self, for: NetworkRequest("/me")).name == "Bearer \(name)")
    }
    #expect(transport.requests.count == 2)
  }

  // MARK: Groups

  @Test("a group returns the values of different types")
  func group() async throws {
    let manager = manager(
      answering([
        "/me": (200, #"{"code":0,"data":{"name":"Ada"}}"#),
        "/counts": (200, #"{"code":0,"data":[1,2]}"#),
      ]))
    let (user, counts) = try await manager.values(
      NetworkRequest("/me").answer(User.self), NetworkRequest("/counts").answer([Int].self))
    #expect(user.name == "Ada" && counts == [1, 2])
    let (good, bad) = await manager.results(
      NetworkRequest("/me").answer(User.self), NetworkRequest("/none").answer([Int].self))
    #expect(try good.get().name == "Ada")
    #expect(throws: NetworkError.self) { try bad.get() }
  }

  /// Answers `/bad` with an error, and leaves all other requests open until they are cancelled.
  private func hanging() -> AnsweringTransport {
    AnsweringTransport { request async throws(TransportError) in
      if request.url.hasSuffix("/bad") { return TransportResponse(status: 500) }
      do { try await Task.sleep(for: .seconds(3600)) } catch {}
      throw TransportError(.cancelled, "cancelled")
    }
  }

  @Test("the first error ends the other requests of a group and is thrown, in any order")
  func firstError() async throws {
    let manager = manager(hanging())
    let slow = NetworkRequest("/slow").answer(User.self)
    let bad = NetworkRequest("/bad").answer(User.self)
    let expected = NetworkError.Kind.rejected(status: 500, reason: "HTTP 500")
    let first = await #expect(throws: NetworkError.self) {
      _ = try await manager.values(bad, slow)
    }
    #expect(first?.kind == expected)
    let last = await #expect(throws: NetworkError.self) {
      _ = try await manager.values(slow, bad)
    }
    #expect(last?.kind == expected)
    let list = await #expect(throws: NetworkError.self) {
      _ = try await manager.values(for: [slow, bad, slow])
    }
    #expect(list?.kind == expected)
  }

  @Test("a cancelled group ends all its requests")
  func cancelledGroup() async throws {
    let manager = manager(hanging())
    let one = NetworkRequest("/1").answer(User.self)
    let two = NetworkRequest("/2").answer([User].self)
    let task = Task { try await manager.values(one, two).0 }
    let all = Task { await manager.results(for: [one, one, one], atOnce: 2) }
    task.cancel()
    all.cancel()
    await #expect(throws: NetworkError.self) { _ = try await task.value }
    #expect(await all.value.count == 3)
  }

  @Test("a list of requests keeps its order, and runs a bounded number at once")
  func list() async throws {
    let running = Mutex((now: 0, most: 0))
    let transport = AnsweringTransport { request async throws(TransportError) in
      running.withLock { running in
        running.now += 1
        running.most = max(running.most, running.now)
      }
      await Task.yield()
      running.withLock { $0.now -= 1 }
      let number = request.url.split(separator: "/").last ?? ""
      return TransportResponse(status: number == "7" ? 500 : 200, body: Array(number.utf8))
    }
    let manager = manager(transport, envelope: nil)
    let requests = (0..<20).map { NetworkRequest("/\($0)").answer(Int.self) }
    let results = await manager.results(for: requests, atOnce: 3)
    #expect(results.map { try? $0.get() } == (0..<20).map { $0 == 7 ? nil : $0 })
    #expect(running.withLock { $0.most } <= 3)
    #expect(try await manager.values(for: Array(requests.prefix(5))) == Array(0..<5))
  }

  @Test("every request is logged in one place, images included")
  func log() async throws {
    let records = Mutex<[String]>([])
    let manager = manager(answering(["/me": (200, #"{"code":0,"data":{"name":"Ada"}}"#)])) {
      $0.log = { record in records.withLock { $0.append("\(record.outcome)") } }
    }
    for _ in 1...2 { _ = try await manager.value(User.self, for: NetworkRequest("/me")) }
    _ = try? await manager.image(for: "http://host/none.png")
    let log = records.withLock { $0 }
    #expect(log.count == 3 && log[0] == "network(status: 200)" && log[1].hasPrefix("cache("))
    #expect(log.last?.contains("rejected") == true)
  }
}
