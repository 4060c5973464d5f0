import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The place of the token, and the servers with access to it.
@Suite(.hangLimit)
struct CredentialTests {
  private func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  /// Makes a device joined with a token, whatever the mask of the process.
  private func joined(
    _ server: Server, umask: String = "000"
  ) async throws -> (device: Device, token: String) {
    let token = try await server.token("writer")
    let device = try Device()
    let script = """
      umask \(umask); "$0" --replica "$1" init --server "$2" --space demo --token "$3" && \
      "$0" --replica "$1" sql "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER)" && \
      "$0" --replica "$1" track notes
      """
    let made = try await ChildProcess.run(
      URL(filePath: "/bin/sh"),
      ["-c", script, try Executables.ferry().path, device.path, server.url, token],
      directory: device.directory.url)
    #expect(made.status == .exited(0), "\(made.error)")
    return (device, token)
  }

  @Test("a token is in no file of the database, and only its owner can read each file")
  func apart() async throws {
    let server = try await Server.start()
    let (device, token) = try await joined(server)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await device.exchange()
    let replica = try await device.open()
    // As long as the file is open, the log's files are there as well.
    for suffix in ["", "-wal", "-shm", "-token"] {
      #expect(try mode(device.path + suffix) == 0o600, "\(suffix)")
      let bytes = try Data(contentsOf: URL(filePath: device.path + suffix))
      #expect((bytes.range(of: Data(token.utf8)) != nil) == (suffix == "-token"), "\(suffix)")
    }
    let status = try await device.ferry("status", "--json")
    #expect(!status.output.contains(token))
    #expect(!"\(try await replica.status())".contains(token))
  }

  @Test("a copy without its token reports the missing token, and works when it gets one")
  func copied() async throws {
    let server = try await Server.start()
    let (device, token) = try await joined(server)
    let copy = try Device()
    _ = try await device.open().read { try $0.query("SELECT 1") }
    try await device.write("PRAGMA user_version = 1")
    try device.copy(to: copy)
    let refused = try await copy.ferry("sync", exits: 4)
    #expect(refused.error.contains("the replica's token cannot be used"))
    #expect(refused.error.contains("\(copy.path)-token"))
    #expect(refused.error.contains("ferry init"))
    try await copy.ferry(
      "init", "--server", server.url, "--space", "demo", "--token", token)
    try await copy.ferry("sync")
  }

  @Test("the token is not sent to a server address that was written into the database")
  func otherServer() async throws {
    let (server, other) = (try await Server.start(), try await Server.start())
    let (device, token) = try await joined(server)
    try await device.tamper("UPDATE ferry_replica SET server = '\(other.url)'")
    let refused = try await device.ferry("sync", exits: 4)
    #expect(refused.error.contains("sends it to no other server"))
    #expect(!refused.error.contains(token))
  }

  @Test("a token over http to another machine is warned of once per command")
  func exposed() async throws {
    let server = try await Server.start()
    let (device, _) = try await joined(server)
    #expect(try await !device.ferry("sync").error.contains("warning"))
    let address = "http://192.0.2.1:9"
    try await device.tamper("UPDATE ferry_replica SET server = '\(address)'")
    let synced = try await device.ferry("sync", exits: 4)
    #expect(synced.error.split(separator: "\n").count { $0.contains("warning") } == 1)
    #expect(synced.error.contains("the token is sent to \(address) without encryption"))
    #expect(try await device.status().warnings.count == 1)
  }
}

/// Ferry through TLS, by a private certificate authority.
@Suite(
  .hangLimit, .enabled(if: SecureProxy.isAvailable, "needs nginx and the openssl command"))
struct PrivateAuthorityTests {
  @Test("a private authority that the user names is trusted and stored with the connection")
  func named() async throws {
    let server = try await Server.start()
    let proxy = try await SecureProxy(to: server)
    let device = try Device()
    let refused = try await device.ferry(
      "init", "--server", proxy.url, "--space", "demo", exits: 4)
    #expect(refused.error.contains("the server could not be trusted"))
    #expect(refused.error.contains("an authority that this device does not trust"))
    #expect(!refused.error.contains("could not be reached"))
    try await device.ferry(
      "--ca", proxy.authority, "init", "--server", proxy.url, "--space", "demo")
    try await device.ferry("sync")
  }

  @Test("a certificate for another name is reported as such, not as a missing network")
  func otherName() async throws {
    let server = try await Server.start()
    let proxy = try await SecureProxy(to: server, name: "DNS:elsewhere.invalid")
    let device = try Device()
    let refused = try await device.ferry(
      "--ca", proxy.authority, "init", "--server", proxy.url, "--space", "demo", exits: 4)
    #expect(refused.error.contains("its certificate is for another name than 127.0.0.1"))
  }

  @Test("a file without a certificate is refused before anything is sent")
  func noCertificate() async throws {
    let device = try Device()
    try Data("nothing".utf8).write(to: device.directory.file("ca"))
    let refused = try await device.ferry(
      "--ca", device.directory.file("ca").path, "init", "--server", "https://127.0.0.1:1",
      "--space", "demo", exits: 2)
    #expect(refused.error.contains("contains no certificate"))
  }

  @Test("nginx's own limit makes packets smaller, and quarantines a single row above it")
  func bodyLimit() async throws {
    let server = try await Server.start()
    let proxy = try await SecureProxy(to: server, bodyMax: 64 << 10)
    let device = try Device()
    try await device.ferry(
      "--ca", proxy.authority, "init", "--server", proxy.url, "--space", "demo")
    try await device.ferry("sql", Device.notes)
    try await device.ferry("track", "notes")
    try await device.write(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
      INSERT INTO notes SELECT 'r' || i, hex(randomblob(500)), i FROM n
      """)
    try await device.write("INSERT INTO notes VALUES ('large', hex(randomblob(100000)), 0)")
    let report = try await device.exchange(exits: 4)
    #expect(report.quarantined == 1)
    let listed = try await device.ferry("quarantine", "list")
    #expect(listed.output.contains("large") && listed.output.contains("too_large_for_proxy"))
    #expect(try await server.head() == 300)
  }
}
