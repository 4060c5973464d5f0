import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryShell

@Suite("Requests of a page to other servers", .hangLimit)
struct NetworkServiceTests {
  /// A server that answers with a fixed text, and keeps the requests.
  private final class Server: Sendable {
    let port: UInt16
    private let listener: Int32
    private let heads = Mutex<[String]>([])

    init(_ answer: @escaping @Sendable (_ head: String) -> String) throws {
      let (listener, port) = try LoopbackSocket.listen()
      (self.listener, self.port) = (listener, port)
      Thread { [self] in
        while let socket = LoopbackSocket.accept(on: listener) {
          var buffer = [UInt8](repeating: 0, count: 64 << 10)
          let head = String(decoding: LoopbackSocket.read(socket, &buffer), as: UTF8.self)
          heads.withLock { $0.append(head) }
          _ = LoopbackSocket.write(socket, Array(answer(head).utf8)[...])
          close(socket)
        }
        close(listener)
      }.start()
    }

    /// The thread closes the socket: the socket's number may be another one's soon.
    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    var origin: String { "http://127.0.0.1:\(port)" }
    var requests: [String] { heads.withLock { $0 } }

    static func text(_ text: String, _ fields: String = "") -> String {
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\(fields)Content-Length: \(text.utf8.count)\r\n\r\n\(text)"
    }
  }

  private func call(_ origins: [String], _ argument: ServiceValue) async throws -> ServiceValue {
    let service = try #require(NetworkServices(origins: origins).all.first)
    if let fault = service.argument.fault(in: argument) { throw ServiceError.badRequest(fault) }
    let version = PageVersion(
      name: "probe", version: "1", entry: try #require(BundlePath("index.html")), services: [])
    let handler = try #require(service.handler)
    return try await handler(
      ServiceCall(argument: argument, bundle: version, files: PageFiles(prefix: "/t/1/-/files/")))
  }

  private func code(_ origins: [String], _ argument: ServiceValue) async -> String? {
    do {
      _ = try await call(origins, argument)
      return nil
    } catch {
      return ServiceError(error).code
    }
  }

  @Test("a page reaches the servers that the app lists")
  func allowed() async throws {
    let server = try Server { _ in Server.text("hello", "X-Mark: 7\r\nSet-Cookie: a=b\r\n") }
    defer { server.stop() }
    let value = try await call(
      [server.origin],
      [
        "url": .text(server.origin + "/a?b=c"), "method": "POST", "headers": ["X-Own": "é"],
        "body": "text",
      ])
    #expect(value["status"] == 200)
    #expect(value["text"] == "hello")
    #expect(value["headers"]?["x-mark"] == "7")
    #expect(value["headers"]?["set-cookie"] == nil)
    let head = try #require(server.requests.first)
    #expect(head.hasPrefix("POST /a?b=c HTTP/1.1\r\n"))
    #expect(head.contains("X-Own: é\r\n"))
  }

  @Test("a page sees the status of a failed request")
  func status() async throws {
    let server = try Server { _ in "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone" }
    defer { server.stop() }
    let value = try await call([server.origin], ["url": .text(server.origin)])
    #expect(value["status"] == 404)
    #expect(value["text"] == "none")
  }

  @Test("a page reaches no other server, and no redirect leads there")
  func refused() async throws {
    let secret = try Server { _ in Server.text("secret") }
    let server = try Server { _ in
      "HTTP/1.1 302 Found\r\nLocation: \(secret.origin)/\r\nContent-Length: 0\r\n\r\n"
    }
    defer {
      server.stop()
      secret.stop()
    }
    for url in [
      secret.origin, "http://localhost:\(server.port)", "https://127.0.0.1:\(server.port)",
      "http://127.0.0.1:\(server.port)@127.0.0.1:\(secret.port)/", "file:///etc/passwd",
      "http:\\\\127.0.0.1:\(secret.port)", "http://127.0.0.1:\(server.port) .evil.example/", "",
    ] {
      #expect(await code([server.origin], ["url": .text(url)]) == "origin_not_allowed", "\(url)")
    }
    #expect(await code([server.origin], ["url": .text(server.origin)]) == "origin_not_allowed")
    // A connection may have been opened, but no request was sent.
    #expect(secret.requests.filter { !$0.isEmpty } == [])
    #expect(server.requests.count == 1)
  }

  @Test("a page sets no field of the program's own, and none that splits the head")
  func fields() async throws {
    let server = try Server { _ in Server.text("hello") }
    defer { server.stop() }
    for name: String in ["Host", "cookie", "Origin", "Content-Length", "TRANSFER-ENCODING"] {
      let argument: ServiceValue = [
        "url": .text(server.origin), "headers": .object([.init(stringLiteral: name): "x"]),
      ]
      #expect(await code([server.origin], argument) == "invalid_argument", "\(name)")
    }
    let split: ServiceValue = ["url": .text(server.origin), "headers": ["X": "a\r\nCookie: b"]]
    #expect(await code([server.origin], split) != nil)
    #expect(server.requests.isEmpty)
  }

  @Test("a large answer has an address")
  func large() async throws {
    let text = String(repeating: "a", count: 300_000)
    let server = try Server { _ in Server.text(text, "Content-Type: image/png\r\n") }
    defer { server.stop() }
    let value = try await call([server.origin], ["url": .text(server.origin)])
    #expect(value["size"] == 300_000)
    #expect(value["text"] == nil)
    #expect(value["file"]?.text?.hasPrefix("/t/1/-/files/") == true)
  }

  @Test("an absent server is offline")
  func offline() async throws {
    let server = try Server { _ in "" }
    server.stop()
    #expect(await code([server.origin], ["url": .text(server.origin)]) == "offline")
  }
}
