import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTPServer

@Suite("Clients behind trusted proxies", .hangLimit)
struct TrustedProxiesTests {
  private static let ranges = ["10.0.0.1", "10.1.0.0/16", "2001:db8:1::/48", "127.0.0.1"]

  private static func proxies(_ header: TrustedProxies.Header) throws -> TrustedProxies {
    TrustedProxies(try ranges.map { try #require(AddressRange($0)) }, header: header)
  }

  private static func client(
    _ header: TrustedProxies.Header, peer: String, _ headers: HTTPHeaders
  ) throws -> String {
    let peer = try #require(IPAddress(peer.utf8))
    return try proxies(header).client(of: peer, headers).description
  }

  @Test(
    "the last address that is no trusted proxy's is the client",
    arguments: [
      ("10.0.0.1", "192.0.2.7", "192.0.2.7"),
      ("10.0.0.1", "192.0.2.7, 10.1.2.3", "192.0.2.7"),
      // The client wrote the first ones.
      ("10.0.0.1", "10.0.0.1, 198.51.100.1, 192.0.2.7", "192.0.2.7"),
      ("10.0.0.1", "unknown, garbage, 192.0.2.7", "192.0.2.7"),
      ("10.0.0.1", "192.0.2.7:4711 ,, 10.1.2.3:80", "192.0.2.7"),
      ("10.0.0.1", " 2001:db8:2::7", "2001:db8:2::7"),
      ("10.0.0.1", "[2001:db8:2::7]:443", "2001:db8:2::7"),
      ("10.0.0.1", "::ffff:192.0.2.7", "192.0.2.7"),
      ("::ffff:10.0.0.1", "192.0.2.7", "192.0.2.7"),
      ("2001:db8:1:2::3", "192.0.2.7, 2001:db8:1::1", "192.0.2.7"),
      // All of them are trusted.
      ("10.0.0.1", "10.1.0.9, 10.1.0.8", "10.1.0.9"),
      // The peer is no trusted proxy.
      ("10.0.0.2", "192.0.2.7", "10.0.0.2"), ("192.0.2.9", "garbage", "192.0.2.9"),
      ("2001:db8:2::1", "192.0.2.7", "2001:db8:2::1"),
    ])
  func forwardedFor(_ peer: String, _ value: String, _ client: String) throws {
    #expect(try Self.client(.forwardedFor, peer: peer, ["X-Forwarded-For": value]) == client)
    // The other header may come from a client.
    #expect(
      try Self.client(.forwarded, peer: peer, ["X-Forwarded-For": value])
        == #require(IPAddress(peer.utf8)).description)
  }

  @Test(
    "Forwarded is read as RFC 7239 writes it",
    arguments: [
      ("for=192.0.2.7", "192.0.2.7"), ("For=\"192.0.2.7:4711\";proto=https", "192.0.2.7"),
      ("for=\"[2001:db8:2::7]:443\"", "2001:db8:2::7"),
      ("by=10.0.0.1; FOR=192.0.2.7 ;host=\"a,b;for=1.1.1.1\"", "192.0.2.7"),
      ("for=6.6.6.6, for=192.0.2.7, for=10.1.2.3", "192.0.2.7"),
      ("for=_hidden, for=192.0.2.7", "192.0.2.7"),
      ("host=\"\\\"\", , for=\"192.0.\\2.7\"", "192.0.2.7"),
    ])
  func forwarded(_ value: String, _ client: String) throws {
    let headers: HTTPHeaders = ["Forwarded": value, "X-Forwarded-For": "203.0.113.9"]
    #expect(try Self.client(.forwarded, peer: "10.0.0.1", headers) == client)
  }

  @Test("of several lines the last one counts, and no text of one reaches into another")
  func lines() throws {
    var headers = HTTPHeaders()
    headers.append("X-Forwarded-For", "6.6.6.6")
    headers.append("x-forwarded-for", "192.0.2.7, 10.1.2.3")
    #expect(try Self.client(.forwardedFor, peer: "10.0.0.1", headers) == "192.0.2.7")
    headers = HTTPHeaders()
    headers.append("Forwarded", "for=6.6.6.6;host=\"")
    headers.append("Forwarded", "for=192.0.2.7;host=\"x\"")
    #expect(try Self.client(.forwarded, peer: "10.0.0.1", headers) == "192.0.2.7")
    headers.append("Forwarded", "for=10.1.2.3")
    #expect(try Self.client(.forwarded, peer: "10.0.0.1", headers) == "192.0.2.7")
  }

  @Test(
    "a trusted proxy that names no address is refused, and never guessed",
    arguments: [
      (TrustedProxies.Header.forwardedFor, ""), (.forwardedFor, ", ,"),
      (.forwardedFor, "unknown"), (.forwardedFor, "192.0.2.7, example.org"),
      (.forwardedFor, "192.0.2"), (.forwardedFor, "192.0.2.7.1"), (.forwardedFor, "192.0.2.07"),
      (.forwardedFor, "192.0.2.7:x"), (.forwardedFor, "192.0.2.7:"),
      (.forwardedFor, "[192.0.2.7]"), (.forwardedFor, "[2001:db8::1"),
      (.forwardedFor, "2001:db8::1%eth0"), (.forwardedFor, "\"192.0.2.7\""),
      (.forwardedFor, "192.0.2.7\u{301}"), (.forwardedFor, "192.0.2.\u{664}"),
      (.forwardedFor, "192.0.2.7,\u{301}"), (.forwardedFor, "192.0.2.7\0"),
      (.forwardedFor, "192.0.2.7 10.0.0.1"),
      (.forwardedFor, String(repeating: "1", count: 5_000)),
      (.forwardedFor, Array(repeating: "10.0.0.1", count: 17).joined(separator: ",")),
      (.forwarded, ""), (.forwarded, "192.0.2.7"), (.forwarded, "for="),
      (.forwarded, "for=\"192.0.2.7"), (.forwarded, "for=192.0.2.7;for=192.0.2.8"),
      (.forwarded, "by=192.0.2.7"), (.forwarded, "for=unknown"), (.forwarded, "for =192.0.2.7"),
      (.forwarded, "for=192.0.2.7 for=10.0.0.1"), (.forwarded, "for=\"192.0.2.7\"x"),
      (.forwarded, "for=\"192.0.2.7\\"), (.forwarded, "f\u{301}or=192.0.2.7"),
      (.forwarded, "for=192.0.2.7;\u{301}proto=https"),
    ])
  func malformed(_ header: TrustedProxies.Header, _ value: String) throws {
    #expect(throws: HTTPFailure.malformedForwarding) {
      try Self.client(header, peer: "10.0.0.1", [header.rawValue: value])
    }
  }

  @Test("a trusted proxy without the header speaks for itself, as its probes do")
  func itself() throws {
    #expect(try Self.client(.forwardedFor, peer: "10.0.0.1", [:]) == "10.0.0.1")
    #expect(
      try Self.client(.forwardedFor, peer: "10.0.0.1", ["Forwarded": "for=1.2.3.4"]) == "10.0.0.1")
  }

