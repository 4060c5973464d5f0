import FerryTestSupport
import Foundation
import Testing

/// `ferry mission --key-file`.
@Suite("The key's file of missions on a device", .hangLimit)
struct MissionKeyFileTests {
  @Test(
    "errors distinguish a folder, a large file and half a key; a readable key is warned of")
  func files() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let folder = try TemporaryDirectory()
    func list(_ path: String, exits status: Int32 = 1) async throws -> ChildProcess.Finished {
      try await device.ferry("mission", "list", "--key-file", path, exits: status)
    }
    func file(_ name: String, _ bytes: Data, _ mode: Int = 0o600) throws -> String {
      let path = folder.file(name).path
      try bytes.write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
      return path
    }
    #expect(try await list(folder.url.path).error.contains("it is a folder"))
    let large = try file("large", Data(count: 1_025))
    #expect(try await list(large).error.contains("more than 1024 bytes"))
    // Of a device without an end only so much is read.
    #expect(try await list("/dev/zero").error.contains("more than 1024 bytes"))
    let half = try file("half", Data(String(repeating: "0f", count: 16).utf8))
    #expect(try await list(half).error.contains("half a key"))
    let digits = Data((String(repeating: "0F", count: 32) + "\n").utf8)
    #expect(try await list(try file("key", digits), exits: 0).error.isEmpty)
    let open = try await list(try file("open", digits, 0o644), exits: 0)
    #expect(open.error.contains("all users of this machine may read the key"))
    #expect(
      try await list(try file("raw", Data(repeating: 200, count: 32)), exits: 0).error.isEmpty)
  }
}
