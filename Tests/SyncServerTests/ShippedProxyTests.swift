import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// A server behind a real HAProxy with the shipped configuration.
@Suite(.hangLimit, .enabled(if: HAProxy.isAvailable, "needs haproxy"))
struct ShippedProxyTests {
  /// Returns the shipped configuration, with this machine's ports in it.
  private static func configuration(proxy: UInt16, node: UInt16) throws -> String {
    let text = try Project.text("Server/proxy/haproxy.cfg")
    let placed =
      text
      .replacing("bind :8080", with: "bind 127.0.0.1:\(proxy)")
      .replacing("server ferryd-1 ferryd-1:8080", with: "server ferryd-1 127.0.0.1:\(node)")
      .replacing("server ferryd-2 ferryd-2:8080", with: "")
    // Also without a configuration of name servers.
    return placed.replacing("  parse-resolv-conf\n", with: "")
  }

  @Test("the shipped proxy blocks the metrics in any spelling, and passes requests")
  func metrics() async throws {
    let store = ServiceStoreDouble(spaces: ["notes"])
    let server = try await FerryServer.start(ServiceStartTests.configuration(), store: store)
    let directory = try TemporaryDirectory(prefix: "ferry-proxy")
    let port = try FreePort.next()
    let file = directory.file("haproxy.cfg")
    try Data(Self.configuration(proxy: port, node: server.port).utf8).write(to: file)
    let proxy = try ChildProcess(HAProxy.program, ["-db", "-q", "-f", file.path])
    let health = try await eventually("the proxy to listen", from: proxy) {
      try? await ServiceSocket.exchange(port, "GET", "/healthz")
    }
    #expect(health.status == 200)
    for target in [
      "/metrics", "/%6Detrics", "/metric%73", "/%6d%65%74%72%69%63%73", "/metrics?x=1",
      "/%6Detrics?x=1", "http://127.0.0.1/metrics", "http://127.0.0.1/%6Detrics", "//metrics",
      "/metrics/", "/./metrics", "/x/../metrics", "/%256Detrics",
    ] {
      let answer = try await ServiceSocket.exchange(port, "GET", target)
      #expect(answer.status == 404 || answer.status == 400, "\(target)")
      #expect(!answer.text.contains("ferry_"), "\(target)")
    }
    let direct = try await ServiceSocket.exchange(server.port, "GET", "/metrics")
    #expect(direct.text.contains("ferry_build_info"))
    let hidden = try await ServiceSocket.exchange(server.port, "GET", "/%6Detrics")
    #expect(hidden.status == 404)
    withExtendedLifetime(proxy) {}
    await server.stop()
  }
}
