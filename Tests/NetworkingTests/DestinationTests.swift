import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("Addresses that others choose", .hangLimit)
struct DestinationTests {
  @Test(
    "loopback, private, link-local and other special addresses are not public",
    arguments: [
      ("1.1.1.1", true), ("9.255.255.255", true), ("11.0.0.0", true), ("100.63.255.255", true),
      ("100.128.0.0", true), ("172.15.255.255", true), ("172.32.0.0", true),
      ("192.167.255.255", true), ("198.20.0.0", true), ("223.255.255.255", true),
      ("0.0.0.0", false), ("10.0.0.1", false), ("100.64.0.1", false), ("100.127.255.255", false),
      ("127.0.0.1", false), ("127.255.255.255", false), ("169.254.169.254", false),
      ("172.16.0.1", false), ("172.31.255.255", false), ("192.0.0.8", false),
      ("192.0.2.1", false), ("192.88.99.1", false), ("192.168.1.1", false),
      ("198.19.255.255", false), ("198.51.100.1", false), ("203.0.113.1", false),
      ("224.0.0.1", false), ("255.255.255.255", false), ("2606:4700::1111", true),
      ("2a00:1450::1", true), ("::", false), ("::1", false), ("[::1]", false), ("fe80::1", false),
      ("fe80::1%eth0", false), ("fc00::1", false), ("fd12:3456::1", false), ("ff02::1", false),
      ("100::1", false), ("2001:db8::1", false), ("2001::1", false), ("3fff::1", false),
      ("::ffff:10.0.0.1", false), ("::ffff:1.1.1.1", true), ("::127.0.0.1", false),
      ("64:ff9b::7f00:1", false), ("64:ff9b::101:101", true), ("2002:a00:1::", false),
      ("2002:101:101::", true), ("fec0::1", false),
    ])
  func table(literal: String, isPublic: Bool) throws {
    #expect(try #require(NetworkAddress(literal: literal)).isPublic == isPublic)
  }

  @Test("names are no addresses, and local ones are refused before they are resolved")
  func names() throws {
    let rule = DestinationRule.publicAddresses(besides: "Sync.example.org")
    func isRefused(_ host: String) throws -> Bool {
      try rule.refusal(of: RequestAddress("http://\(host):80/")) != nil
    }
    #expect(NetworkAddress(literal: "example.org") == nil)
    #expect(NetworkAddress(literal: "") == nil)
    for host in ["localhost", "LOCALHOST", "a.localhost", "nas.local", "metadata.google.internal"] {
      #expect(try isRefused(host), "\(host)")
    }
    for host in ["example.org", "localhost.example.org", "sync.example.org", "1.1.1.1"] {
      #expect(try !isRefused(host), "\(host)")
    }
  }

  private func failure(
    _ transport: CurlTransport, _ url: String, besides host: String? = "sync.example.org"
  ) async -> TransportError.Kind? {
    var request = TransportRequest(.get, url)
    request.destinations = .publicAddresses(besides: host)
    do {
      _ = try await transport.send(request.patient)
      return nil
    } catch {
      return error.kind
    }
  }

  @Test("no connection is opened to a special address, however it is written")
  func closed() async throws {
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop() }
    let transport = CurlTransport()
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0"] {
      #expect(
        await failure(transport, "http://\(host):\(server.port)/") == .badAddress, "\(host)")
    }
    #expect(server.count(.accepted) == 0)
    // The one host that may have any address, and requests without the rule.
    #expect(await failure(transport, server.url("/"), besides: "127.0.0.1") == nil)
    _ = try await transport.send(TransportRequest(.get, server.url("/")).patient)
  }

  @Test("a connection that another request opened is not used either")
  func reused() async throws {
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop() }
    let transport = CurlTransport()
    _ = try await transport.send(TransportRequest(.get, server.url("/mine")).patient)
    #expect(await failure(transport, server.url("/theirs")) == .badAddress)
    #expect(server.count(.requested("/theirs")) == 0)
    #expect(server.count(.requested("/mine")) == 1)
  }

  @Test("a redirect does not lead there, also from the host that may have any address")
  func redirected() async throws {
    let inner = RawServer { $0.answer("200 OK") }
    let server = RawServer { exchange in
      exchange.answer("302 Found", ["Location: http://127.0.0.2:\(inner.port)/secret"])
    }
    defer { server.stop(); inner.stop() }
    #expect(
      await failure(CurlTransport(), server.url("/"), besides: "127.0.0.1") == .badAddress)
    #expect(inner.count(.accepted) == 0)
  }

  @Test("a proxy may have any address, and is asked for no special one")
  func proxied() async throws {
    let proxy = RawServer { $0.answer("200 OK") }
    defer { proxy.stop() }
    var configuration = TransportConfiguration()
    configuration.proxy = proxy.url("")
    let transport = CurlTransport(configuration: configuration)
    #expect(await failure(transport, "http://ferry.invalid/x") == nil)
    #expect(proxy.count(.requested("http://ferry.invalid/x")) == 1)
    for url in ["http://10.0.0.1/", "http://169.254.169.254/latest", "http://[fd00::1]/"] {
      #expect(await failure(transport, url) == .badAddress, "\(url)")
    }
    #expect(proxy.count(.accepted) == 1)
  }
}
