import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

/// Each misdeed of a server against files with hashes of chunks and without.
@Suite("Downloads from hostile servers", .hangLimit)
struct DownloadHostilityTests {
  private typealias Answer = HostileServer.Answer
  private let content = Array(DownloadFixture.content.prefix(1_500_000))
  private let fixture: DownloadFixture

  init() throws { fixture = try DownloadFixture() }

  /// Fetches from a server and expects the right file.
  private func succeed(
    inChunks: Bool, timeout: Duration = .seconds(20), attempts: Int = 4,
    _ respond: @escaping @Sendable (HostileServer.Request) -> HostileServer.Answer
  ) async throws -> (server: HostileServer, outcome: DownloadOutcome) {
    let server = try HostileServer(respond)
    defer { server.stop() }
    let outcome = try await fixture.download(
      fixture.job(content, from: server.url, inChunks: inChunks), attempts: attempts,
      timeout: timeout)
    #expect(try fixture.content() == content)
    try expectHonestProgress()
    return (server, outcome)
  }

  /// Fetches from a server and expects a failure.
  private func fail(
    inChunks: Bool,
    _ respond: @escaping @Sendable (HostileServer.Request) -> HostileServer.Answer
  ) async throws -> DownloadError.Kind? {
    let server = try HostileServer(respond)
    defer { server.stop() }
    let failure = await fixture.failure(
      fixture.job(content, from: server.url, inChunks: inChunks))
    try expectHonestProgress()
    return failure?.kind
  }

  private func expectHonestProgress() throws {
    let progress = fixture.notes.withLock { $0.progress }
    #expect(progress.map(\.bytesDone) == progress.map(\.bytesDone).sorted())
    #expect(progress.allSatisfy { $0.bytesDone <= $0.bytesTotal ?? 0 })
  }

