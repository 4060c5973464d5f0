import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncClient

/// Programs started without a network, and their first contact with the server.
@Suite("The first contact", .hangLimit)
struct FirstContactTests {
  private func keeper(_ fetch: @escaping TokenFetcher.Fetch) -> TokenFetcher {
    TokenFetcher(fetch: fetch)
  }

  /// Opens a replica of the space at a path.
  private func open(
    _ directory: TemporaryDirectory, _ transport: any Transport, _ token: TokenSource = .none,
    space: String = "demo"
  ) async throws -> Replica {
    var surroundings = ReplicaSurroundings.system
    surroundings.random = { 0 }
    surroundings.sleep = { _ in }
    let address = try ServerAddress(
      checking: "http://127.0.0.1:1", space: space, certificateAuthorities: nil)
    return try await Replica.open(
      directory.file("replica.db").path, server: address, token: token, transport: transport,
      in: surroundings)
  }

  private func writeNote(_ replica: Replica) async throws {
    try await replica.write { database in
      try database.execute("CREATE TABLE IF NOT EXISTS notes(id TEXT PRIMARY KEY, body TEXT)")
    }
    try await replica.track("notes")
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'offline')") }
  }

  private static func problem(_ code: ProblemCode, _ status: Int) -> TransportResponse {
    TransportResponse(
      status: status, headers: ["Content-Type": "application/problem+json"],
      body: Problem(code, "as the test requires").encoded())
  }

  @Test("a replica opens and takes writes without a network, and a later sync sends them")
  func withoutNetwork() async throws {
    let directory = try TemporaryDirectory()
    let isOnline = Atomic(false)
    let server = ScriptedServer()
    let transport = SwitchedTransport(server) { isOnline.load(ordering: .relaxed) }
    let replica = try await open(directory, transport)
    try await writeNote(replica)
    await #expect {
      try await replica.sync()
    } throws: {
      if case .offline = $0 as? ReplicaError { true } else { false }
    }
    #expect(try await replica.status().pending == 1)
    isOnline.store(true, ordering: .relaxed)
    #expect(try await replica.sync().pushed == 1)
    #expect(server.operations.count == 1)
  }

  @Test("the first sync creates an absent space, and a later one does not")
  func createsSpace() async throws {
    let directory = try TemporaryDirectory()
    let exists = Atomic(false)
    let server = ScriptedServer { request, _ in
      if request.method == .put { exists.store(true, ordering: .relaxed) }
      return exists.load(ordering: .relaxed) ? nil : Self.problem(.unknownSpace, 404)
    }
    let replica = try await open(directory, server)
    try await writeNote(replica)
    #expect(try await replica.sync().pushed == 1)
    exists.store(false, ordering: .relaxed)
    await #expect {
      try await replica.sync()
    } throws: {
      guard case .refused(let problem) = $0 as? ReplicaError else { return false }
      return problem.code == .unknownSpace
    }
    #expect(server.requests.count { $0.method == .put } == 1)
  }

  @Test("a space that the server had when the replica was connected is not created again")
  func deletedBeforeFirstSync() async throws {
    let directory = try TemporaryDirectory()
    let isDeleted = Atomic(false)
    let server = ScriptedServer { _, _ in
      isDeleted.load(ordering: .relaxed) ? Self.problem(.unknownSpace, 404) : nil
    }
    let replica = try await open(directory, server)
    try await replica.connect(to: "http://127.0.0.1:1", space: "demo")
    isDeleted.store(true, ordering: .relaxed)
    let count = server.requests.count { $0.method == .put }
    await #expect(throws: ReplicaError.self) { try await replica.sync() }
    #expect(server.requests.count { $0.method == .put } == count)
  }

  @Test("a sync reports an absent space that its token may not create")
  func mayNotCreate() async throws {
    let server = ScriptedServer { request, _ in
      request.method == .put
        ? Self.problem(.forbidden, 403) : Self.problem(.unknownSpace, 404)
    }
    let directory = try TemporaryDirectory()
    let replica = try await open(directory, server)
    await #expect {
      try await replica.sync()
    } throws: {
      guard case .refused(let problem) = $0 as? ReplicaError else { return false }
      return problem.code == .unknownSpace
    }
  }

  @Test("opening again changes nothing, and another space is refused after a sync")
  func again() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer()
    let replica = try await open(directory, server, .fixed("secret"))
    let before = try await replica.thread.run { try $0.dataVersion() }
    _ = try await open(directory, server, .fixed("secret"))
    #expect(try await replica.thread.run { try $0.dataVersion() } == before)
    try await replica.sync()
    await #expect {
      _ = try await open(directory, server, space: "other")
    } throws: {
      if case .cannotOpen = $0 as? ReplicaError { true } else { false }
    }
    #expect(server.requests.allSatisfy { $0.headers["Authorization"] == "Bearer secret" })
  }

  @Test(
    "an address that is not valid is refused at once",
    arguments: ["ftp://example.org", "example.org", "http://a b", "http://", ""])
  func badAddress(_ url: String) throws {
    #expect {
      try ServerAddress(checking: url, space: "demo", certificateAuthorities: nil)
    } throws: {
      if case .badAddress = $0 as? ReplicaError { true } else { false }
    }
  }

  // MARK: Tokens

  @Test("a token that the server rejects is fetched again, once")
  func refreshed() async throws {
    let valid = Mutex("one")
    let server = ScriptedServer { request, _ in
      request.headers["Authorization"] == "Bearer \(valid.withLock { $0 })"
        ? nil : Self.problem(.unauthorized, 401)
    }
    let rejected = Mutex<[String?]>([])
    let source = TokenSource.refreshed { token in
      rejected.withLock { $0.append(token) }
      return valid.withLock { $0 }
    }
    let directory = try TemporaryDirectory()
    let replica = try await open(directory, server, source)
    try await writeNote(replica)
    try await replica.sync()
    valid.withLock { $0 = "two" }
    try await replica.sync()
    #expect(rejected.withLock { $0 } == [nil, "one"])
    valid.withLock { $0 = "unknown to the app" }
    let stale = try await open(directory, server, .refreshed { _ in "old" })
    await #expect {
      try await stale.sync()
    } throws: {
      guard case .refused(let problem) = $0 as? ReplicaError else { return false }
      return problem.code == .unauthorized
    }
  }

  @Test("fetched tokens go only to the server and the space for which they are")
  func bound() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer()
    let replica = try await open(directory, server, .refreshed { _ in "secret" })
    try await replica.thread.run {
      try $0.connection.execute("UPDATE ferry_replica SET server = 'http://127.0.0.1:2'")
    }
    await #expect {
      try await replica.sync()
    } throws: {
      if case .tokenMissing = $0 as? ReplicaError { true } else { false }
    }
    #expect(server.requests.isEmpty)
  }

  @Test(
    "a token that no header field can carry is refused",
    arguments: ["", "two words", "line\nbreak", String(repeating: "x", count: 16_385)])
  func badToken(_ token: String) async throws {
    let keeper = keeper { _ in token }
    await #expect {
      try await keeper.token()
    } throws: {
      if case .tokenMissing = $0 as? ReplicaError { true } else { false }
    }
  }

  @Test("a cancelled request leaves the fetch, which ends for the others and for later ones")
  func cancelledFetch() async throws {
    let calls = Atomic(0)
    let (answers, answer) = AsyncStream<String>.makeStream()
    let keeper = keeper { _ in
      calls.add(1, ordering: .relaxed)
      for await token in answers { return token }
      return "cancelled"
    }
    let first = Task { try await keeper.token() }
    try await eventually("the fetch") { calls.load(ordering: .relaxed) > 0 }
    let second = Task { try await keeper.token() }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    answer.yield("token")
    #expect(try await second.value == "token")
    #expect(try await keeper.token() == "token")
    #expect(calls.load(ordering: .relaxed) == 1)
  }

  @Test("the spaces of a file share one call of the app's closure, also after a 401")
  func sharedBySpaces() async throws {
    let valid = Mutex("one")
    let server = ScriptedServer { request, _ in
      request.headers["Authorization"] == "Bearer \(valid.withLock { $0 })"
        ? nil : Self.problem(.unauthorized, 401)
    }
    let rejected = Mutex<[String?]>([])
    let running = Atomic(0)
    let source = TokenSource.refreshed { token in
      #expect(running.add(1, ordering: .relaxed).newValue == 1)
      defer { running.subtract(1, ordering: .relaxed) }
      rejected.withLock { $0.append(token) }
      await Task.yield()
      return valid.withLock { $0 }
    }
    let directory = try TemporaryDirectory()
    let replica = try await open(directory, server, source)
    for space in ["family", "club"] { try await replica.spaces.join(space) }
    // The same value given again is the same source.
    try await replica.spaces.join("school", token: source)
    try await replica.sync()
    #expect(rejected.withLock { $0 } == [nil])
    valid.withLock { $0 = "two" }
    try await replica.sync()
    #expect(rejected.withLock { $0 } == [nil, "one"])
  }

  @Test("a damaged token file is replaced by a new token, and kept without one")
  func damagedToken() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("replica.db").path
    let address = try ServerAddress(checking: "http://127.0.0.1:1", space: "demo")
    var surroundings = ReplicaSurroundings.system
    surroundings.credentials = FileCredentialStore()
    let server = ScriptedServer()
    func open(_ token: TokenSource) async throws -> Replica {
      try await Replica.open(
        path, server: address, token: token, transport: server, in: surroundings)
    }
    _ = try await open(.fixed("old"))
    _ = try await open(.stored).sync()
    #expect(server.requests.last?.headers["Authorization"] == "Bearer old")
    try "damaged".write(
      toFile: FileCredentialStore.file(of: path), atomically: true, encoding: .utf8)
    await #expect(throws: ReplicaError.self) { try await open(.stored).sync() }
    _ = try await open(.fixed("new")).sync()
    #expect(server.requests.last?.headers["Authorization"] == "Bearer new")
    _ = try await open(.none).sync()
    #expect(server.requests.last?.headers["Authorization"] == nil)
  }

  @Test("one fetch serves all requests, and the next one starts after a failure")
  func oneFetch() async throws {
    struct Away: Error {}
    let calls = Atomic(0)
    let keeper = keeper { _ in
      let call = calls.add(1, ordering: .relaxed).newValue
      if call == 1 { throw Away() }
      return "token-\(call)"
    }
    await #expect(throws: ReplicaError.self) { try await keeper.token() }
    let tokens = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<10 { group.addTask { try await keeper.token() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(tokens == ["token-2"])
  }
}

/// A server that can be reached only sometimes.
private final class SwitchedTransport: Transport {
  private let server: ScriptedServer
  private let isOnline: @Sendable () -> Bool

  init(_ server: ScriptedServer, isOnline: @escaping @Sendable () -> Bool) {
    self.server = server
    self.isOnline = isOnline
  }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    guard isOnline() else { throw TransportError(.offline, "no network") }
    return try await server.send(request)
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    throw TransportError(.offline, "no streams")
  }
}
