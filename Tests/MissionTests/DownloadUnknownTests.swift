import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

/// Files of unknown size or hash.
@Suite("A download of an unknown file", .hangLimit)
struct DownloadUnknownTests {
  private let content = DownloadFixture.content
  private let fixture: DownloadFixture

  init() throws { fixture = try DownloadFixture() }

  private func job(_ url: String, size: Int64? = nil, hash: ContentHash? = nil) -> DownloadJob {
    DownloadJob(
      source: .url(url), size: size, hash: hash, partialPath: fixture.partialPath,
      map: fixture.notes.withLock { $0.recorded.last },
      record: { [fixture] map in fixture.notes.withLock { $0.recorded.append(map) } })
  }

  @Test("one request brings the size and the whole file; its hash is reported")
  func announced() async throws {
    let server = try HostileServer { [content] in .good(content, tag: "\"a\"", to: $0) }
    defer { server.stop() }
    let outcome = try await fixture.download(job(server.url))
    #expect(try fixture.content() == content)
    #expect(outcome.size == Int64(content.count))
    #expect(outcome.hash == DownloadFixture.hash(content))
    #expect(outcome.bytesFetched == Int64(content.count))
    #expect(server.requests.count == 1)
    #expect(fixture.notes.withLock { $0.progress.last?.bytesTotal } == Int64(content.count))
  }

  @Test(
    "a server that announces two lengths, or one that no body has, is refused",
    arguments: ["5", "99999999999999999999"])
  func wrongLength(_ length: String) async throws {
    let server = try HostileServer { [content] _ in
      HostileServer.Answer("200 OK", ["Content-Length: \(length)"], content)
    }
    defer { server.stop() }
    let failure = await fixture.failure(job(server.url), attempts: 1)
    #expect(failure?.kind == .wrongAnswer)
    #expect(fixture.notes.withLock { $0.recorded.isEmpty })
  }

  @Test(
    "a server that announces more bytes than a file may have is refused, and nothing is kept",
    arguments: [Int64.max, MissionLimits.standard.itemBytes + 1])
  func hugeLength(_ length: Int64) async throws {
    let server = try HostileServer { [content] _ in
      HostileServer.Answer("200 OK", ["ETag: \"a\""], content, length: Int(length))
    }
    defer { server.stop() }
    for hash in [nil, DownloadFixture.hash(content)] {
      let failure = await fixture.failure(job(server.url, hash: hash), attempts: 1)
      #expect(failure?.kind == .wrongAnswer)
    }
    // Neither a user's size nor one of an earlier process is computed with.
    let named = job(server.url, size: length, hash: DownloadFixture.hash(content))
    #expect(await fixture.failure(named, attempts: 1)?.kind == .wrongAnswer)
    var kept = job(server.url)
    kept.map.announcedBytes = length
    kept.map.validator = "\"a\""
    #expect(await fixture.failure(kept, attempts: 1)?.kind == .wrongAnswer)
    #expect(fixture.notes.withLock { $0.recorded.isEmpty })
  }

  @Test("a broken connection continues by range, and fetches no byte twice")
  func resumed() async throws {
    let server = try HostileServer { [content] request in
      let answer = HostileServer.Answer.good(content, tag: "\"a\"", to: request)
      return request.number == 0 ? answer.cut(after: 1_500_000) : answer
    }
    defer { server.stop() }
    let outcome = try await fixture.download(job(server.url))
    #expect(try fixture.content() == content)
    #expect(outcome.bytesFetched == Int64(content.count))
    #expect(server.requests.last?.fields["if-range"] == "\"a\"")
  }

  @Test("a later call continues with the announced size and the same version")
  func later() async throws {
    let server = try HostileServer { [content] request in
      let answer = HostileServer.Answer.good(content, tag: "\"a\"", to: request)
      return request.number == 0 ? answer.cut(after: 1_500_000) : answer
    }
    defer { server.stop() }
    let failure = await fixture.failure(job(server.url), attempts: 1)
    #expect(failure?.kind == .offline)
    let map = try #require(fixture.notes.withLock { $0.recorded.last })
    #expect(map.announcedBytes == Int64(content.count))
    #expect(ChunkMap(encoded: map.encoded(), chunkCount: 0) == map)
    let outcome = try await fixture.download(job(server.url))
    #expect(try fixture.content() == content)
    #expect(outcome.bytesReused >= 1_400_000)
    #expect(outcome.hash == DownloadFixture.hash(content))
  }