  @Test("a correct server delivers the file, and no byte of it twice", arguments: [true, false])
  func good(inChunks: Bool) async throws {
    let content = content
    let (server, outcome) = try await succeed(inChunks: inChunks) {
      .good(content, tag: "\"a\"", to: $0)
    }
    #expect(server.served == content.count)
    let size = Int64(content.count)
    #expect(
      outcome
        == DownloadOutcome(
          bytesFetched: size, bytesReused: 0, size: size, hash: DownloadFixture.hash(content)))
    #expect(server.requests.allSatisfy { $0.fields["accept-encoding"] == "identity" })
    #expect(inChunks ? (6...12).contains(server.requests.count) : server.requests.count == 1)
    #expect(fixture.notes.withLock { $0.progress.last?.bytesDone } == Int64(content.count))
  }

  @Test("a server that ignores ranges delivers the file in one answer", arguments: [true, false])
  func ignoresRange(inChunks: Bool) async throws {
    let content = content
    let (server, _) = try await succeed(inChunks: inChunks) { _ in Answer("200 OK", [], content) }
    #expect(server.requests.count == 1)
    #expect(server.served == content.count)
  }

  @Test("if a server starts to ignore ranges, the download still completes")
  func ignoresRangeLater() async throws {
    let content = content
    let (server, outcome) = try await succeed(inChunks: true) {
      $0.number == 0
        ? .good(content, tag: nil, to: $0).cut(after: 200_000) : Answer("200 OK", [], content)
    }
    #expect((2...8).contains(server.requests.count))
    #expect(outcome.bytesFetched >= Int64(content.count))
  }

  @Test("if a server ignores ranges on a resume, the file starts again and nothing is spliced")
  func ignoresRangeOnResume() async throws {
    let content = content
    let (server, _) = try await succeed(inChunks: false) {
      let answer = Answer("200 OK", ["ETag: \"a\""], content)
      return $0.number == 0 ? answer.cut(after: 700_000) : answer
    }
    #expect(server.requests[1].fields["range"]?.hasSuffix("-1499999") == true)
    #expect(server.requests[1].fields["if-range"] == "\"a\"")
  }

  @Test(
    "an answer with another length than the file's is refused, and nothing is written",
    arguments: [true, false])
  func otherLength(inChunks: Bool) async throws {
    let content = content
    for length in [content.count - 1, content.count + 1, 0] {
      let kind = try await fail(inChunks: inChunks) { _ in
        Answer("200 OK", [], content, length: length)
      }
      #expect(kind == .wrongContent(chunk: nil))
      #expect(try fixture.isUntouched(content.count))
    }
  }

  @Test(
    "bytes beyond the announced or requested length are never written", arguments: [true, false])
  func sendsMore(inChunks: Bool) async throws {
    let content = content
    let long = content + DownloadFixture.bytes(500_000, seed: 9)
    _ = try await succeed(inChunks: inChunks) { request in
      var answer = Answer.good(content, tag: "\"a\"", to: request)
      answer.length = nil
      answer.body += long.suffix(500_000)
      return answer
    }
  }

  @Test("if a body ends too early, only the rest is requested", arguments: [true, false])
  func truncates(inChunks: Bool) async throws {
    let content = content
    let (server, outcome) = try await succeed(inChunks: inChunks) {
      var answer = Answer.good(content, tag: "\"a\"", to: $0)
      answer.body = Array(answer.body.prefix(100_000))
      answer.length = nil
      return answer
    }
    #expect(outcome.bytesFetched == Int64(content.count))
    #expect(server.served == content.count)
  }

  @Test(
    "if a connection closes after some bytes, only the rest is requested", arguments: [true, false])
  func closes(inChunks: Bool) async throws {
    let content = content
    let (_, outcome) = try await succeed(inChunks: inChunks) {
      .good(content, tag: "\"a\"", to: $0).cut(after: 150_000)
    }
    #expect(outcome.bytesFetched == Int64(content.count))
  }

  @Test("if a server falls silent, the rest is requested again", arguments: [true, false])
  func stalls(inChunks: Bool) async throws {
    let content = content
    let (server, outcome) = try await succeed(
      inChunks: inChunks, timeout: .milliseconds(300), attempts: 1_000
    ) {
      let answer = Answer.good(content, tag: "\"a\"", to: $0)
      return $0.number == 0 ? answer.cut(after: 100_000, .silence) : answer
    }
    #expect(server.requests.count >= 2)
    #expect(outcome.bytesFetched == Int64(content.count))
  }

  @Test("a page in place of a range is refused and never saved", arguments: [true, false])
  func pages(inChunks: Bool) async throws {
    let page = Array("<html>Please log in</html>".utf8)
    for (status, number) in [
      ("401 Unauthorized", 401), ("403 Forbidden", 403), ("404 Not Found", 404),
      ("410 Gone", 410), ("304 Not Modified", 304), ("203 Other", 203),
    ] {
      let kind = try await fail(inChunks: inChunks) { _ in
        Answer(status, ["Content-Type: text/html"], status.hasPrefix("304") ? [] : page)
      }
      #expect(kind == .server(number))
      #expect(try fixture.isUntouched(content.count))
    }
  }

  @Test("a page with status 200 is refused and never saved", arguments: [true, false])
  func loginPage(inChunks: Bool) async throws {
    let page = Array("<html>Please log in</html>".utf8)
    let kind = try await fail(inChunks: inChunks) { _ in
      Answer("200 OK", ["Content-Type: text/html"], page)
    }
    #expect(kind == .wrongContent(chunk: nil))
    #expect(try fixture.isUntouched(content.count))
  }

  @Test("a redirect loop ends the download", arguments: [true, false])
  func redirectLoop(inChunks: Bool) async throws {
    let kind = try await fail(inChunks: inChunks) { _ in
      Answer("302 Found", ["Location: /file"])
    }
    #expect(kind == .wrongAnswer)
  }

  @Test("an unrequested encoding still results in the right file", arguments: [true, false])
  func encodes(inChunks: Bool) async throws {
    let content = content
    let encoded = StoredGzip.encode(content)
    let (server, _) = try await succeed(inChunks: inChunks) { request in
      // The range is one of the encoded body, as such servers have it.
      guard let range = request.range(of: encoded.count) else {
        return Answer("200 OK", ["Content-Encoding: gzip"], encoded)
      }
      let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.count)"
      return Answer(
        "206 Partial Content", ["Content-Encoding: gzip", "Content-Range: \(place)"],
        Array(encoded[range]))
    }
    #expect(server.requests.last?.fields["range"] == nil)
    #expect(server.requests.last?.fields["accept-encoding"]?.contains("gzip") == true)
  }

  @Test(
    "parts with a wrong place are never written, and the whole is requested",
    arguments: ["bytes 1-262144/1500000", "items 0-262143/1500000", "bytes 0-9/1500000", ""])
  func wrongPlace(_ place: String) async throws {
    let content = content
    let (server, _) = try await succeed(inChunks: true) {
      guard $0.fields["range"] != nil else { return Answer("200 OK", [], content) }
      let fields = place.isEmpty ? [] : ["Content-Range: \(place)"]
      return Answer("206 Partial Content", fields, Array(content[1...262_144]))
    }
    #expect(server.requests.count == 2)
  }

  @Test("several parts in one answer are refused, and the whole is requested")
  func multipart() async throws {
    let content = content
    _ = try await succeed(inChunks: true) {
      guard let range = $0.range(of: content.count) else { return Answer("200 OK", [], content) }
      let fields = [
        "Content-Type: multipart/byteranges; boundary=x",
        "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.count)",
      ]
      return Answer("206 Partial Content", fields, Array(content[range]))
    }
  }

  @Test("a busy server is not asked again before the time that it names")
  func busy() async throws {
    let content = content
    _ = try await succeed(inChunks: true) {
      switch $0.number {
      case 0: Answer("503 Busy", ["Retry-After: 7"])
      case 1: Answer("429 Too Many", ["Retry-After: Sun, 06 Nov 1994 08:49:49 GMT"])
      default: .good(content, tag: nil, to: $0)
      }
    }
    #expect(fixture.notes.withLock { $0.waits } == [.seconds(7), .seconds(12)])
  }

  @Test("a server that stays busy is given up after the policy's number of tries")
  func staysBusy() async throws {
    let server = try HostileServer { _ in Answer("503 Busy") }
    defer { server.stop() }
    let told = Mutex(0)
    var job = fixture.job(content, from: server.url, inChunks: true)
    job.stalled = { _ in told.withLock { $0 += 1 } }
    // The tries are those of the download, however many connections wait to take one over.
    let failure = await fixture.failure(job, attempts: 3) { $0.connections = 32 }
    #expect(failure?.kind == .server(503))
    #expect(failure?.isTransient == true)
    #expect(server.requests.count == 3)
    // From the second failure on, since one may pass unnoticed.
    #expect(told.withLock { $0 } == 2)
  }

  @Test("an unreachable server is reported as offline")
  func unreachable() async throws {
    let server = try HostileServer { _ in Answer() }
    server.stop()
    let url = "http://127.0.0.1:\(try FreePort.refused())/file"
    let failure = await fixture.failure(
      fixture.job(content, from: url, inChunks: true), attempts: 2)
    #expect(failure?.kind == .offline)
    #expect(fixture.notes.withLock { $0.waits.count } == 1)
  }

  @Test("a chunk that is always wrong ends the download after three tries, the others kept")
  func wrongChunk() async throws {
    var altered = content
    altered[5 * 65_536 + 17] ^= 1
    let served = altered
    let server = try HostileServer { .good(served, tag: "\"a\"", to: $0) }
    defer { server.stop() }
    let failure = await fixture.failure(
      fixture.job(content, from: server.url, inChunks: true)
    ) { $0.connections = 1 }
    #expect(failure?.kind == .wrongContent(chunk: 5))
    #expect(server.requests.count { $0.range(of: served.count)?.contains(327_697) == true } == 3)
    let map = try #require(fixture.notes.withLock { $0.recorded.last })
    #expect(!map[5])
    #expect(map.present >= 7)
    // Once the server is sound, only the rest comes.
    let (_, outcome) = try await fixtureResume(map)
    #expect(outcome.bytesFetched == Int64(content.count) - Int64(map.present) * 65_536)
  }

  private func fixtureResume(
    _ map: ChunkMap
  ) async throws -> (HostileServer, DownloadOutcome) {
    let content = content
    let server = try HostileServer { .good(content, tag: "\"b\"", to: $0) }
    defer { server.stop() }
    let outcome = try await fixture.download(
      fixture.job(content, from: server.url, inChunks: true, map: map))
    #expect(try fixture.content() == content)
    return (server, outcome)
  }

  @Test("a chunk that is wrong once is requested again, and only that chunk")
  func wrongChunkOnce() async throws {
    let content = content
    let (_, outcome) = try await succeed(inChunks: true) {
      var answer = Answer.good(content, tag: nil, to: $0)
      if $0.number == 0 { answer.body[100] ^= 1 }
      return answer
    }
    #expect(outcome.bytesFetched == Int64(content.count) + 65_536)
  }

  @Test("content with the right size and another hash ends the download")
  func wrongWhole() async throws {
    let other = DownloadFixture.bytes(content.count, seed: 2)
    let kind = try await fail(inChunks: false) { .good(other, tag: "\"a\"", to: $0) }
    #expect(kind == .wrongContent(chunk: nil))
  }

  @Test("right chunks with another hash of the whole end the download")
  func contradiction() async throws {
    let content = content
    let server = try HostileServer { .good(content, tag: nil, to: $0) }
    defer { server.stop() }
    var job = fixture.job(content, from: server.url, inChunks: true)
    job.hash = DownloadFixture.hash([1])
    #expect(await fixture.failure(job)?.kind == .wrongContent(chunk: nil))
  }
}

/// Content in gzip's frame without compression (RFC 1951 §3.2.4, RFC 1952).
enum StoredGzip {
  static func encode(_ content: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    var rest = content[...]
    repeat {
      let block = rest.prefix(65_535)
      rest = rest.dropFirst(block.count)
      let length = UInt16(block.count)
      bytes.append(rest.isEmpty ? 1 : 0)
      for number in [length, ~length] {
        bytes += [UInt8(number & 0xFF), UInt8(number >> 8)]
      }
      bytes += block
    } while !rest.isEmpty
    for number in [checksum(content), UInt32(content.count)] {
      bytes += (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    return bytes
  }

  private static func checksum(_ content: [UInt8]) -> UInt32 {
    let table = (0..<256).map { index -> UInt32 in
      (0..<8).reduce(UInt32(index)) { value, _ in
        value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1
      }
    }
    return ~content.reduce(~UInt32(0)) { table[Int(UInt8($0 & 0xFF) ^ $1)] ^ $0 >> 8 }
  }
}
