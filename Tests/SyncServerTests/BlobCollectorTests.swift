import FerryMissionServer
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

@Suite("The collector of content", .hangLimit)
struct BlobCollectorTests {
  private func collector(
    _ fixture: MissionFixture, wall: Int64 = ServiceClockDouble.wall,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { _ in }
  ) -> BlobCollector {
    let clock = ServiceClock(wall: { wall }, uptime: { .zero })
    return BlobCollector(
      store: fixture.store, blobs: fixture.desk.blobs, clock: clock,
      log: ServiceLog(level: .debug, sink: fixture.recorder, clock: clock), sleep: sleep)
  }

  @Test("content of a former version stays for the grace period, and is then removed with its file")
  func formerVersions() async throws {
    let fixture = try await MissionFixture()
    let contents = (0..<3).map { Array("content \($0)".utf8) }
    for content in contents { await fixture.upload(content) }
    let first = try MissionRecord(
      decoding: await fixture.publish([contents[0], contents[1]]).bytes)
    let second = try MissionRecord(
      decoding: await fixture.publish([contents[1], contents[2]]).bytes)
    #expect(try await collector(fixture).collect().files == 0)
    // The files' times are the system's; the entries' are the clock's.
    let later = ServiceClockDouble.wall + BlobCollector.graceStandard + 1
    let result = try await collector(fixture, wall: later).collect(grace: 0)
    #expect(result.files == 2)
    #expect(result.bytes == first.manifestSize + Int64(contents[0].count))
    for (content, isThere) in [(contents[0], false), (contents[1], true), (contents[2], true)] {
      #expect((try fixture.blobs.size(of: ContentHash(of: content)) != nil) == isThere)
    }
    #expect(try fixture.blobs.isIntact(second.manifest) == true)
    #expect(try fixture.blobs.size(of: first.manifest) == nil)
  }

  @Test("content that a publisher is using is not removed")
  func besidePublishers() async throws {
    let fixture = try await MissionFixture()
    let collector = collector(fixture, wall: ServiceClockDouble.wall + 1)
    let space = try #require(try await fixture.store.space(named: .known("notes")))
    let records = try await withThrowingTaskGroup(of: MissionRecord?.self) { group in
      for publisher in 0..<4 {
        group.addTask {
          var last: MissionRecord?
          for round in 0..<20 {
            // The same contents come and go.
            let content = Array("content \((publisher + round) % 5)".utf8)
            let hold = try await fixture.desk.acquireContent()
            let hash = try await fixture.desk.content { (blobs) async throws(BlobError) in
              try await blobs.store(content)
            }
            let item = MissionItem(path: "a", size: Int64(content.count), hash: hash)
            let manifest = MissionManifest(
              space: space.name, id: MissionSamples.id("m\(publisher)"), version: 0,
              title: "\(round)", items: [item])
            last = try await fixture.desk.publish(manifest, in: space, ownContentOnly: false)
            withExtendedLifetime(hold) {}
          }
          return last
        }
      }
      group.addTask {
        for _ in 0..<20 { _ = try await collector.collect(grace: 0) }
        return nil
      }
      return try await group.reduce(into: [MissionRecord]()) { if let one = $1 { $0.append(one) } }
    }
    _ = try await collector.collect(grace: 0)
    #expect(records.map(\.version) == [20, 20, 20, 20])
    for record in records {
      let document = try #require(
        try fixture.blobs.content(of: record.manifest, limit: 100_000), "\(record.id)")
      let manifest = try MissionManifest(decoding: document)
      #expect(try fixture.blobs.isIntact(manifest.items[0].hash) == true)
    }
  }

  @Test("runs follow each other until the end, and a failed run is logged")
  func background() async throws {
    struct Ended: Error {}
    let fixture = try await MissionFixture()
    await fixture.store.close()
    let counter = PauseCounter()
    await collector(fixture) { pause in
      if counter.count(pause) > 3 { throw Ended() }
    }.run(every: .seconds(60))
    #expect(counter.pauses == [Duration](repeating: .seconds(60), count: 4))
    #expect(fixture.recorder.lines.count { $0.contains("the store cannot be reached") } == 3)
  }
}

/// The pauses so far.
private final class PauseCounter: Sendable {
  private let kept = Mutex([Duration]())

  var pauses: [Duration] { kept.withLock { $0 } }

  func count(_ pause: Duration) -> Int {
    kept.withLock {
      $0.append(pause)
      return $0.count
    }
  }
}
