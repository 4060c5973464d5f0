import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct ServiceStartTests {
  static func log() -> ServiceLog {
    ServiceLog(level: .debug, sink: LogRecorder(), clock: .system)
  }

  static func configuration(
    _ host: String = "127.0.0.1", port: UInt16 = 0
  ) -> FerryServerConfiguration {
    FerryServerConfiguration(
      listen: ListenAddress(host: host, port: port), store: .embedded(directory: "/nowhere"),
      log: log())
  }

  @Test("an address that others can reach is served only with tokens, or on request")
  func needsTokens() async throws {
    let store = ServiceStoreDouble()
    let address = ListenAddress(host: "0.0.0.0", port: 0)
    await #expect(throws: FerryServerError.needsTokens(address)) {
      try await FerryServer.start(Self.configuration("0.0.0.0"), store: store)
    }
    #expect(store.state.withLock { $0.isClosed })
    var insecure = Self.configuration("0.0.0.0")
    insecure.isInsecure = true
    let open = try await FerryServer.start(insecure, store: ServiceStoreDouble())
    #expect(open.startedOpen)
    await open.stop()
    let guarded = ServiceStoreDouble()
    try await guarded.addToken(
      AccessRuleTests.token(), AccessGrants(AccessRuleTests.space, .reader))
    let closed = try await FerryServer.start(Self.configuration("0.0.0.0"), store: guarded)
    #expect(!closed.startedOpen)
    await closed.stop()
  }

  @Test("an open server does not start behind a declared proxy, even on loopback")
  func proxyNeedsTokens() async throws {
    var configuration = Self.configuration()
    configuration.proxies = TrustedProxies([try #require(AddressRange("127.0.0.1"))])
    let store = ServiceStoreDouble()
    await #expect(throws: FerryServerError.proxyNeedsTokens) {
      try await FerryServer.start(configuration, store: store)
    }
    #expect(store.state.withLock { $0.isClosed })
    let guarded = ServiceStoreDouble(spaces: ["notes"])
    try await guarded.addToken(
      AccessRuleTests.token(), AccessGrants(AccessRuleTests.space, .reader))
    let server = try await FerryServer.start(configuration, store: guarded)
    // A client far away is not this machine, although the proxy is.
    let answer = try await ServiceSocket.exchange(
      server.port, "GET", "/v1/spaces/notes", headers: ["X-Forwarded-For": "192.0.2.7"])
    #expect(answer.status == 401)
    await server.stop()
  }

  @Test("browsers are not to guess the type of any answer, a refusal before reading included")
  func noSniffing() async throws {
    let server = try await FerryServer.start(
      Self.configuration(), store: ServiceStoreDouble(spaces: ["notes"]))
    for (method, target, status) in [
      ("GET", "/healthz", 200), ("GET", "/v1/spaces/notes", 200), ("GET", "/console/", 200),
      ("GET", "/nowhere", 404), ("DELETE", "/v1/spaces/notes", 405), ("GET", "/%zz", 400),
    ] {
      let answer = try await ServiceSocket.exchange(server.port, method, target)
      #expect(answer.status == status, "\(target)")
      #expect(answer.headers["x-content-type-options"] == "nosniff", "\(target)")
    }
    let ambiguous = try await ServiceSocket.exchange(
      server.port, "POST", "/v1/spaces/notes/packets", headers: ["Content-Length": "x"])
    #expect(ambiguous.status == 400)
    #expect(ambiguous.headers["x-content-type-options"] == "nosniff")
    await server.stop()
  }

  @Test("a port in use is reported, and the store is closed")
  func portInUse() async throws {
    let first = try await FerryServer.start(Self.configuration(), store: ServiceStoreDouble())
    let store = ServiceStoreDouble()
    let error = await #expect(throws: FerryServerError.self) {
      try await FerryServer.start(Self.configuration(port: first.port), store: store)
    }
    guard case .listen(_, let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.description.contains("in use"))
    #expect(store.state.withLock { $0.isClosed })
    await first.stop()
  }

  @Test("a second server on one data directory is refused until the first has ended")
  func dataLock() throws {
    let directory = try TemporaryDirectory()
    var inherited: InheritedFiles?
    do {
      let lock = try DataLock(directory: directory.url.path)
      #expect(throws: FerryServerError.dataInUse(directory.url.path, processID: getpid())) {
        try DataLock(directory: directory.url.path)
      }
      inherited = try InheritedFiles(of: directory.file("ferryd.lock").path)
      withExtendedLifetime(lock) {}
    }
    // A program started at this moment has the file, too.
    #expect(inherited?.isAny == true)
    _ = try DataLock(directory: directory.url.path)
  }

  @Test("an invalid data directory is reported with the reason")
  func dataDirectory() throws {
    let directory = try TemporaryDirectory()
    let nested = directory.file("a/b/c").path
    try DataDirectory.prepare(nested)
    try DataDirectory.prepare(nested)
    let lockFile = nested + "/ferryd.lock"
    _ = try DataLock(directory: nested)
    #expect(
      throws: FerryServerError.dataDirectory(lockFile, reason: "a file has this name")
    ) { try DataDirectory.prepare(lockFile) }
  }

  @Test("the store is found from a URL, a directory, or the environment")
  func locations() throws {
    func location(
      _ database: String?, _ data: String?, _ environment: [String: String] = [:]
    ) throws -> StoreLocation {
      try StoreLocation(database: database, data: data, environment: environment)
    }
    #expect(try location(nil, "/d") == .embedded(directory: "/d"))
    let url = "postgres://u:secret@db:5433/ferry?sslmode=require"
    #expect(try location(url, nil) == .postgres(PostgresAddresses(url)))
    #expect(try location(url, nil).description == "PostgreSQL at db:5433/ferry")
    #expect(
      try location(nil, nil, ["HOME": "/h"]) == .embedded(directory: "/h/.local/state/ferryd"))
    #expect(
      try location(nil, nil, ["HOME": "/h", "XDG_STATE_HOME": "/s"])
        == .embedded(directory: "/s/ferryd"))
    #expect(
      try StoreLocation(database: url, direct: "postgres://d", data: nil, environment: [:])
        == .postgres(PostgresAddresses(url, direct: "postgres://d")))
    #expect(throws: FerryServerError.addressAlone) {
      try StoreLocation(database: nil, direct: url, data: nil, environment: [:])
    }
    #expect(throws: FerryServerError.badDatabaseURL) {
      try StoreLocation(database: url, reads: "http://d", data: nil, environment: [:])
    }
    #expect(throws: FerryServerError.noHome) { try location(nil, nil) }
    #expect(throws: FerryServerError.twoStores) { try location(url, "/d") }
    #expect(throws: FerryServerError.badDatabaseURL) { try location("mysql://x", nil) }
  }

  @Test("the start waits for an unavailable database with increasing pauses")
  func waits() async throws {
    let time = ServiceClockDouble()
    let opener = StoreOpener(
      .postgres(PostgresAddresses("postgres://db/ferry")), patience: .seconds(30),
      clock: time.clock,
      log: Self.log())
    let pauses = Mutex([Duration]())
    let attempts = Mutex(0)
    let result = try await opener.retry(sleep: { pause in
      pauses.withLock { $0.append(pause) }
      time.advance(pause)
    }) { () async throws(StoreError) in
      let count = attempts.withLock { count in
        count += 1
        return count
      }
      if count < 6 { throw .unavailable("connection refused") }
      return count
    }
    #expect(result == 6)
    #expect(pauses.withLock { $0 } == [250, 500, 1_000, 2_000, 2_000].map(Duration.milliseconds))
  }

  @Test("the wait ends at its limit, and permanent failures are not waited for")
  func givesUp() async {
    let time = ServiceClockDouble()
    let opener = StoreOpener(
      .postgres(PostgresAddresses("postgres://db/ferry")), patience: .seconds(5), clock: time.clock,
      log: Self.log())
    let error = await #expect(throws: FerryServerError.self) {
      try await opener.retry(sleep: { time.advance($0) }) { () async throws(StoreError) in
        throw .unavailable("connection refused")
      }
    }
    guard case .storeUnavailable(let place, let reason, let waited) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(place == "PostgreSQL at db/ferry")
    #expect(reason == "connection refused")
    #expect(waited > .seconds(3) && waited <= .seconds(5))
    await #expect(
      throws: FerryServerError.storeFailed("PostgreSQL at db/ferry", reason: "not Ferry's")
    ) {
      try await opener.retry(sleep: { _ in Issue.record("waited") }) {
        () async throws(StoreError) in throw .failed("not Ferry's")
      }
    }
  }
}
