import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissionServer

@Suite("Removing content", .hangLimit)
struct BlobCollectingTests {
  @Test("content is listed by its age, and removed with a report of its bytes")
  func listing() throws {
    let fixture = try BlobFixture()
    let hash = try fixture.blobs.store(BlobFixture.bytes(700))
    let shard = hash.bytes[0]
    #expect(try fixture.blobs.content(inShard: shard, before: .max) == [hash])
    #expect(try fixture.blobs.content(inShard: shard &+ 1, before: .max) == [])
    #expect(try fixture.blobs.content(inShard: shard, before: 1_000_000_000) == [])
    #expect(try fixture.blobs.remove(hash) == 700)
    #expect(try fixture.blobs.remove(hash) == nil)
    #expect(try fixture.names() == [])
  }

  @Test("abandoned uploads and drafts are removed when they are old")
  func unfinished() throws {
    let fixture = try BlobFixture()
    let upload = BlobDirectory.Upload(
      owner: "1", hash: ContentHash(of: BlobFixture.bytes(9)), total: 9)
    _ = try fixture.blobs.append([1], at: 0, to: upload)
    _ = try fixture.file("blobs/incoming/draft-1-x", 5)
    #expect(try fixture.blobs.removeUnfinished(before: 1_000_000_000).count == 0)
    #expect(try fixture.blobs.removeUnfinished(before: .max).count == 2)
    #expect(try fixture.names() == [])
  }

  @Test("unknown files stay, are reported, and do not prevent the collection")
  func strangers() throws {
    let fixture = try BlobFixture()
    let incoming = fixture.blobs.incoming
    try FileManager.default.createDirectory(
      atPath: incoming + "/a-folder/with", withIntermediateDirectories: true)
    #expect(mkfifo(incoming + "/b-pipe", 0o600) == 0)
    #expect(symlink(incoming, incoming + "/c-link") == 0)
    _ = try fixture.file("blobs/incoming/draft-1-x", 5)
    let removal = try fixture.blobs.removeUnfinished(before: .max)
    #expect(removal.count == 1)
    #expect(removal.failures.count == 3)
    #expect(removal.failures.first == .notAFile(path: incoming + "/a-folder"))
    #expect(!FileManager.default.fileExists(atPath: incoming + "/draft-1-x"))
    #expect(FileManager.default.fileExists(atPath: incoming + "/a-folder/with"))
  }

  private final class Events: Sendable {
    private let kept = Mutex([String]())

    var all: [String] { kept.withLock { $0 } }

    func note(_ event: String) { kept.withLock { $0.append(event) } }
  }

  @Test("collectors and publishers wait for each other")
  func holds() async throws {
    let fixture = try BlobFixture()
    let one = BlobThreads(fixture.blobs, threads: 1)
    let two = BlobThreads(fixture.blobs, threads: 1)
    let events = Events()
    var first: BlobHold? = try fixture.blobs.acquire()
    _ = try fixture.blobs.acquire()
    let collecting = Task {
      let hold = try await one.acquireForCollecting()
      events.note("collects")
      withExtendedLifetime(hold) {}
    }
    events.note("published")
    withExtendedLifetime(first) {}
    first = nil
    try await collecting.value
    var second: BlobHold? = try fixture.blobs.acquireForCollecting()
    let publishing = Task {
      _ = try await two.acquire()
      events.note("publishes")
    }
    events.note("collected")
    withExtendedLifetime(second) {}
    second = nil
    try await publishing.value
    #expect(events.all == ["published", "collects", "collected", "publishes"])
  }
}
