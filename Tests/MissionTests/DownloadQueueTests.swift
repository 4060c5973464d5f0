import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Foundation
import Observation
import Synchronization
import Testing

@testable import FerryMissions

@Suite("A queue of downloads", .hangLimit)
struct DownloadQueueTests {
  private struct Lesson: Codable, Equatable {
    var number: Int
    var title: String
  }

  private let content = DownloadFixture.content
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func path(_ name: String) -> String { directory.file(name).path }
  private func bytes(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: directory.file(name)))
  }

  private func open(
    _ change: (inout DownloadQueueOptions) -> Void = { _ in }
  ) async throws -> DownloadQueue {
    var options = DownloadQueueOptions()
    options.pauses = RetryPolicy(
      delayBase: .milliseconds(1), delayMax: .milliseconds(5), attemptsMax: nil)
    change(&options)
    return try await DownloadQueue.open(path("queue.db"), options: options)
  }

  private func good(_ tag: String? = "\"a\"") throws -> HostileServer {
    try HostileServer { [content] in .good(content, tag: tag, to: $0) }
  }

  /// Answers the first request in part, and is silent then.
  private func stuck(after count: Int) throws -> HostileServer {
    try HostileServer { [content] request in
      let answer = HostileServer.Answer.good(content, tag: "\"a\"", to: request)
      return request.number == 0 ? answer.cut(after: count, .silence) : answer
    }
  }

  @Test("a file appears at its path when it is complete, and nothing else is left")
  func whole() async throws {
    let server = try good()
    defer { server.stop() }
    let queue = try await open()
    let download = Download(server.url, to: path("film"))
    try await queue.add(download)
    let file = try await download.finished()
    #expect(file.path == path("film"))
    #expect(file.hash == DownloadFixture.hash(content))
    #expect(try bytes("film") == content)
    #expect(download.state == .done)
    #expect(download.status.fraction == 1)
    await queue.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.url.path)
    #expect(names.sorted() == ["film", "queue.db"])
  }

  @Test("after a restart each download is back with its state, its value and its part")
  func restart() async throws {
    let server = try stuck(after: 2_000_000)
    defer { server.stop() }
    let lesson = Lesson(number: 7, title: "Tür")
    do {
      let queue = try await open()
      let download = Download(server.url, to: path("film"), id: "film", userInfo: lesson)
      let other = Download(server.url, to: path("other"), id: "other", after: ["film"])
      try await queue.add(download, other)
      for await status in download.updates() where status.progress.bytesDone >= 1_500_000 { break }
      await queue.close()
      #expect(!FileManager.default.fileExists(atPath: path("film")))
    }
    let queue = try await open()
    let downloads = await queue.downloads
    #expect(downloads.map(\.id) == ["film", "other"])
    #expect(try downloads[0].userInfo() == lesson)
    #expect(try downloads[1].userInfo(as: Lesson.self) == nil)
    #expect(throws: DownloadError.self) { try downloads[0].userInfo(as: [String].self) }
    try await downloads[1].finished()
    #expect(try bytes("film") == content)
    #expect(try bytes("other") == content)
    let fetched = downloads[0].status.progress.bytesFetched
    #expect(fetched < 1_600_000, "\(fetched) bytes after the restart")
    await queue.close()
    let last = try await open()
    #expect(await last.downloads.map(\.state) == [.done, .done])
    try await last.remove(downloads[0].id == "film" ? await last.downloads[0] : downloads[0])
    #expect(await last.downloads.map(\.id) == ["other"])
    #expect(try bytes("film") == content)
    await last.close()
  }

  @Test("a finished download that is removed counts as done, also after a restart")
  func removed() async throws {
    let (server, hanging) = (try good(), try stuck(after: 2_000_000))
    defer { for server in [server, hanging] { server.stop() } }
    var queue = try await open()
    let index = Download(server.url, to: path("index"), id: "index")
    let film = Download(hanging.url, to: path("film"), id: "film")
    let last = Download(server.url, to: path("last"), id: "last", after: ["index", "film"])
    try await queue.add(index, film, last)
    try await index.finished()
    try await film.pause()
    try await queue.remove(index)
    // The queue notes the end of one download before it gives others a new reason to wait.
    for await status in last.updates()
    where status.reason?.message.contains("film") == true { break }
    #expect(last.state == .ready)
    let late = Download(server.url, to: path("late"), after: ["index"])
    let failure = await #expect(throws: DownloadError.self) { try await queue.add(late) }
    #expect(failure?.kind == .dependency)
    await queue.close()
    queue = try await open()
    #expect(await queue.downloads.map(\.id) == ["film", "last"])
    try await queue.download("film")?.resume()
    try await queue.download("last")?.finished()
    #expect(try bytes("last") == content)
    await queue.close()
  }

  @Test("downloads that are added while a finished one is removed start, or are refused")
  func removedMeanwhile() async throws {
    let queue = try await DownloadQueue.open(
      path("queue.db"), downloader: RunningDownloader { _ in })
    for number in 0..<50 {
      let first = Download("http://x/", to: path("first"))
      try await queue.add(first)
      try await first.finished()
      let next = Download("http://x/", to: path("next"), after: [first.id])
      async let removal: Void = queue.remove(first)
      let failure = await Task { try await queue.add(next) }.result
      try await removal
      switch failure {
      case .success: try await next.finished()
      case .failure(let error): #expect((error as? DownloadError)?.kind == .dependency, "\(number)")
      }
    }
    #expect(await queue.downloads.allSatisfy { $0.state == .done })
    await queue.close()
  }

  @Test("a queue in use is refused to a second one, and free after its end")
  func locked() async throws {
    let queue = try await open()
    let failure = await #expect(throws: DownloadError.self) { try await open() }
    #expect(failure?.kind == .busy)
    #expect(failure?.message.contains("queue.db") == true)
    await queue.close()
    await #expect(throws: DownloadError.self) {
      try await queue.add(Download("http://127.0.0.1:1/", to: path("x")))
    }
    try await open().close()
  }

  @Test("a pause keeps the part, a cancellation removes it")
  func pauseAndCancel() async throws {
    let server = try stuck(after: 2_000_000)
    defer { server.stop() }
    let queue = try await open()
    let download = Download(server.url, to: path("film"))
    try await queue.add(download)
    for await status in download.updates() where status.progress.bytesDone >= 1_500_000 { break }
    try await download.pause()
    await queue.waitUntilIdle()
    #expect(download.state == .paused)
    #expect(FileManager.default.fileExists(atPath: download.partialPath))
    try await download.resume()
    try await download.finished()
    #expect(try bytes("film") == content)
    #expect(download.status.progress.bytesFetched < 4_000_000)

    let hanging = try stuck(after: 2_000_000)
    defer { hanging.stop() }
    let second = Download(hanging.url, to: path("second"))
    try await queue.add(second)
    for await status in second.updates() where status.progress.bytesDone >= 1_500_000 { break }
    try await second.cancel()
    #expect(second.state == .cancelled)
    #expect(!FileManager.default.fileExists(atPath: second.partialPath))
    await #expect(throws: DownloadError.self) { try await second.finished() }
    await queue.close()
  }

  @Test("no more downloads than the limit run at once, the most important first")
  func limit() async throws {
    let running = Mutex(0)
    let most = Mutex(0)
    let order = Mutex<[String]>([])
    let downloader = RunningDownloader { url in
      order.withLock { $0.append(url) }
      let now = running.withLock { count in
        count += 1
        return count
      }
      most.withLock { $0 = max($0, now) }
      // The first one lasts until a second one runs.
      try await eventually("a second download") { most.withLock { $0 } >= 2 }
      running.withLock { $0 -= 1 }
    }
    var options = DownloadQueueOptions()
    options.downloadsAtOnce = 2
    let queue = try await DownloadQueue.open(
      path("queue.db"), options: options, downloader: downloader)
    let all = (0..<20).map { Download("http://x/\($0)", to: path("\($0)"), priority: $0 / 10) }
    try await queue.add(all)
    await queue.waitUntilIdle()
    #expect(all.allSatisfy { $0.state == .done })
    #expect(most.withLock { $0 } == 2)
    #expect(order.withLock { $0.prefix(2).sorted() } == ["http://x/10", "http://x/11"])
    await queue.close()
  }

  @Test("the limit changes while downloads run")
  func changedLimit() async throws {
    let running = Mutex(0)
    let most = Mutex(0)
    let downloader = RunningDownloader { _ in
      let now = running.withLock { count in
        count += 1
        return count
      }
      most.withLock { $0 = max($0, now) }
      // Each lasts until three have run at once.
      try await eventually("three downloads") { most.withLock { $0 } >= 3 }
      running.withLock { $0 -= 1 }
    }
    var options = DownloadQueueOptions()
    options.downloadsAtOnce = 1
    let queue = try await DownloadQueue.open(
      path("queue.db"), options: options, downloader: downloader)
    let all = (0..<6).map { Download("http://x/\($0)", to: path("\($0)")) }
    try await queue.add(all)
    try await eventually("the first download") { running.withLock { $0 } == 1 }
    await queue.setDownloadsAtOnce(3)
    #expect(await queue.downloadsAtOnce == 3)
    await queue.waitUntilIdle()
    #expect(all.allSatisfy { $0.state == .done })
    #expect(most.withLock { $0 } == 3)
    await queue.close()
  }

  @Test("cycles, unknown predecessors, and a path in use are refused as a whole")
  func refused() async throws {
    let queue = try await open { $0.downloadsAtOnce = 1 }
    func refusal(_ downloads: Download...) async -> DownloadError.Kind? {
      do throws(DownloadError) {
        try await queue.add(downloads)
        return nil
      } catch {
        return error.kind
      }
    }
    let url = "http://127.0.0.1:1/"
    let first = Download(url, to: path("1"), id: "a", after: ["b"])
    let second = Download(url, to: path("2"), id: "b", after: ["a"])
    #expect(await refusal(first, second) == .dependency)
    #expect(await refusal(Download(url, to: path("1"), after: ["x"])) == .dependency)
    let same = [Download(url, to: path("1")), Download(url, to: path("./1"))]
    #expect(await refusal(same[0], same[1]) == .busy)
    #expect(await queue.downloads.isEmpty)
    await #expect(throws: DownloadError.self) { try await first.pause() }
    let bad = Download(url, to: path("1"), userInfo: Double.infinity)
    #expect(await refusal(bad) == .file)
    await queue.close()
  }

  @Test("a missing file fails with the reason; a later attempt succeeds on request")
  func failed() async throws {
    let isThere = Mutex(false)
    let server = try HostileServer { [content] request in
      isThere.withLock { $0 }
        ? .good(content, tag: nil, to: request)
        : HostileServer.Answer("404 Not Found", [], Array("no".utf8))
    }
    defer { server.stop() }
    let queue = try await open()
    let download = Download(server.url, to: path("film"))
    let next = Download(server.url, to: path("next"), after: [download.id])
    try await queue.add(download, next)
    let failure = await #expect(throws: DownloadError.self) { try await download.finished() }
    #expect(failure?.kind == .server(404))
    await #expect(throws: DownloadError.self) { try await next.finished() }
    #expect(next.status.reason?.kind == .dependency)
    isThere.withLock { $0 = true }
    try await download.resume()
    try await download.finished()
    #expect(try bytes("film") == content)
    await queue.close()
  }

  @Test("a lost connection is waited for, and the part continues")
  func offline() async throws {
    let server = try HostileServer { [content] request in
      let answer = HostileServer.Answer.good(content, tag: "\"a\"", to: request)
      if request.number == 0 { return answer.cut(after: 1_200_000) }
      return request.number < 6 ? HostileServer.Answer("503 Busy", [], []) : answer
    }
    defer { server.stop() }
    let queue = try await open()
    let download = Download(server.url, to: path("film"))
    try await queue.add(download)
    try await download.finished()
    #expect(try bytes("film") == content)
    #expect(download.status.progress.bytesFetched == Int64(content.count))
    await queue.close()
  }

  @Test("a server that always breaks off at the same byte counts as one that fails")
  func alwaysCut() async throws {
    let server = try HostileServer { [content] request in
      // Without a validator each attempt begins from scratch.
      let answer = HostileServer.Answer.good(content, tag: nil, to: request)
      return request.number < 40 ? answer.cut(after: 300_000) : answer
    }
    defer { server.stop() }
    let queue = try await open {
      $0.pauses = RetryPolicy(
        delayBase: .milliseconds(1), delayMax: .milliseconds(5), attemptsMax: 3)
    }
    let download = Download(server.url, to: path("film"))
    try await queue.add(download)
    await #expect(throws: DownloadError.self) { try await download.finished() }
    #expect(server.requests.count < 40)
    await queue.close()
  }

  @Test("a process that was killed before or after the last rename loses and repeats nothing")
  func killedAtTheEnd() async throws {
    let server = try good()
    defer { server.stop() }
    for isRenamed in [false, true] {
      let name = isRenamed ? "renamed" : "partial"
      let store = try await DownloadStore.open(
        path("queue.db"), on: ThreadExecutor(name: "test"))
      let download = Download(server.url, to: path(name), id: DownloadID(name))
      _ = try await store.add([DownloadRow(download, userInfo: nil)])
      try Data(content).write(
        to: URL(filePath: isRenamed ? download.path : download.partialPath))
      try await store.set(
        file: DownloadedFile(
          path: download.path, size: Int64(content.count), hash: DownloadFixture.hash(content)),
        of: download.id)
      let queue = try await open()
      let again = try #require(await queue.download(download.id))
      let file = try await again.finished()
      #expect(file.hash == DownloadFixture.hash(content))
      #expect(try bytes(name) == content)
      #expect(server.requests.isEmpty)
      await queue.close()
    }
  }

  @Test("the status is observable")
  func observable() async throws {
    let server = try good()
    defer { server.stop() }
    let queue = try await open()
    let download = Download(server.url, to: path("film"))
    let changes = Mutex(0)
    withObservationTracking {
      _ = download.status
    } onChange: {
      changes.withLock { $0 += 1 }
    }
    try await queue.add(download)
    try await download.finished()
    #expect(changes.withLock { $0 } == 1)
    await queue.close()
  }
}

/// A downloader that writes an empty file after some work.
private struct RunningDownloader: Downloader {
  let work: @Sendable (String) async throws -> Void

  func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    do {
      if case .url(let url) = job.source { try await work(url) }
    } catch {
      throw DownloadError(.file, "\(error)")
    }
    guard FileManager.default.createFile(atPath: job.partialPath, contents: Data()) else {
      throw DownloadError(.file, "no file")
    }
    return DownloadOutcome(bytesFetched: 0, bytesReused: 0)
  }
}
