import Ferry
import FerryTestSupport
import Testing

@testable import FerryCommand

/// Addresses with `https` for a server without TLS, and the reverse.
@Suite("Schemes of addresses", .hangLimit)
struct SchemeCheckTests {
  @Test("https to a server without TLS, and http to one with TLS, are named with the other address")
  func processes() async throws {
    let server = try await Server.start()
    let device = try Device()
    let secure = server.url.replacing("http://", with: "https://")
    let refused = try await device.ferry(
      "init", "--server", secure, "--space", "demo", exits: 1)
    #expect(refused.error.contains("the server answered without TLS"))
    #expect(refused.error.contains("next: use \(server.url) "))
    try await device.ferry("init", "--server", server.url, "--space", "demo")
    #expect(try await device.status().server?.url == server.url)
  }

  @Test(
    "http to a TLS port is named with https, by init and by a later sync",
    .enabled(if: SecureProxy.isAvailable, "needs nginx and openssl"))
  func plainToTLS() async throws {
    let server = try await Server.start()
    let proxy = try await SecureProxy(to: server)
    let plain = proxy.url.replacing("https://", with: "http://")
    let device = try Device()
    let refused = try await device.ferry("init", "--server", plain, "--space", "demo", exits: 1)
    #expect(refused.error.contains("the server answers with TLS only"))
    #expect(refused.error.contains("next: use \(proxy.url)"))
    let joined = try await Device.joined(server.url)
    try await joined.tamper("UPDATE ferry_replica SET server = '\(plain)'")
    let sync = try await joined.ferry("sync", exits: 1)
    #expect(sync.error.contains("the server answers with TLS only"))
    // An untrusted certificate stays the reason.
    let untrusted = try await device.ferry(
      "init", "--server", proxy.url, "--space", "demo", exits: 4)
    #expect(untrusted.error.contains("--ca FILE"))
  }

  @Test(
    "an address is read with both schemes at one port",
    arguments: [
      ("https://a.example", true, "https://a.example", "http://a.example:443"),
      ("http://a.example", false, "https://a.example:80", "http://a.example"),
      (
        "https://u:p@a.example:8443/ferry?x=1#y", true, "https://a.example:8443/ferry",
        "http://a.example:8443/ferry"
      ),
      ("http://[::1]:8080", false, "https://[::1]:8080", "http://[::1]:8080"),
    ])
  func addresses(_ url: String, _ isSecure: Bool, _ secure: String, _ plain: String) throws {
    let address = try #require(SchemeAddress(url))
    #expect(address.isSecure == isSecure)
    #expect(address.secure == secure && address.plain == plain)
  }

  @Test(
    "text without a host or with another scheme is no address", arguments: ["", "http://", "a"])
  func noAddress(_ url: String) {
    #expect(SchemeAddress(url) == nil)
  }

  @Test("only failures that another scheme may explain are looked into, and TLS servers' answers")
  func rules() {
    #expect(SchemeCheck.mayBeScheme(.offline("")))
    #expect(SchemeCheck.mayBeScheme(.unexpectedAnswer(status: 400, "")))
    #expect(!SchemeCheck.mayBeScheme(.unexpectedAnswer(status: 404, "")))
    #expect(!SchemeCheck.mayBeScheme(.notConfigured))
    #expect([200, 401, 404, 503].allSatisfy { SchemeCheck.isPlainAnswer(status: $0) })
    #expect([301, 308, 400, 426].allSatisfy { !SchemeCheck.isPlainAnswer(status: $0) })
  }
}
