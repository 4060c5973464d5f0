import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// The shipped proxy and two nodes on PostgreSQL, in networks of their own, with thousands of
/// clients.
@Suite(.hangLimit, .enabled(if: ProxyNetwork.obstacle == nil, "\(ProxyNetwork.obstacle ?? "")"))
struct DaemonCrowdTests {
  private static let watcherCount = 2_000
  private static let memberCount = 20
  private static let port: UInt16 = 8080
  private static let hostile = "10.78.200.1"

  /// Returns a setting of docker-compose.yml with the defaults.
  private static func composed(_ name: String) throws -> String {
    let lines = try Project.text("docker-compose.yml").split(separator: "\n")
    let line = try #require(lines.first { $0.drop { $0 == " " }.hasPrefix(name + ": ") })
    let value = line.drop { $0 == " " }.dropFirst(name.count + 2)
    return String(value).replacing(#/\$\{[A-Z_]+:-([^}]*)\}/#) { String($0.output.1) }
  }

  private static func startProxy(
    _ network: ProxyNetwork, _ directory: TemporaryDirectory
  ) async throws -> ChildProcess {
    var text = try Project.text("Server/proxy/haproxy.cfg").replacing(
      "  parse-resolv-conf\n", with: "")
    for (number, node) in ProxyNetwork.nodes.enumerated() {
      let name = "ferryd-\(number + 1)"
      text = text.replacing("server \(name) \(name):8080", with: "server \(name) \(node):\(port)")
    }
    let file = directory.file("haproxy.cfg")
    try Data(text.utf8).write(to: file)
    return try network.startProxy(
      HAProxy.program, ["-db", "-f", file.path],
      environment: ["FERRY_OUTER_PROXY": try composed("FERRY_OUTER_PROXY")])
  }

  private static func startNodes(
    _ network: ProxyNetwork, database: String
  ) async throws -> [ChildProcess] {
    var environment = ["FERRY_QUIET": "1"]
    for name in [
      "FERRY_TRUSTED_PROXY", "FERRY_CONNECTIONS_PER_ADDRESS", "FERRY_STREAMS_PER_ADDRESS",
    ] { environment[name] = try composed(name) }
    var nodes: [ChildProcess] = []
    for address in ProxyNetwork.nodes {
      let node = try network.startNode(
        try Executables.ferryd(),
        ["serve", "--listen", "\(address):\(port)", "--database", database],
        environment: environment)
      _ = try await node.line { $0.contains("listening on http://") }
      nodes.append(node)
    }
    return nodes
  }

  private static func token(
    _ role: String, owner: String, database: String
  ) async throws -> String {
    let made = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "token", "create", "--space", "crowd", "--role", role, "--owner", owner, "--database",
        database,
      ])
    guard made.status == .exited(0) else { throw TestSupportError(made.error) }
    return made.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Sends a request from an address through the proxy; returns the status.
  private static func ask(
    _ address: String, _ method: String, _ path: String, token: String? = nil,
    headers: [String: String] = [:], body: [UInt8] = []
  ) throws -> Int? {
    let socket = try WatcherCrowd.connect(from: address, to: ProxyNetwork.entry, port)
    defer { close(socket) }
    try WatcherCrowd.send(socket, method, path, token: token, headers: headers, body: body)
    return WatcherCrowd.status(socket)
  }

  /// Opens streams from one address; returns their sockets, and how many are open.
  private static func flood(_ count: Int, _ token: String) throws -> (sockets: [Int32], open: Int) {
    var (sockets, open) = ([Int32](), 0)
    for number in 0..<count {
      // The proxy may close a connection at once.
      guard
        let socket = try? WatcherCrowd.connect(from: hostile, to: ProxyNetwork.entry, port)
      else { continue }
      sockets.append(socket)
      // A header that names another client each time.
      let headers = ["X-Forwarded-For": "10.9.\(number / 250).\(number % 250)"]
      guard
        (try? WatcherCrowd.send(
          socket, "GET", "/v1/spaces/crowd/events", token: token, headers: headers)) != nil
      else { continue }
      if WatcherCrowd.status(socket) == 200 { open += 1 }
    }
    return (sockets, open)
  }

  @Test("one reader with hundreds of streams takes nothing from 2,000 watchers behind the proxy")
  func crowd() async throws {
    FileDescriptorLimit.raise()
    let cluster = try PostgresCluster()
    let database = try cluster.createDatabase()
    let parts = try #require(URLComponents(string: database))
    let (directory, number) = (try #require(cluster.directory), try #require(parts.port))
    // Sockets in the file system are reachable from every network.
    let local = "postgres://postgres@\(parts.path)?host=\(directory)&port=\(number)"
    let made = try await ChildProcess.run(
      try Executables.ferryd(), ["space", "create", "crowd", "--database", database])
    #expect(made.status == .exited(0), "\(made.error)")
    var readers: [String] = []
    for member in 0..<Self.memberCount {
      readers.append(try await Self.token("reader", owner: "member-\(member)", database: database))
    }
    let writer = try await Self.token("writer", owner: "writer", database: database)
    let stranger = try await Self.token("reader", owner: "stranger", database: database)

    let network = try await ProxyNetwork(proxyAddress: try Self.composed("ipv4_address"))
    let nodes = try await Self.startNodes(network, database: local)
    let scratch = try TemporaryDirectory(prefix: "ferry-crowd")
    let proxy = try await Self.startProxy(network, scratch)

    try await network.asClient { [readers] in
      // Until the proxy listens and has found both nodes.
      while (try? Self.ask("10.78.0.1", "GET", "/readyz")) != 200 {}
      let (sockets, open) = try Self.flood(600, stranger)
      #expect(open <= 256 && open > 0, "\(open) streams of one address")
      let crowd = WatcherCrowd(host: ProxyNetwork.entry, port: Self.port)
      try crowd.listen(
        from: (0..<Self.watcherCount).map { number in
          ("10.78.\(1 + number / 250).\(1 + number % 250)", readers[number % readers.count])
        }, to: "crowd")
      #expect(crowd.count == Self.watcherCount)
      for seed in 1...5 {
        let again = try Self.flood(100, stranger)
        for probe in ["/healthz", "/readyz"] {
          #expect(try Self.ask("10.78.0.2", "GET", probe) == 200)
        }
        let packet = Packet.serviceSample(UInt64(seed)).encoded()
        #expect(
          try Self.ask(
            "10.78.0.3", "POST", "/v1/spaces/crowd/packets", token: writer, body: packet) == 200)
        try crowd.wait(forHead: seed)
        for socket in again.sockets { close(socket) }
      }
      for socket in sockets { close(socket) }
    }
    #expect(!proxy.output.contains("DOWN") && !proxy.error.contains("DOWN"))
    for node in nodes {
      node.send(SIGTERM)
      #expect(try await node.exitStatus() == .exited(0), "\(node.error)")
    }
  }
}
