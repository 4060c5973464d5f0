import FerryTestSupport
import Foundation
import Testing

@testable import FerryNetworking

@Suite(
  "TLS is verified", .hangLimit,
  .enabled(if: SecureServer.isAvailable, "needs the openssl command"))
struct SecureTransportTests {
  @Test("a certificate that is trusted and names the host is accepted")
  func trusted() async throws {
    let server = try await SecureServer(names: "IP:127.0.0.1")
    defer { server.stop() }
    let response = try await transport(trusting: server).send(TransportRequest(.get, server.url))
    #expect(response.body == Array("safe".utf8))
  }

  @Test("a certificate without a trusted issuer is refused")
  func untrusted() async throws {
    let server = try await SecureServer(names: "IP:127.0.0.1")
    defer { server.stop() }
    #expect(await kind(CurlTransport(), server.url) == .secureConnectionFailed)
  }

  @Test("a certificate for another name is refused")
  func otherName() async throws {
    let server = try await SecureServer(names: "DNS:elsewhere.invalid")
    defer { server.stop() }
    #expect(await kind(transport(trusting: server), server.url) == .secureConnectionFailed)
  }

  @Test("an authority that a request names is trusted for it")
  func authorityOfRequest() async throws {
    let server = try await SecureServer(names: "IP:127.0.0.1")
    defer { server.stop() }
    var request = TransportRequest(.get, server.url)
    request.certificateAuthorities = server.certificate.path
    #expect(try await CurlTransport().send(request).body == Array("safe".utf8))
  }

  @Test("a refusal contains the fault of the certificate")
  func reasons() async throws {
    func message(_ server: SecureServer, _ authorities: String?) async -> String {
      var request = TransportRequest(.get, server.url)
      request.certificateAuthorities = authorities
      do {
        _ = try await CurlTransport().send(request)
        return ""
      } catch {
        return error.message
      }
    }
    let server = try await SecureServer(names: "IP:127.0.0.1")
    defer { server.stop() }
    #expect(await message(server, nil).contains("--ca FILE"))
    #expect(await message(server, "/dev/null/none.pem").contains("/dev/null/none.pem"))
    let other = try await SecureServer(names: "DNS:elsewhere.invalid")
    defer { other.stop() }
    #expect(
      await message(other, other.certificate.path).contains("for another name than 127.0.0.1"))
    #expect(HandshakeFault(verifyResult: 10) == .expired)
    #expect(HandshakeFault(verifyResult: 9) == .notYetValid)
    #expect(HandshakeFault(verifyResult: 20) == .unknownIssuer)
    #expect(HandshakeFault(verifyResult: 23) == .other)
  }

  @Test("a connection that breaks during the handshake is not a refusal of the certificate")
  func brokenHandshake() async throws {
    let (listener, port) = Loopback.listen()
    defer { close(listener) }
    Thread.detachNewThread {
      let connection = accept(listener, nil, nil)
      var byte: UInt8 = 0
      _ = recv(connection, &byte, 1, 0)
      close(connection)
    }
    #expect(await kind(CurlTransport(), "https://127.0.0.1:\(port)/") == .interrupted)
  }

  @Test("a server without TLS is refused")
  func noTLS() async throws {
    let (listener, port) = Loopback.listen()
    defer { close(listener) }
    Thread.detachNewThread {
      let connection = accept(listener, nil, nil)
      _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
      send(connection, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0)
      close(connection)
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await CurlTransport().send(TransportRequest(.get, "https://127.0.0.1:\(port)/"))
    }
    #expect(error?.kind == .secureConnectionFailed && error?.isOfTLS == false)
    #expect(error?.message.contains("answered without TLS") == true)
  }

  @Test("a refused certificate shows that the server speaks TLS")
  func ofTLS() async throws {
    let server = try await SecureServer(names: "IP:127.0.0.1")
    defer { server.stop() }
    let error = await #expect(throws: TransportError.self) {
      _ = try await CurlTransport().send(TransportRequest(.get, server.url))
    }
    #expect(error?.isOfTLS == true)
  }

  @Test("OpenSSL's reasons are read from its error number")
  func reasonNumbers() {
    #expect(HandshakeFault.isWithoutTLS("error:0A00010B:SSL routines::wrong version number"))
    #expect(HandshakeFault.isWithoutTLS("error:0A0000C6:SSL routines::packet length too long"))
    #expect(!HandshakeFault.isWithoutTLS("error:0A000086:SSL routines::certificate verify failed"))
    #expect(!HandshakeFault.isWithoutTLS("SSL_ERROR_SYSCALL"))
    // In any language.
    #expect(HandshakeFault.isBreak("error:0A000126:Bibliothek::unerwartetes Ende"))
    #expect(HandshakeFault.isBreak("Connection reset by peer"))
    #expect(!HandshakeFault.isBreak("error:0A000086:SSL routines::no unexpected eof"))
  }

  @Test("a redirect to plain http is refused before anything is sent")
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
    var configuration = TransportConfiguration()
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
