import Dispatch
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

/// Rows of missions on the embedded store, which has one writer for all spaces.
@Suite("Missions beside the embedded store's writer", .hangLimit)
struct MissionSliceTests {
  private static let now: Int64 = 1_800_000_000_000
  private let directory: TemporaryDirectory
  private let store: SQLiteStore
  private let space: SpaceSummary
  private let writer = CountingThread()
  private let bundle: BundleID

  init() async throws {
    directory = try TemporaryDirectory()
    let writer = writer
    store = try await SQLiteStore(
      directory: directory.url.path, limits: .standard,
      slice: WriteSlice(rows: 10, bytes: 4_000, matches: 10),
      makeExecutor: { name -> any WorkExecutor in
        if name == "ferry-store" { return writer }
        return ThreadExecutor(name: name)
      })
    space = try await store.createSpace(try #require(SpaceName("notes")))
    bundle = BundleID(try #require(BundleName("board")), try #require(BundleVersion("1")))
  }

  private func hash(_ number: Int) -> ContentHash { ContentHash(of: Array("\(number)".utf8)) }

  private func publish(_ id: MissionID, _ version: Int64, _ content: Range<Int>) async throws {
    let declaration = id == bundle.mission ? BundleDeclaration(bundle) : nil
    let item = MissionItem(path: "index.html", size: 5, hash: hash(0))
    let document = MissionManifest(
      space: space.name, id: id, version: version, title: "A tour", items: [item],
      bundle: declaration)
    let record = MissionRecord(
      of: document, hash: hash(Int(version)), manifestSize: 77,
      signature: [UInt8](repeating: 3, count: 64), signer: [UInt8](repeating: 4, count: 32),
      publishedAt: Self.now)
    _ = try await store.publishMission(
      record, blobs: content.map { MissionBlob(hash: hash($0), size: 5) }.sorted(), in: space.id,
      now: Self.now + version
    ).get()
  }

  private func report(_ devices: Range<Int>) async throws {
    for number in devices {
      let report = BundleReport(
        bundle, hash(1), number % 2 == 0 ? .success : .failure(BundleReason(bounding: "blank")),
        number: 1)
      let kept = try await BundleCatalogue(store).storeBundleReports(
        [report], of: DeviceID(UniqueID(high: 1, low: UInt64(number))), in: space.id,
        now: Self.now, by: .anonymous, quota: 1_000)
      #expect(try kept.get() == 1)
    }
  }

  /// Returns the turns of the writer in `body`.
  private func turns<T>(_ body: () async throws -> T) async throws -> (result: T, count: Int) {
    let before = writer.jobs
    let result = try await body()
    return (result, writer.jobs - before)
  }

  private func retract(_ id: MissionID) async throws -> (result: Bool, count: Int) {
    try await turns { try await store.retractMission(id, in: space.id, now: Self.now, by: nil) }
  }

  private func readable(_ content: Range<Int>) async throws -> Int {
    var count = 0
    for number in content {
      let found = try await store.readableBlob(hash(number), in: SpacePattern(space.name))
      count += found == nil ? 0 : 1
    }
    return count
  }

  @Test("content that no version needs is forgotten in slices, and a version keeps what it names")
  func endedContent() async throws {
    let tour = try #require(MissionID("tour"))
    try await publish(tour, 1, 0..<40)
    try await publish(tour, 2, 35..<70)
    #expect(try await readable(0..<70) == 70)
    let early = try await turns { try await store.endBlobs(before: Self.now + 2) }
    #expect(early.result == 0 && early.count == 1)
    let ended = try await turns { try await store.endBlobs(before: Self.now + 3) }
    #expect(ended.result == 35 && ended.count == 4)
    #expect(try await readable(0..<70) == 35)
    try await publish(tour, 3, 0..<30)
    // A look for reports, 65 entries of content, and the mission.
    let retracted = try await retract(tour)
    #expect(retracted.result && retracted.count == 1 + 7 + 1)
    #expect(try await readable(0..<70) == 0)
    await store.close()
  }

  @Test("reports about a version that is retracted are forgotten in slices, and no more count")
  func reports() async throws {
    try await publish(bundle.mission, 1, 0..<1)
    try await report(0..<35)
    let retracted = try await retract(bundle.mission)
    #expect(retracted.result && retracted.count == 4 + 1 + 1)
    try await publish(bundle.mission, 2, 0..<1)
    let tally = try await BundleCatalogue(store).bundleTallies(
      of: [bundle], in: space.id, latest: 9)[bundle]
    #expect(tally == BundleTally())
    await store.close()
  }

  @Test("between two slices the counts are those of the reports that are left")
  func partly() async throws {
    try await publish(bundle.mission, 1, 0..<1)
    try await report(0..<35)
    await store.close()
    let file = try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: .standard)
    let reports = BundleReports(space: space.id)
    for left in stride(from: 35, through: 0, by: -10) {
      let tally = try reports.tally(of: bundle, latest: 99, on: file)
      #expect(tally.successes + tally.failures == Int64(left))
      #expect(tally.failures == Int64(tally.latest.count))
      let gone = try file.together { try reports.forget(bundle.mission, upTo: 10, on: file) }
      #expect(gone == min(left, 10))
    }
    #expect(try reports.tally(of: bundle, latest: 99, on: file) == BundleTally())
  }
}

/// A thread that counts its turns.
private final class CountingThread: WorkExecutor {
  private let queue = DispatchQueue(label: "ferry-store")
  private let count = Mutex(0)

  var jobs: Int { count.withLock { $0 } }

  func enqueue(_ job: consuming ExecutorJob) {
    count.withLock { $0 += 1 }
    let job = UnownedJob(job)
    let executor = asUnownedSerialExecutor()
    queue.async { job.runSynchronously(on: executor) }
  }

  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result(catching: body)) }
    }
  }
}
