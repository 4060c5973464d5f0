import Foundation
import Networking
import TestSupport
import Testing

@Suite(
  "TLS is verified", .hangLimit,
  .enabled(if: SecureServer.isAvailable, "needs the openssl command"))
struct SecureTransportTests {
  @Test("A certificate that is trusted and names the host is accepted")
  func trusted() async throws {
    let server = try await SecureServer(names: "IP:127.0.0.1")
    defer { server.stop() }
    let response = try await transport(trusting: server).send(TransportRequest(.get, server.url))
    #expect(response.body == Array("safe".utf8))
  }

  @Test("A certificate that nobody vouches for is refused")
  func untrusted() async throws {
    let server = try await SecureServer(names: "IP:127.0.0.1")
    defer { server.stop() }
    #expect(await kind(CurlTransport(), server.url) == .secureConnectionFailed)
  }

  @Test("A certificate for another name is refused")
  func otherName() async throws {
    let server = try await SecureServer(names: "DNS:elsewhere.invalid")
    defer { server.stop() }
    #expect(await kind(transport(trusting: server), server.url) == .secureConnectionFailed)
  }

  @Test("A server that speaks no TLS is refused")
  func noTLS() async throws {
    let (listener, port) = Loopback.listen()
    defer { close(listener) }
    Thread.detachNewThread {
      let connection = accept(listener, nil, nil)
      _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
      send(connection, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0)
      close(connection)
    }
    #expect(await kind(CurlTransport(), "https://127.0.0.1:\(port)/") == .secureConnectionFailed)
  }

  @Test("A redirect to plain http is refused before anything is sent")
  func downgrade() async throws {
    let plain = RawServer { $0.answer("200 OK") }
    defer { plain.stop() }
    let server = try await SecureServer(
      names: "IP:127.0.0.1",
      response: "HTTP/1.0 302 Found\r\nLocation: \(plain.url("/secret"))\r\n\r\n")
    defer { server.stop() }
    #expect(await kind(transport(trusting: server), server.url) == .secureConnectionFailed)
    #expect(plain.count(.requested("/secret")) == 0)
  }

  private func transport(trusting server: SecureServer) -> CurlTransport {
    var configuration = CurlTransport.Configuration()
    configuration.certificateAuthorities = server.certificate.path
    return CurlTransport(configuration: configuration)
  }

  private func kind(_ transport: CurlTransport, _ url: String) async -> TransportError.Kind? {
    do {
      _ = try await transport.send(TransportRequest(.get, url))
      return nil
    } catch {
      return error.kind
    }
  }
}