  @Test(
    "a range has the addresses that begin with its bits",
    arguments: [
      ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
      ("192.0.2.7/32", "192.0.2.7", true), ("192.0.2.6/31", "192.0.2.8", false),
      ("2001:db8::/64", "2001:db8::ffff:1", true), ("2001:db8::/64", "2001:db8:0:1::", false),
      ("2001:db8::8/125", "2001:db8::f", true), ("2001:db8::8/125", "2001:db8::10", false),
      ("::1", "::1", true), ("::1", "127.0.0.1", false), ("::/1", "192.0.2.7", true),
    ])
  func ranges(_ range: String, _ address: String, _ isIn: Bool) throws {
    let parsed = try #require(AddressRange(range))
    #expect(parsed.contains(try #require(IPAddress(address.utf8))) == isIn)
  }

  @Test(
    "other text is no range, and neither is every address",
    arguments: [
      "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8", "0.0.0.0/0", "::/0", "::/129",
      "10.0.0.0/+8", "10.0.0.0/8 ", "10.0.0.0/08x", "localhost", "10.0.0", "[::1]",
      "10.0.0.0/8\u{301}", "1\u{301}0.0.0.1",
    ])
  func noRanges(_ text: String) {
    #expect(AddressRange(text) == nil)
  }

  @Test("requests of a client behind a proxy count as its connections, and those of others do not")
  func shares() {
    let some = ClientAddress(ipv4: 0xC000_0207)
    var ledger = ConnectionLedger(.init(connections: 100, reserve: 1, perAddress: 2))
    for _ in 0..<10 { _ = ledger.add(nil) }
    #expect(ledger.openCount == 10)
    #expect([ledger.charge(some), ledger.charge(some)] == [.within, .within])
    #expect(ledger.charge(some) == .reserve)
    #expect(ledger.charge(some) == .none)
    #expect(ledger.charge(ClientAddress(ipv4: 0xC000_0208)) == .within)
    let direct = ledger.add(some)
    #expect(direct == nil)
    ledger.release(some)
    ledger.release(some)
    #expect(ledger.charge(some) == .within)
    // A client on the proxy's own machine.
    for _ in 0..<5 { #expect(ledger.charge(ClientAddress(ipv4: 0x7F00_0001)) == .within) }
  }
}

/// The same over sockets.
@Suite("Requests through a trusted proxy", .hangLimit)
struct TrustedProxyRequestTests {
  private static func configuration() throws -> HTTPServer.Configuration {
    var configuration = HTTPServer.Configuration(bodyLimit: 1 << 20).patient
    configuration.proxies = TrustedProxies([try #require(AddressRange("127.0.0.0/8"))])
    configuration.addressLimit = 2
    configuration.connectionReserve = 1
    configuration.admission = { arrival in
      guard arrival.isBeyondShare, arrival.request.path != "/healthz" else {
        return .proceed(limit: 100)
      }
      return .refuse(.text("no", status: 429))
    }
    return configuration
  }

  @Test("a handler sees the client's address, and an untrusted peer's header is ignored")
  func address() async throws {
    let handler: HTTPHandler = { .text($0.remoteAddress) }
    for isTrusted in [true, false] {
      var configuration = try Self.configuration()
      if !isTrusted { configuration.proxies = TrustedProxies() }
      try await withServer(configuration, handler: handler) { server in
        try await onThread {
          let proxy = try RawClient(port: server.port)
          for (value, client) in [("192.0.2.7", "192.0.2.7"), ("2001:db8::1", "2001:db8::1")] {
            let answer = try proxy.exchange("GET", "/", headers: ["X-Forwarded-For": value])
            #expect(answer.text == (isTrusted ? client : "127.0.0.1"))
          }
          let bad = try proxy.exchange("GET", "/", headers: ["X-Forwarded-For": "me"])
          #expect(bad.status == (isTrusted ? 400 : 200))
          #expect(try proxy.exchange("GET", "/").text == "127.0.0.1")
        }
      }
    }
  }

  @Test("one client behind a proxy uses up its own share only, and its probes go on")
  func shares() async throws {
    let gate = Gate()
    let waiting = Mutex(0)
    let both = Gate()
    let handler: HTTPHandler = { request in
      if request.path == "/wait" {
        let count = waiting.withLock { count in
          count += 1
          return count
        }
        if count == 2 { both.open() }
        await gate.wait()
      }
      return .text(request.remoteAddress)
    }
    try await withServer(try Self.configuration(), handler: handler) { server in
      let hostile = ["X-Forwarded-For": "192.0.2.7"]
      // Used by one thread after another.
      nonisolated(unsafe) var held: [RawClient] = []
      try await onThread {
        for _ in 0..<2 {
          let client = try RawClient(port: server.port)
          try client.send(RawClient.message("GET", "/wait", headers: hostile))
          held.append(client)
        }
      }
      await both.wait()
      try await onThread {
        let proxy = try RawClient(port: server.port)
        #expect(try proxy.exchange("GET", "/a", headers: hostile).status == 429)
        #expect(try proxy.exchange("GET", "/healthz", headers: hostile).status == 200)
        let other = try proxy.exchange("GET", "/a", headers: ["X-Forwarded-For": "192.0.2.8"])
        #expect(other.text == "192.0.2.8")
        #expect(try proxy.exchange("GET", "/a").status == 200)
        gate.open()
        for client in held { #expect(try client.response().text == "192.0.2.7") }
      }
    }
  }
}
