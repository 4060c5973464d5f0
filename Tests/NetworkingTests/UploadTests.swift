import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite("Uploads of files", .hangLimit)
struct UploadTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("film.mp4").path
  }

  private func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(filePath: path)) }

  /// Responds with the method, the announced length, and the received bytes.
  private func echo() -> RawServer {
    RawServer { exchange in
      let length = exchange.headers["content-length"] ?? "none"
      let fields = ["Method: \(exchange.method)", "Length: \(length)"]
      return exchange.answer("200 OK", fields, exchange.body)
    }
  }

  private static let content = (0..<5 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

  @Test(
    "a file is sent with its length and every byte",
    arguments: TransportUnderTest.allCases, [TransportMethod.post, .put, .patch])
  func whole(_ kind: TransportUnderTest, method: TransportMethod) async throws {
    let transport = kind.make()
    let server = echo()
    defer { server.stop() }
    for content in [Self.content, [], [1]] {
      try write(content)
      let request = TransportRequest(method, server.url("/x"), file: FileSlice(path: path))
        .patient
      let response = try await transport.send(request)
      #expect(response.headers["Method"] == method.rawValue)
      #expect(response.headers["Length"] == "\(content.count)")
      #expect(response.body == content)
    }
    #expect(server.count(.accepted) == 1)
  }

  @Test("a range of a file is sent as that part", arguments: TransportUnderTest.allCases)
  func range(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = echo()
    defer { server.stop() }
    try write(Self.content)
    let range = 100_000..<4_000_000
    let request = TransportRequest(
      .put, server.url("/x"), file: FileSlice(path: path, range: range)
    ).patient
    #expect(try await transport.send(request).body == Array(Self.content[range]))
  }

  @Test("a client sends a file with its media type")
  func client() async throws {
    let server = RawServer { exchange in
      exchange.answer("200 OK", ["Type: \(exchange.headers["content-type"] ?? "-")"])
    }
    defer { server.stop() }
    try write([1, 2, 3])
    let client = NetworkClient(NetworkConfiguration(BaseURL(server.url(""))))
    let response = try await client.send(
      NetworkRequest("/x", method: .put, body: .file(path, contentType: "video/mp4")))
    #expect(response.headers["Type"] == "video/mp4")
  }

  @Test(
    "a file is sent again from its start if a redirect asks for it",
    arguments: TransportUnderTest.allCases)
  func redirect(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.path == "/here"
        ? exchange.answer("200 OK", [], exchange.body)
        : exchange.answer("307 Temporary Redirect", ["Location: /here"])
    }
    defer { server.stop() }
    try write(Self.content)
    let request = TransportRequest(.post, server.url("/x"), file: FileSlice(path: path))
    #expect(try await transport.send(request).body == Self.content)
  }

  @Test(
    "a file is read while it is sent: later changes are sent as well",
    arguments: TransportUnderTest.allCases)
  func streaming(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    // More than sockets buffer: the end cannot have been read before the server reads the body.
    try write([UInt8](repeating: 1, count: 64 << 20))
    let file = try FileHandle(forUpdating: URL(filePath: path))
    let server = RawServer(beforeBody: {
      _ = pwrite(file.fileDescriptor, [UInt8(2)], 1, 64 << 20 - 1)
    }) { exchange in
      let last = exchange.body.last.map { String($0) } ?? "-"
      return exchange.answer("200 OK", ["Last: \(last)", "Count: \(exchange.body.count)"])
    }
    defer { server.stop() }
    let request = TransportRequest(.put, server.url("/x"), file: FileSlice(path: path)).patient
    let response = try await transport.send(request)
    #expect(response.headers["Last"] == "2")
    #expect(response.headers["Count"] == "\(64 << 20)")
  }

  @Test("an upload reports its progress up to the end", arguments: TransportUnderTest.allCases)
  func progress(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let seen = Mutex<[TransportProgress]>([])
    let isUnderWay = DispatchSemaphore(value: 0)
    // More than sockets buffer: the server reads none of the body before a part of it was reported.
    let count = 64 << 20
    let server = RawServer(beforeBody: { isUnderWay.wait() }) { exchange in
      exchange.answer("200 OK", [], [1, 2, 3])
    }
    defer { server.stop() }
    try write([UInt8](repeating: 1, count: count))
    let request = TransportRequest(.put, server.url("/x"), file: FileSlice(path: path)).patient
    _ = try await transport.send(request) { progress in
      seen.withLock { $0.append(progress) }
      if 0 < progress.sent && progress.sent < count { isUnderWay.signal() }
    }
    let progress = seen.withLock { $0 }
    #expect(
      progress.last
        == TransportProgress(sent: count, sentTotal: count, received: 3, receivedTotal: 3))
    #expect(progress.map(\.sent) == progress.map(\.sent).sorted())
  }

  @Test(
    "a file that cannot be read is reported before anything is sent",
    arguments: TransportUnderTest.allCases)
  func unreadable(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = echo()
    defer { server.stop() }
    try write([1, 2, 3])
    for slice in [
      FileSlice(path: directory.file("missing").path), FileSlice(path: directory.url.path),
      FileSlice(path: path, range: 2..<4), FileSlice(path: path, range: -1..<1),
    ] {
      let request = TransportRequest(.put, server.url("/x"), file: slice)
      #expect(try await transport.failure(request).kind == .fileFailed, "\(slice)")
    }
    #expect(server.count(.requested("/x")) == 0)
  }

  @Test(
    "a file that becomes shorter during its upload fails the upload",
    arguments: TransportUnderTest.allCases)
  func shortened(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let path = path
    // URLSession reads the file itself, and waits for the missing bytes until the time is over. A
    // busy machine may need more time to begin.
    for seconds in kind == .libcurl ? [60, 120, 240] : [5, 10, 20, 40, 80] {
      // More than sockets buffer: the end cannot have been read before the server reads the body.
      try write([UInt8](repeating: 1, count: 64 << 20))
      let hasBegun = Mutex(false)
      let server = RawServer(beforeBody: {
        // Before the truncation: the upload may fail before the next line runs.
        hasBegun.withLock { $0 = true }
        truncate(path, 1)
      }) { $0.answer("200 OK", []) }
      defer { server.stop() }
      let request = TransportRequest(
        .put, server.url("/x"), file: FileSlice(path: path), timeout: .seconds(seconds))
      let error = try await transport.failure(request)
      if error.kind == .fileFailed {
        #expect(hasBegun.withLock { $0 })
        return
      }
      try #require(error.kind == .timedOut)
    }
    Issue.record("no upload began in time")
  }

  @Test("an upload stops when the server refuses it", arguments: TransportUnderTest.allCases)
  func refused(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    try write([UInt8](repeating: 1, count: 64 << 20))
    let (listener, port) = Loopback.listen()
    defer { close(listener) }
    Thread.detachNewThread {
      let connection = accept(listener, nil, nil)
      _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
      var buffer = [UInt8](repeating: 0, count: 4096)
      recv(connection, &buffer, buffer.count, 0)
      let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      send(connection, answer, answer.utf8.count, 0)
      // Bytes on their way are read, so no reset overtakes the response.
      while recv(connection, &buffer, buffer.count, 0) > 0 {}
      close(connection)
    }
    let request = TransportRequest(
      .put, "http://127.0.0.1:\(port)/x", file: FileSlice(path: path)
    ).patient
    #expect(try await transport.send(request).status == 413)
  }
}
