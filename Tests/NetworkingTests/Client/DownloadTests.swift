import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite("Downloads to a file", .hangLimit)
struct DownloadTests {
  private let directory: TemporaryDirectory
  private let path: String
  private let still = StillSurroundings()

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("film.mp4").path
  }

  private func client(_ server: RawServer) -> NetworkClient {
    NetworkClient(
      NetworkConfiguration(BaseURL(server.url(""))), transport: CurlTransport(),
      surroundings: still.surroundings)
  }

  private var files: [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: directory.url.path).sorted()) ?? []
  }

  private var content: [UInt8]? { FileManager.default.contents(atPath: path).map(Array.init) }

  private static let body = (0..<3 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

  @Test("a download's file appears when it is whole, and its progress is reported")
  func whole() async throws {
    let server = RawServer { $0.answer("200 OK", ["A: b"], Self.body) }
    defer { server.stop() }
    let seen = Mutex<[TransportProgress]>([])
    let response = try await client(server).download(NetworkRequest("/film"), to: path) {
      progress in seen.withLock { $0.append(progress) }
    }
    #expect(response.status == 200 && response.headers["A"] == "b" && response.body.isEmpty)
    #expect(content == Self.body)
    #expect(files == ["film.mp4"])
    let progress = seen.withLock { $0 }
    #expect(progress.last == TransportProgress(received: 3 << 20, receivedTotal: 3 << 20))
    #expect(progress.map(\.received) == progress.map(\.received).sorted())
  }

  @Test("an interrupted download starts again, and nothing of the first attempt is in it")
  func brokenOff() async throws {
    let attempts = Mutex(0)
    let server = RawServer { exchange in
      let attempt = attempts.withLock { attempts in
        attempts += 1
        return attempts
      }
      if attempt == 2 { return exchange.answer("200 OK", [], Self.body) }
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(Self.body.count)\r\n\r\n")
      exchange.send([UInt8](repeating: 7, count: 100_000))
      return false
    }
    defer { server.stop() }
    try await client(server).download(NetworkRequest("/film"), to: path)
    #expect(content == Self.body)
    #expect(files == ["film.mp4"])
    #expect(still.pauses.count == 1)
  }

  @Test("a refused download leaves the existing file unchanged")
  func refused() async throws {
    try Data("old".utf8).write(to: URL(filePath: path))
    let server = RawServer { $0.answer("403 Forbidden", [], Array("a page".utf8)) }
    defer { server.stop() }
    await #expect {
      try await client(server).download(NetworkRequest("/film"), to: path)
    } throws: {
      ($0 as? NetworkError)?.response?.body == Array("a page".utf8)
    }
    #expect(content == Array("old".utf8))
    #expect(files == ["film.mp4"])
  }

  @Test("a download that never completes leaves nothing")
  func neverWhole() async throws {
    let server = RawServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      return false
    }
    defer { server.stop() }
    await #expect {
      try await client(server).download(NetworkRequest("/film"), to: path)
    } throws: {
      ($0 as? NetworkError)?.kind == .interrupted
    }
    #expect(files.isEmpty)
    #expect(server.count(.requested("/film")) == 6)
  }

  @Test("a download to a path that cannot be written reports it")
  func unwritable() async throws {
    let server = RawServer { $0.answer("200 OK", [], Self.body) }
    defer { server.stop() }
    await #expect {
      try await client(server).download(
        NetworkRequest("/film"), to: directory.file("missing/film.mp4").path)
    } throws: {
      ($0 as? NetworkError)?.kind == .fileFailed
    }
    #expect(server.count(.requested("/film")) == 1)
  }

  @Test("a cancelled download ends at once and leaves nothing")
  func cancelled() async throws {
    let server = RawServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      exchange.waitForLeave()
      return false
    }
    defer { server.stop() }
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let client = client(server)
    let task = Task { [path] in
      try await client.download(NetworkRequest("/film"), to: path) {
        if $0.received > 0 { start.yield() }
      }
    }
    for await _ in started { break }
    task.cancel()
    await #expect {
      try await task.value
    } throws: {
      ($0 as? NetworkError)?.kind == .cancelled
    }
    #expect(files.isEmpty)
    await server.happened(.ended("/film"))
  }
}
