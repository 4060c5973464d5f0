import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("A queue of downloads in memory", .hangLimit)
struct MemoryQueueTests {
  @Test("a queue in memory has no file and no lock, and several are open at once")
  func noFiles() async throws {
    let content = DownloadFixture.content
    let server = try HostileServer { .good(content, tag: "\"a\"", to: $0) }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    let queues = [
      try await DownloadQueue.open(":memory:"), try await DownloadQueue.open(":memory:"),
    ]
    for (number, queue) in queues.enumerated() {
      let download = Download(server.url, to: directory.file("film\(number)").path)
      try await queue.add(download)
      _ = try await download.finished()
      #expect(await queue.downloads.count == 1)
    }
    let here = FileManager.default.currentDirectoryPath
    let names = try FileManager.default.contentsOfDirectory(atPath: here)
    #expect(names.filter { $0.hasPrefix(":memory:") } == [])
    for queue in queues { await queue.close() }
  }
}
