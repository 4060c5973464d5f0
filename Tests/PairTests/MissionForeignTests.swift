import Ferry
import FerryCryptography
import FerryTestSupport
import Foundation
import Testing

/// Items on another provider's server, a real nginx, by the command line.
@Suite(.hangLimit, .enabled(if: NginxFileServer.isAvailable))
struct MissionForeignTests {
  private let right = Draft.content(21, 3_000_000)
  private let wrong = Draft.content(22, 3_000_000)
  private let elsewhere: NginxFileServer
  private let proxy: TCPProxy
  private let server: Server
  private let device: Device
  private let sum: String

  /// Publishes a mission of one item on nginx, whose content must be `right`.
  init() async throws {
    elsewhere = try await NginxFileServer(rate: 0)
    proxy = try TCPProxy(to: elsewhere.port)
    server = try await Server.start()
    device = try await Device.joined(server.url)
    var hash = SHA256()
    right.withUnsafeBytes { hash.update($0) }
    sum = hash.finish().map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
    try await publish("\(proxy.url)/file")
  }

  /// Publishes the mission with the item at an address.
  private func publish(_ url: String) async throws {
    let folder = try TemporaryDirectory()
    let manifest = folder.file("mission.json")
    try Data(
      """
      {"items": [{"path": "media/film.mp4", "url": "\(url)", "sha256": "\(sum)",
        "size": \(right.count)}]}
      """.utf8
    ).write(to: manifest)
    try await server.publish(manifest.path, as: "film")
  }

  @Test("a publisher cannot make a device request its own network, unless its user allows that")
  func inside() async throws {
    try elsewhere.replace(right, modified: 1_000_000_000)
    // The server's own host is 127.0.0.1. All of these are this machine, too.
    for host in ["localhost", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]"] {
      try await publish("http://\(host):\(elsewhere.port)/file")
      let failed = try await device.ferry("mission", "download", "film", exits: 1)
      #expect(failed.error.contains("no public address"), "\(host): \(failed.error)")
    }
    try await publish("http://localhost:\(elsewhere.port)/file")
    try await device.ferry("mission", "download", "film", "--allow-private-addresses")
    try await expectRight()
    // The content came once.
    let log = try await elsewhere.log { $0 == 200 && $1 == right.count }
    #expect(log.count == 1)
  }

  /// Downloads until half of the item has come, and is killed then.
  private func halfOf() async throws {
    let trap = proxy.trap(.answer, after: right.count / 2, .hold)
    let run = try MissionRun(device, ["download", "film"])
    try await trap.sprung()
    try await run.reached(right.count / 3)
    run.child.send(SIGKILL)
    _ = try await run.child.exitStatus()
    trap.cut()
  }

  private func expectRight() async throws {
    let path = try await device.ferry("mission", "path", "film", "media/film.mp4").output
    let file = URL(filePath: path.trimmingCharacters(in: .whitespacesAndNewlines))
    #expect(try Data(contentsOf: file) == Data(right))
  }

  @Test("an item on another server is downloaded, even after an interruption")
  func whole() async throws {
    try elsewhere.replace(right, modified: 1_000_000_000)
    try await halfOf()
    try await device.ferry("mission", "download", "film")
    try await expectRight()
    // The rest by a range, and not all again.
    try await elsewhere.log { $0 == 206 && $1 < right.count }
  }

  @Test("a file that changes during its download fails with its name, and is never joined")
  func changed() async throws {
    try elsewhere.replace(right, modified: 1_000_000_000)
    try await halfOf()
    try elsewhere.replace(wrong, modified: 1_000_000_001)
    let failed = try await device.ferry("mission", "download", "film", exits: 1)
    #expect(failed.error.contains("media/film.mp4"))
    let log = try await elsewhere.log { $0 == 200 && $1 == wrong.count }
    #expect(log.allSatisfy { $0.status == 200 })
    try await device.ferry("mission", "path", "film", exits: 1)
    #expect(try leftovers().isEmpty)
    try elsewhere.replace(right, modified: 1_000_000_002)
    try await device.ferry("mission", "download", "film")
    try await expectRight()
  }

  @Test("a file that becomes the right one during its download is fetched whole")
  func corrected() async throws {
    try elsewhere.replace(wrong, modified: 1_000_000_000)
    try await halfOf()
    try elsewhere.replace(right, modified: 1_000_000_001)
    try await device.ferry("mission", "download", "film")
    try await elsewhere.log { $0 == 200 && $1 == right.count }
    try await expectRight()
  }

  /// Returns content beside the replica.
  private func leftovers() throws -> [String] {
    let folder = device.path + ".missions"
    return try FileManager.default.subpathsOfDirectory(atPath: folder).filter { path in
      var status = stat()
      stat("\(folder)/\(path)", &status)
      return status.st_mode & S_IFMT == S_IFREG && status.st_size >= right.count / 4
    }
  }
}