  @Test(
    "a file that changed meanwhile is fetched from scratch, whatever its size",
    arguments: [2_000_000, 3_000_000, 4_000_000])
  func changed(size: Int) async throws {
    let next = DownloadFixture.bytes(size, seed: 9)
    let server = try HostileServer { [content] request in
      request.number == 0
        ? HostileServer.Answer.good(content, tag: "\"a\"", to: request).cut(after: 1_500_000)
        : .good(next, tag: "\"b\"", to: request)
    }
    defer { server.stop() }
    let outcome = try await fixture.download(job(server.url))
    #expect(try fixture.content() == next)
    #expect(outcome.hash == DownloadFixture.hash(next))
  }

  @Test("a body without a length is written to its end")
  func unsized() async throws {
    let server = try HostileServer { [content] _ in
      var answer = HostileServer.Answer("200 OK", [], content)
      answer.length = nil
      return answer
    }
    defer { server.stop() }
    let outcome = try await fixture.download(job(server.url))
    #expect(try fixture.content() == content)
    #expect(outcome.hash == DownloadFixture.hash(content))
    #expect(fixture.notes.withLock { $0.progress.first?.bytesTotal } == nil)
    let wrong = await fixture.failure(job(server.url, size: 10))
    #expect(wrong?.kind == .wrongAnswer)
    let other = await fixture.failure(job(server.url, hash: DownloadFixture.hash([1])))
    #expect(other?.kind == .wrongContent(chunk: nil))
  }

  @Test("a body without a length that breaks off is repeated, and never taken for the whole")
  func unsizedBreaks() async throws {
    let server = try HostileServer { [content] request in
      var answer = HostileServer.Answer("200 OK", [], content)
      answer.length = nil
      return request.number < 2 ? answer.cut(after: 900_000) : answer
    }
    defer { server.stop() }
    let outcome = try await fixture.download(job(server.url))
    #expect(try fixture.content() == content)
    #expect(outcome.size == Int64(content.count))
    #expect(server.requests.count == 3)
  }

  @Test("a file larger than allowed is refused, announced or not", arguments: [true, false])
  func bounded(isAnnounced: Bool) async throws {
    let server = try HostileServer { [content] _ in
      var answer = HostileServer.Answer("200 OK", [], content)
      if !isAnnounced { answer.length = nil }
      return answer
    }
    defer { server.stop() }
    var job = job(server.url)
    job.sizeMax = 100_000
    #expect(await fixture.failure(job)?.kind == .wrongAnswer)
    // An announced size is refused before there is a file.
    let written = FileManager.default.contents(atPath: fixture.partialPath)
    #expect((written?.count ?? 0) <= 100_000)
  }

  @Test("a known hash rejects another file of unknown size")
  func wrongHash() async throws {
    let server = try HostileServer { [content] in .good(content, tag: "\"a\"", to: $0) }
    defer { server.stop() }
    let failure = await fixture.failure(job(server.url, hash: DownloadFixture.hash([1])))
    #expect(failure?.kind == .wrongContent(chunk: nil))
  }

  @Test("an empty file is complete at once")
  func empty() async throws {
    let server = try HostileServer { _ in HostileServer.Answer("200 OK", [], []) }
    defer { server.stop() }
    let outcome = try await fixture.download(job(server.url))
    #expect(outcome.size == 0)
    #expect(outcome.hash == DownloadFixture.hash([]))
    #expect(try fixture.content().isEmpty)
  }

  @Test("a request with a body is sent as it is, and its answer kept")
  func request() async throws {
    let server = try HostileServer { request in
      let isRight = request.fields["x-key"] == "k" && request.fields["content-length"] == "2"
      return HostileServer.Answer(isRight ? "200 OK" : "400 Bad Request", [], Array("[1]".utf8))
    }
    defer { server.stop() }
    var job = job(server.url)
    job.source = .request(
      ContentRequest(server.url, method: "POST", headers: ["X-Key": "k"], body: Array("{}".utf8)))
    let outcome = try await fixture.download(job)
    #expect(try fixture.content() == Array("[1]".utf8))
    #expect(outcome.size == 3)
  }
}
