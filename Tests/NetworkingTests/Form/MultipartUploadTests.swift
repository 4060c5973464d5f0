import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite("Uploads of forms", .hangLimit)
struct MultipartUploadTests {
  private static let python = URL(filePath: "/usr/bin/python3")
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static func sum(_ bytes: [UInt8]) -> Int { bytes.reduce(0) { $0 + Int($1) } }

  /// Responds with the announced type and length, and the received bytes.
  private func echo() -> RawServer {
    RawServer { exchange in
      let fields = ["content-type", "content-length"].map {
        "Sent-\($0): \(exchange.headers[$0] ?? "none")"
      }
      if exchange.path == "/moved" { return exchange.answer("307 Moved", ["Location: /here"]) }
      return exchange.answer("200 OK", fields, exchange.body)
    }
  }

  private func file(_ name: String, _ content: [UInt8]) throws -> String {
    let url = directory.file(name)
    try Data(content).write(to: url)
    return url.path
  }

  private func client(_ server: RawServer, _ transport: any Transport) -> NetworkClient {
    NetworkClient(NetworkConfiguration(BaseURL(server.url(""))), transport: transport)
  }

  @Test(
    "a parser of another language reads all fields and files of a form",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")),
    arguments: TransportUnderTest.allCases)
  func parsed(_ kind: TransportUnderTest) async throws {
    let server = echo()
    defer { server.stop() }
    let large = (0..<3 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    var form = MultipartForm()
    form.add("title", "a\nb")
    form.addFile("photo", path: try file("a.jpg", large), contentType: "image/jpeg")
    form.addFile("photo", path: try file("b.jpg", []), contentType: "image/jpeg")
    form.addFile("note", bytes: Array("--x--\r\n".utf8), fileName: "n\".txt")
    let answer = try await client(server, kind.make()).send(
      NetworkRequest("/x", method: .post, body: .form(form)))
    #expect(answer.headers["Sent-content-length"] == "\(answer.body.count)")
    let type = try #require(answer.headers["Sent-content-type"])
    try Data("Content-Type: \(type)\r\n\r\n".utf8 + answer.body).write(to: directory.file("form"))
    let script = """
      import email.policy, sys
      message = email.message_from_bytes(open(sys.argv[1], 'rb').read(), policy=email.policy.HTTP)
      for part in message.iter_parts():
        content = part.get_payload(decode=True)
        print(part.get_param('name', header='content-disposition'), part.get_filename(),
          part.get_content_type(), len(content), sum(content) % 65521)
      """
    let output = try await ChildProcess.run(
      Self.python, ["-c", script, directory.file("form").path])
    let sum = Self.sum(large) % 65521
    let note = Self.sum(Array("--x--\r\n".utf8))
    #expect(
      output.output.split(separator: "\n").map(String.init) == [
        "title None text/plain 3 205",
        "photo a.jpg image/jpeg \(large.count) \(sum)", "photo b.jpg image/jpeg 0 0",
        "note n%22.txt application/octet-stream 7 \(note)",
      ])
  }

  @Test(
    "a form is sent again from its start if a redirect asks for it",
    arguments: TransportUnderTest.allCases)
  func redirect(_ kind: TransportUnderTest) async throws {
    let server = echo()
    defer { server.stop() }
    var form = MultipartForm()
    form.addFile("a", path: try file("a", [1, 2, 3]))
    form.addFile("b", path: try file("b", [4, 5, 6]))
    let answer = try await client(server, kind.make()).send(
      NetworkRequest("/moved", method: .post, body: .form(form)))
    #expect(answer.headers["Sent-content-length"] == "\(answer.body.count)")
    #expect(answer.body.firstRange(of: [4, 5, 6]) != nil)
  }

  @Test(
    "a file that cannot be read fails the form, and nothing is sent",
    arguments: TransportUnderTest.allCases)
  func missing(_ kind: TransportUnderTest) async throws {
    let server = echo()
    defer { server.stop() }
    var form = MultipartForm()
    form.addFile("a", path: try file("a", [1]))
    form.addFile("b", path: directory.file("none").path)
    let error = await #expect(throws: NetworkError.self) {
      try await client(server, kind.make()).send(
        NetworkRequest("/x", method: .post, body: .form(form)))
    }
    #expect(error?.kind == .fileFailed && server.count(.requested("/x")) == 0)
  }

  // In a separate process: other tests use memory, too.
  @Test(
    "a form of 200 MB is sent to a real server with a bounded memory",
    .enabled(if: NginxServer.isAvailable))
  func memory() async throws {
    await #expect(processExitsWith: .success) {
      let grown = try await MultipartUploadTests.sendLargeForm()
      print("a form of 200 MB: memory grew by \(grown >> 10) KiB")
      guard grown < 32 << 20 else { exit(EXIT_FAILURE) }
    }
  }

  /// Sends two files of 100 MiB, and returns the growth of this process in bytes.
  private static func sendLargeForm() async throws -> Int {
    let directory = try TemporaryDirectory()
    let nginx = try await NginxServer()
    var form = MultipartForm()
    for name in ["a", "b"] {
      let url = directory.file(name)
      try Data().write(to: url)
      try FileHandle(forWritingTo: url).truncate(atOffset: 100 << 20)
      form.addFile(name, path: url.path)
    }
    var configuration = NetworkConfiguration(BaseURL(nginx.url("")))
    configuration.certificateAuthorities = nginx.certificate
    let client = NetworkClient(configuration)
    let before = Memory.resident
    let highest = Mutex(0)
    let sent = Mutex(0)
    let answer = try await client.send(
      NetworkRequest("/form", method: .put, body: .form(form), timeout: .hangLimit)
    ) { progress in
      sent.withLock { $0 = progress.sent }
      highest.withLock { $0 = max($0, Memory.resident) }
    }
    let bytes = sent.withLock { $0 }
    precondition(answer.status == 201 && bytes > 200 << 20 && nginx.size("form") == bytes)
    return highest.withLock { $0 } - before
  }
}

/// The memory of this process.
private enum Memory {
  /// Resident bytes.
  static var resident: Int {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
      return 0
    }
    let words = text.split(separator: " ")
    return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }
}
