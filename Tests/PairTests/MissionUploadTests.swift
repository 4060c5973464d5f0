import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Publishing to a server elsewhere, interrupted.
@Suite(.hangLimit)
struct MissionUploadTests {
  /// Bytes of content sent at once by a publisher.
  private static let part = 4 << 20

  /// Publishes through a proxy.
  private func publisher(
    _ draft: Draft, to proxy: TCPProxy, _ token: String
  ) throws -> ChildProcess {
    try ChildProcess(
      try Executables.ferryd(),
      ["mission", "publish", draft.path, "--id", "film", "--space", Device.space]
        + ["--chunk-size", "1MiB", "--server", proxy.url, "--token", token])
  }

  @Test("an upload continues at its place after a kill of the publisher or of the server")
  func killed() async throws {
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 24)
    let size = 24 << 20
    let server = try await Server.start()
    let proxy = try TCPProxy(to: server.port)
    _ = try await Device.joined(server.url)
    let token = try await server.token("admin")
    let device = try await Device.joined(server.url, token: token)
    for kills in 1...2 {
      let trap = proxy.trap(.request, of: "PUT ", after: 9 << 20, .hold)
      let publisher = try publisher(draft, to: proxy, token)
      try await trap.sprung()
      if kills == 1 { publisher.send(SIGKILL) } else { try await server.kill() }
      trap.cut()
      proxy.removeTraps()
      if kills == 2 { try await server.start() }
      let status = try await publisher.exitStatus()
      try await device.exchange("pull")
      let listed = try await device.ferry("mission", "list", "--json").output
      // None of it is visible, unless the publisher's next attempt found the server again.
      #expect(listed.isEmpty == (status != .exited(0)), "\(publisher.error)")
      if kills == 1 { #expect(listed.isEmpty) }
    }
    let last = try publisher(draft, to: proxy, token)
    #expect(try await last.exitStatus() == .exited(0), "\(last.error)")
    // Each time a part at most was not kept.
    #expect(proxy.byteCount(.request) <= size + 2 * Self.part + size / 100)
    try await device.ferry("mission", "download", "film")
    try await device.expect(draft, in: "film")
  }
}
