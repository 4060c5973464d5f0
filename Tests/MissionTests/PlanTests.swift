import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("Space, progress and versions to keep", .hangLimit)
struct PlanTests {
  private let x = hash([1])
  private let y = hash([2])

  @Test("space is reserved for all running missions, and once for the same content")
  func reserving() throws {
    var space = SpacePlan<MissionID, ContentHash>(margin: 10)
    try space.reserve([x: 50], for: mission("a"), free: 100)
    #expect(throws: SpaceShortage(needed: 110, free: 100)) {
      try space.reserve([y: 50], for: mission("b"), free: 100)
    }
    #expect(space.reserved == 50)
    try space.reserve([x: 50, y: 40], for: mission("b"), free: 100)
    #expect(space.reserved == 90)
    space.wrote(x, missing: 20)
    #expect(space.reserved == 60)
    space.release(mission("a"))
    #expect(space.reserved == 60)
    space.release(mission("b"))
    #expect(space.reserved == 0)
  }

  @Test("sizes beyond the range of numbers do not fit either")
  func overflow() {
    var space = SpacePlan<MissionID, ContentHash>(margin: .max)
    #expect(throws: SpaceShortage(needed: .max, free: .max)) {
      try space.reserve([x: 1 << 42], for: mission("a"), free: .max)
    }
  }

  private func meter() -> ProgressMeter {
    let items = [
      MissionItem(path: "a", size: 100, hash: x), MissionItem(path: "b", size: 100, hash: x),
      MissionItem(path: "c", size: 50, hash: y),
    ]
    return ProgressMeter(
      MissionManifest(space: spaceName, id: mission("m"), version: 3, items: items))
  }

  @Test("progress never goes back or exceeds the total, for any reports of the items")
  func monotone() {
    var meter = meter()
    meter.begin(0, MissionItem(path: "a", size: 100, hash: x), sharers: 2)
    meter.begin(2, MissionItem(path: "c", size: 50, hash: y), sharers: 1)
    var last: Int64 = 0
    for (step, bytes) in [Int64(10), 80, 30, 0, 200, -5, 100].enumerated() {
      let told = DownloadProgress(bytesDone: bytes, bytesTotal: 100, bytesFetched: bytes)
      meter.update(0, told, at: .seconds(step))
      let progress = meter.progress(at: .seconds(step))
      #expect(progress.bytesDone >= last && progress.bytesDone <= 250)
      last = progress.bytesDone
    }
    meter.finish(0, at: .seconds(8))
    #expect(meter.progress(at: .seconds(8)).bytesDone == 200)
    #expect(meter.progress(at: .seconds(8)).itemsDone == 2)
    meter.finish(2, at: .seconds(9))
    let end = meter.progress(at: .seconds(9))
    #expect(end.bytesDone == 250 && end.fraction == 1 && end.itemsDone == 3)
  }

  @Test("progress does not go back behind an earlier process's report")
  func toldBefore() {
    let manifest = MissionManifest(
      space: spaceName, id: mission("m"), version: 3,
      items: [
        MissionItem(path: "a", size: 100, hash: x), MissionItem(path: "b", size: 100, hash: y),
      ])
    var meter = ProgressMeter(manifest, bytesShown: 120, itemsShown: 1)
    #expect(meter.progress(at: .zero).bytesDone == 120)
    #expect(meter.progress(at: .zero).itemsDone == 1)
    meter.begin(0, manifest.items[0], sharers: 1)
    meter.finish(0, at: .seconds(1))
    #expect(meter.progress(at: .seconds(1)).bytesDone == 120)
    meter.begin(1, manifest.items[1], sharers: 1)
    meter.finish(1, at: .seconds(2))
    #expect(meter.progress(at: .seconds(2)).bytesDone == 200)
    #expect(meter.progress(at: .seconds(2)).itemsDone == 2)
    // Whatever a row states, no progress exceeds the whole.
    meter = ProgressMeter(manifest, bytesShown: 900, itemsShown: 9)
    #expect(meter.progress(at: .zero).bytesDone == 200)
    #expect(meter.progress(at: .zero).itemsDone == 2)
  }

  @Test("the rate is that of the last seconds, and determines the remaining time")
  func rate() throws {
    var meter = meter()
    meter.begin(0, MissionItem(path: "a", size: 100, hash: x), sharers: 2)
    meter.update(0, DownloadProgress(bytesDone: 0, bytesTotal: 100, bytesFetched: 0), at: .zero)
    #expect(meter.progress(at: .milliseconds(100)).bytesPerSecond == nil)
    let told = DownloadProgress(bytesDone: 50, bytesTotal: 100, bytesFetched: 50)
    meter.update(0, told, at: .seconds(2))
    let progress = meter.progress(at: .seconds(2))
    #expect(progress.bytesPerSecond == 25)
    // 100 of 250 are there, since the content serves two items.
    #expect(progress.timeLeft == .seconds(6))
    #expect(progress.underWay == [ItemProgress(path: "a", bytesDone: 50, bytesTotal: 100)])
    // Long after, no more bytes have come.
    meter.update(0, told, at: .seconds(60))
    meter.update(0, told, at: .seconds(61))
    #expect(meter.progress(at: .seconds(61)).bytesPerSecond == 0)
    #expect(meter.progress(at: .seconds(61)).timeLeft == nil)
  }

  @Test("bytes that several attempts fetched count each time")
  func attempts() {
    var meter = meter()
    meter.begin(0, MissionItem(path: "a", size: 100, hash: x), sharers: 1)
    let told = DownloadProgress(bytesDone: 60, bytesTotal: 100, bytesFetched: 60)
    meter.update(0, told, at: .zero)
    meter.attemptEnded(0)
    meter.update(0, told, at: .seconds(1))
    #expect(meter.progress(at: .seconds(1)).bytesFetched == 120)
  }

  @Test(
    "all versions are removed except the active one and the last ones before it",
    arguments: [
      ([Int64(1), 2, 3], Int64(3), 2, [Int64(1)]), ([1, 2, 3], 3, 1, [1, 2]), ([4], 4, 2, []),
      ([3, 5, 4], 4, 2, [3]), ([1, 2], 2, 0, [1]), ([1, 2], 2, 9, []),
    ])
  func outdated(complete: [Int64], active: Int64, keep: Int, removed: [Int64]) {
    #expect(KeepingPlan.outdated(complete, active: active, keep: keep) == removed)
  }

  @Test("a row determines how its mission continues after a restart")
  func restoring() {
    #expect(KeepingPlan.restoring(.ready, isComplete: false) == .goesOn)
    #expect(KeepingPlan.restoring(.downloading, isComplete: false) == .goesOn)
    #expect(KeepingPlan.restoring(.paused, isComplete: false) == .rests)
    #expect(KeepingPlan.restoring(.cancelled, isComplete: false) == .remove)
    #expect(KeepingPlan.restoring(.failed, isComplete: false) == .remove)
    #expect(KeepingPlan.restoring(.done, isComplete: false) == .remove)
    #expect(KeepingPlan.restoring(.done, isComplete: true) == .complete)
  }

  @Test("only content without a row is garbage")
  func garbage() {
    var found = KeepingPlan.Found()
    found.objects = [x, y]
    found.partials = [y, x]
    found.bundles = [MissionVersion(mission("m"), 2), MissionVersion(mission("m"), 1)]
    var needed = NeededFiles()
    needed.objects = [x]
    needed.partials = [y]
    needed.bundles = [MissionVersion(mission("m"), 2)]
    let garbage = KeepingPlan.garbage(found, needed: needed)
    #expect(garbage.objects == [y] && garbage.partials == [x])
    #expect(garbage.bundles == [MissionVersion(mission("m"), 1)])
    #expect(garbage.count == 3)
  }

  // MARK: Asking

  private func record(
    _ id: String, version: Int64 = 1, after: [String] = []
  ) -> (MissionID, MissionRecord) {
    var manifest = MissionManifest(
      space: spaceName, id: mission(id), version: version,
      items: [MissionItem(path: "f", size: 1, hash: x)])
    manifest.after = after.map(mission)
    return (
      mission(id),
      MissionRecord(
        of: manifest, hash: x, manifestSize: 1, signature: [], signer: [], publishedAt: 0)
    )
  }

  private func asked(
    _ ids: [String], _ records: [(MissionID, MissionRecord)], here: [String: Int64] = [:]
  ) throws -> [String] {
    try MissionRequest.plan(
      ids.map(mission), catalogue: Dictionary(uniqueKeysWithValues: records),
      here: Dictionary(
        uniqueKeysWithValues: here.map { name, version in
          (mission(name), HeldVersion(record(name, version: version).1))
        })
    ).map(\.id.value)
  }

  @Test("a request for a mission includes its predecessors, in their order")
  func asking() throws {
    let records = [record("a", after: ["b", "c"]), record("b", after: ["c"]), record("c")]
    #expect(try asked(["a"], records) == ["c", "b", "a"])
    #expect(try asked(["b", "a"], records) == ["c", "b", "a"])
    #expect(try asked(["a"], records, here: ["c": 1]) == ["b", "a"])
    let circle = [record("a", after: ["b"]), record("b", after: ["a"])]
    #expect(Set(try asked(["a"], circle)) == ["a", "b"])
  }

  @Test("an older version is enough for a predecessor, and not for a requested mission")
  func versions() throws {
    let records = [record("a", after: ["b"]), record("b", version: 2)]
    #expect(try asked(["a"], records, here: ["b": 1]) == ["a"])
    #expect(try asked(["b"], records, here: ["b": 1]) == ["b"])
    #expect(try asked(["b"], records, here: ["b": 2]).isEmpty)
  }

  @Test("a number that is published again with another manifest is another version")
  func republished() throws {
    var (id, other) = record("a", version: 7)
    other.manifest = y
    #expect(try asked(["a"], [record("a", version: 7)], here: ["a": 7]).isEmpty)
    #expect(try asked(["a"], [(id, other)], here: ["a": 7]) == ["a"])
    // A mission needed only before another is here all the same; a later one stays.
    #expect(try asked(["b"], [record("b", after: ["a"]), (id, other)], here: ["a": 7]) == ["b"])
    #expect(try asked(["a"], [(id, other)], here: ["a": 8]).isEmpty)
  }

  @Test("a version's local name is its number, or an unused name")
  func names() {
    func row(_ version: Int64, _ alias: Int64? = nil) -> MissionRow {
      MissionRow(
        record: record("a", version: version).1, state: .done, isComplete: true, isActive: false,
        asked: 1, bytesDone: 0, itemsDone: 0, askedAt: 0, alias: alias)
    }
    #expect(VersionName.next(for: 7, beside: [row(6)]) == 7)
    #expect(VersionName.next(for: 7, beside: [row(6), row(7)]) == -1)
    #expect(VersionName.next(for: 7, beside: [row(7), row(7, -1)]) == -2)
    for name in [1, 7, .max, -1, -12] as [Int64] {
      #expect(VersionName.name(ofFolder: VersionName.folder(name)) == name)
    }
    for folder in ["-1", "+7", "07", "again1", "again", "x"] {
      #expect(VersionName.name(ofFolder: folder) == nil, "\(folder)")
    }
  }

  @Test("a mission outside of the catalogue can be requested only if it is stored here")
  func unknown() throws {
    #expect(throws: MissionError.self) { try asked(["z"], []) }
    #expect(try asked(["z"], [], here: ["z": 1]).isEmpty)
    let error = #expect(throws: MissionError.self) { try asked(["a"], [record("a", after: ["z"])]) }
    #expect(error?.kind == .dependency)
  }

  @Test("in a partial request, the queue decides about missions with an absent predecessor")
  func partly() throws {
    let records = [record("a", after: ["z"]), record("b", after: ["a"]), record("c")]
    #expect(throws: MissionError.self) { try asked(["a", "b", "c"], records) }
    let plan = try MissionRequest.plan(
      ["a", "b", "c", "y"].map(mission), catalogue: Dictionary(uniqueKeysWithValues: records),
      here: [:], isPartial: true)
    #expect(plan.map(\.id.value) == ["a", "b", "c"])
  }

  // MARK: Manifests

  @Test("a manifest is accepted only for its record and space, with a trusted signature")
  func manifests() throws {
    let published = Publication("m", [("f", Array("x".utf8))])
    let (document, record) = (published.document, published.record)
    #expect(throws: Never.self) { try ManifestCheck.manifest(document, of: record, in: spaceName) }
    func kind(
      _ document: [UInt8], _ record: MissionRecord, in space: SpaceName? = spaceName
    ) -> MissionError.Kind? {
      do throws(MissionError) {
        _ = try ManifestCheck.manifest(document, of: record, in: space ?? spaceName)
        return nil
      } catch {
        return error.kind
      }
    }
    #expect(kind(document + [32], record) == .badManifest)
    var forged = record
    forged.signature[0] ^= 1
    #expect(kind(document, forged) == .badSignature)
    var stranger = record
    stranger.signer = Ed25519.SecretKey().publicKey.bytes
    #expect(kind(document, stranger) == .badSignature)
    var short = record
    short.signer = [1, 2, 3]
    #expect(kind(document, short) == .badSignature)
    var later = record
    later.version = 2
    #expect(kind(document, later) == .badManifest)
    var other = record
    other.id = mission("n")
    #expect(kind(document, other) == .badManifest)
    #expect(kind(document, record, in: SpaceName("elsewhere")) == .badManifest)
    for size in [0, 2, -1, .min, .max] as [Int64] {
      var lying = record
      lying.size = size
      #expect(kind(document, lying) == .badManifest)
      lying = record
      lying.items = size
      #expect(kind(document, lying) == .badManifest)
    }
    #expect(throws: Never.self) { try ManifestCheck.check(signer: [1], trusted: []) }
    #expect(throws: MissionError.self) { try ManifestCheck.check(signer: [1], trusted: [[2]]) }
  }
}
