import FerryTestSupport
import Foundation

/// Three networks of this machine: clients with thousands of addresses, the shipped proxy, and the
/// nodes behind it. They end with their processes.
final class ProxyNetwork: Sendable {
  /// The address of the proxy for clients.
  static let entry = "10.77.0.1"
  static let nodes = ["172.31.213.11", "172.31.213.12"]

  private let clients: ChildProcess
  private let proxy: ChildProcess
  private let servers: ChildProcess

  /// Why this machine cannot have such networks; `nil` if it can.
  static let obstacle: String? = {
    for program in ["/usr/bin/unshare", "/usr/bin/nsenter", "/usr/sbin/ip", "/usr/sbin/haproxy"]
    where !FileManager.default.isExecutableFile(atPath: program) { return "needs \(program)" }
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    guard limit.rlim_max >= 10_000 else { return "needs 10,000 open files" }
    let trial = Process()
    trial.executableURL = URL(filePath: "/usr/bin/unshare")
    trial.arguments = [
      "--net", "/usr/sbin/ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1",
    ]
    trial.standardError = FileHandle.nullDevice
    guard (try? trial.run()) != nil else { return "cannot start unshare" }
    trial.waitUntilExit()
    guard trial.terminationStatus == 0 else {
      return "needs the right to make network namespaces: run it as root"
    }
    return nil
  }()

  /// - Parameter address: The address of the proxy towards the nodes.
  init(proxyAddress address: String) async throws {
    clients = try Self.holder()
    proxy = try Self.holder()
    servers = try Self.holder()
    for holder in [clients, proxy, servers] { _ = try await holder.line { $0 == "ready" } }
    try await run(in: proxy, "ip link add c0 type veth peer name eth0 netns \(clients.processID)")
    try await run(in: proxy, "ip link add n0 type veth peer name eth0 netns \(servers.processID)")
    try await run(
      in: clients,
      """
      ip link set lo up; ip link set eth0 up; ip addr add 10.77.0.2/30 dev eth0
      ip route add default via \(Self.entry); ip route add local 10.78.0.0/16 dev lo
      """)
    try await run(
      in: proxy,
      """
      ip link set lo up; ip link set c0 up; ip link set n0 up
      ip addr add \(Self.entry)/30 dev c0; ip addr add \(address)/24 dev n0
      ip route add 10.78.0.0/16 via 10.77.0.2
      """)
    try await run(
      in: servers,
      """
      ip link set lo up; ip link set eth0 up
      \(Self.nodes.map { "ip addr add \($0)/24 dev eth0" }.joined(separator: "; "))
      """)
  }

  /// Starts a program in the network of the nodes.
  func startNode(
    _ program: URL, _ arguments: [String], environment: [String: String]
  ) throws -> ChildProcess {
    try start(in: servers, program, arguments, environment)
  }

  /// Starts a program in the network of the proxy.
  func startProxy(
    _ program: URL, _ arguments: [String], environment: [String: String]
  ) throws -> ChildProcess {
    try start(in: proxy, program, arguments, environment)
  }

  /// Runs blocking work on a separate thread, with sockets in the network of the clients.
  func asClient<T: Sendable>(_ work: @escaping @Sendable () throws -> T) async throws -> T {
    let namespace = "/proc/\(clients.processID)/ns/net"
    return try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            let descriptor = open(namespace, O_RDONLY | O_CLOEXEC)
            defer { close(descriptor) }
            guard descriptor >= 0, enterNetwork(descriptor) else {
              throw TestSupportError(
                "cannot enter \(namespace): \(String(cString: strerror(errno)))")
            }
            return try work()
          })
      }
    }
  }

  private static func holder() throws -> ChildProcess {
    try ChildProcess(
      URL(filePath: "/usr/bin/unshare"),
      ["--net", "/bin/sh", "-c", "echo ready; exec sleep infinity"])
  }

  private func start(
    in holder: ChildProcess, _ program: URL, _ arguments: [String],
    _ environment: [String: String] = [:]
  ) throws -> ChildProcess {
    try ChildProcess(
      URL(filePath: "/usr/bin/nsenter"),
      ["--net=/proc/\(holder.processID)/ns/net", program.path] + arguments,
      environment: environment)
  }

  private func run(in holder: ChildProcess, _ script: String) async throws {
    let child = try start(
      in: holder, URL(filePath: "/bin/sh"), ["-e", "-c", "PATH=$PATH:/usr/sbin:/sbin; " + script])
    let status = try await child.exitStatus()
    guard status == .exited(0) else { throw TestSupportError("\(script): \(child.error)") }
  }
}

/// Moves the calling thread into a network namespace: `setns(2)`, which Swift's Glibc leaves out.
private func enterNetwork(_ descriptor: Int32) -> Bool {
  guard let address = dlsym(dlopen(nil, RTLD_NOW), "setns") else { return false }
  let setns = unsafeBitCast(address, to: (@convention(c) (Int32, Int32) -> Int32).self)
  let networkOnly: Int32 = 0x4000_0000
  return setns(descriptor, networkOnly) == 0
}
