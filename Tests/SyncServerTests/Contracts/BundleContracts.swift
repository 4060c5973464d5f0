import FerryProtocol
import FerrySyncServer

extension StoreContract {
  private static let one = Principal.member(1)
  private static let two = Principal.member(2)

  static let bundles = [
    StoreContract("a rollout and a withdrawal reach devices in their pull list, each once") {
      under in
      try await under.withSpace { space in
        try await space.publishBundle("1", share: "10")
        var device = Reader()
        try await device.pull(from: space)
        try require(device.listing("1"), is: listing("10"), "at first")
        for _ in 0..<2 {
          let record = try await space.change("1", .share(share("50"))).get()
          try require(record.bundle, is: listing("50"), "the answer")
        }
        try require(try await space.head(), is: 2, "the head after the same change twice")
        try await device.pull(from: space)
        try require(device.listing("1"), is: listing("50"), "after a promotion")
        for later in [0, 500] as [Int64] {
          let record = try await space.change("1", .withdrawal, later: later).get()
          try require(record.bundle?.withdrawnAt, is: SpaceUnderTest.now, "the answer")
        }
        try require(try await space.head(), is: 3, "the head after a withdrawal")
        try await device.pull(from: space)
        try require(device.listing("1")?.isWithdrawn, is: true, "after the withdrawal")
        try require(
          try await space.change("1", .share(.all)).problem?.code, is: .missionConflict,
          "a promotion after it")
        let known = try await space.store.missions(in: space.space.id)
        try require(known.map(\.bundle), is: [device.listing("1")], "the list")
      }
      try await under.withSpace { space in
        let (entries, _) = try await BundleCatalogue(space.store).bundleEntries(
          in: space.space.id, after: nil, limit: 10)
        try require(entries.map(\.listing.isWithdrawn), is: [true], "after a restart")
      }
    },
    StoreContract("a version of a bundle keeps its content for good, and only bundles change") {
      under in
      try await under.withSpace { space in
        let record = try await space.publishBundle("1", share: "10")
        var other = record
        other.version = 2
        other.manifest = .bundleSample(77)
        var plain = other
        plain.bundle = nil
        for attempt in [other, plain] {
          let answer = try await space.store.publishMission(
            attempt, blobs: [], in: space.space.id, now: SpaceUnderTest.now)
          try require(answer.problem?.code, is: .missionConflict, "other content")
        }
        // Another key may sign the same content again.
        other.signer[0] ^= 1
        _ = try await space.store.publishMission(
          other, blobs: [], in: space.space.id, now: SpaceUnderTest.now
        ).get()
        try require(
          try await space.change("2", .withdrawal).problem?.code, is: .notFound, "no version")
        var mission = plain
        mission.id = try unwrap(MissionID("tour"), "no name")
        mission.version = 1
        _ = try await space.store.publishMission(
          mission, blobs: [], in: space.space.id, now: SpaceUnderTest.now
        ).get()
        let (bundles, _) = try await BundleCatalogue(space.store).bundleEntries(
          in: space.space.id, after: nil, limit: 10)
        try require(bundles.count, is: 1, "bundles")
      }
    },
    StoreContract("a change of a rollout and its entry in the audit log are committed together") {
      under in
      try await under.withSpace { space in
        try await space.publishBundle("1", share: "10")
        let mark = AuditMark(one, at: SpaceUnderTest.now)
        for change in [.share(.all), .share(.all), .withdrawal] as [BundleChange] {
          _ = try await space.store.changeBundle(
            .sample("1"), change, in: space.space.id, now: SpaceUnderTest.now, by: mark
          ).get()
        }
        let entries = try await space.store.audit(AuditQuery())
        try require(
          entries.suffix(2).map(\.action), is: ["bundle_rolled_out", "bundle_withdrawn"], "actions")
        try require(
          entries.suffix(2).map(\.detail), is: ["board 1 to 100%", "board 1"], "details")
      }
    },
    StoreContract("the last report of each device about a version counts") { under in
      try await under.withSpace { space in
        try await space.publishBundle("1")
        try await space.publishBundle("2")
        let (first, second) = (Author(1).device, Author(2).device)
        try await space.reports(["1": nil, "2": "blank"], of: first, by: one, at: 1)
        try await space.reports(["2": "a 🙂 'reason'"], of: second, by: two, at: 2)
        let tally = try await space.tally("2")
        try require((tally.successes, tally.failures) == (0, 2), "\(tally)")
        try require(tally.latest.map(\.reason.text), is: ["a 🙂 'reason'", "blank"], "reasons")
        try require(tally.latest.map(\.device), is: [second, first], "devices")
        for _ in 0..<3 { try await space.reports(["2": nil], of: first, by: one, at: 3) }
        let after = try await space.tally("2")
        try require((after.successes, after.failures) == (1, 1), "\(after)")
        try require(try await space.tally("1").successes, is: 1, "the other version")
        let none = try await BundleCatalogue(space.store).bundleTallies(
          of: [.sample("2")], in: space.space.id, latest: 0)
        try require(none[.sample("2")]?.latest.isEmpty, is: true, "no failures were asked for")
      }
    },
    StoreContract("a report that arrives late, or again, does not overwrite a later one") { under in
      try await under.withSpace { space in
        try await space.publishBundle("1")
        try await space.publishBundle("2")
        let device = Author(1).device
        try await space.reports(["1": nil], of: device, by: one, at: 1, number: 5)
        try await space.reports(["1": "blank"], of: device, by: one, at: 2, number: 6)
        for number in [5, 1] as [Int64] {
          let kept = try await space.reports(
            ["1": nil, "2": nil], of: device, by: one, at: 3, number: number)
          try require(kept, is: number == 5 ? 1 : 0, "kept of the late ones")
        }
        let tally = try await space.tally("1")
        try require((tally.successes, tally.failures) == (0, 1), "\(tally)")
        try require(tally.latest.map(\.at), is: [SpaceUnderTest.now + 2], "its time")
        // Another principal learns nothing from old numbers.
        try require(
          try await space.problem(of: device, by: two, number: 1), is: .deviceTaken, "another's")
        try require(
          try await space.reports(["1": nil], of: Author(2).device, by: one, number: 1), is: 1,
          "another device")
        // The number of the kept one again, as after a lost answer.
        try require(
          try await space.reports(["1": "blank"], of: device, by: one, at: 4, number: 6), is: 1,
          "the same again")
        try await space.reports(["1": nil], of: device, by: one, at: 5, number: 7)
        try require(try await space.tally("1").successes, is: 2, "after a later one")
      }
      try await under.withSpace { space in
        let late = try await space.reports(["1": "late"], of: Author(1).device, by: one, number: 6)
        try require(late, is: 0, "after a restart")
      }
    },
    StoreContract("a report counts for a published version with the published content only") {
      under in
      try await under.withSpace { space in
        try await space.publishBundle("1")
        let device = Author(1).device
        try require(
          try await space.reports(["7": nil], of: device, by: one), is: 0, "an unknown version")
        let other = BundleReport(.sample("1"), .bundleSample(99), .success, number: 1)
        try require(
          try await space.send([other], of: device, by: one), is: 0, "other content")
        try require(try await space.reports(["1": nil], of: device, by: one), is: 1, "its own")
        let elsewhere = SpaceUnderTest(
          store: space.store, space: try await space.store.createSpace(.name("other")))
        try require(
          try await elsewhere.reports(["1": nil], of: device, by: one), is: 0, "another space")
        _ = try await space.store.retractMission(
          BundleID.sample("1").mission, in: space.space.id, now: SpaceUnderTest.now)
        try require(try await space.tally("1"), is: BundleTally(), "after the retraction")
        try require(
          try await space.reports(["1": nil], of: device, by: one), is: 0, "a late report")
      }
    },
    StoreContract("a principal reports by its own devices only, and by no more than its quota") {
      under in
      try await under.withSpace { space in
        try await space.publishBundle("1")
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]), from: one)
        try require(
          try await space.problem(of: author.device, by: two), is: .deviceTaken, "an owned device")
        try await space.reports(["1": nil], of: author.device, by: one)
        // A device that only reads has sent no packet: it belongs to the first reporter.
        let silent = Author(2).device
        try await space.reports(["1": nil], of: silent, by: two)
        try require(
          try await space.problem(of: silent, by: one), is: .deviceTaken, "a reporter's device")
        for number in UInt64(3)...12 {
          try await space.reports(["1": nil], of: Author(number).device, by: two, quota: 11)
        }
        try require(
          try await space.problem(of: Author(13).device, by: two, quota: 11), is: .storageQuota,
          "one device too many")
        let made = try unwrap(
          Principal("token:0123456789abcdef@\(two.id)"), "a token that it made")
        try require(
          try await space.problem(of: Author(13).device, by: made, quota: 11), is: .storageQuota,
          "one device too many of its account")
        // The principal's present devices continue to report, and so do others.
        try await space.reports(["1": "broken"], of: silent, by: two, quota: 11)
        try await space.reports(["1": nil], of: Author(13).device, by: one, quota: 11)
        let tally = try await space.tally("1")
        try require((tally.successes, tally.failures) == (12, 1), "\(tally)")
      }
    },
    StoreContract("a device counts for the account of its last report") { under in
      try await under.withSpace { space in
        try await space.publishBundle("1")
        let (first, second) = (Author(1).device, Author(2).device)
        try await space.reports(["1": "blank"], of: first, by: .anonymous, quota: 1)
        try require(
          try await space.problem(of: second, by: .anonymous, quota: 1), is: .storageQuota, "full")
        try await space.reports(["1": nil], of: first, by: one, at: 1, quota: 1)
        try require(
          try await space.problem(of: second, by: one, quota: 1), is: .storageQuota, "its device")
        try await space.reports(["1": nil], of: second, by: .anonymous, quota: 1)
        let tally = try await space.tally("1")
        try require((tally.successes, tally.failures) == (2, 0), "\(tally)")
      }
    },
    StoreContract("concurrent reports of one principal do not exceed its quota") { under in
      let store = try await under.open(.standard)
      let second = under.isShared ? try await under.open(.standard) : store
      let space = SpaceUnderTest(store: store, space: try await store.createSpace(.test))
      let other = SpaceUnderTest(store: second, space: space.space)
      try await space.publishBundle("1")
      await withTaskGroup(of: Void.self) { group in
        for number in UInt64(1)...20 {
          group.addTask {
            let side = number % 2 == 0 ? space : other
            _ = try? await side.reports(["1": nil], of: Author(number).device, by: one, quota: 5)
          }
        }
      }
      try require(try await space.tally("1").successes, is: 5, "devices")
      await second.close()
      await store.close()
    },
  ]

  private static func share(_ percent: String) -> BundleShare {
    guard let share = BundleShare(percent: percent) else { preconditionFailure("\(percent)") }
    return share
  }

  private static func listing(_ percent: String) -> BundleListing {
    BundleListing(share: share(percent), minShell: BundleVersion("1"))
  }
}

extension BundleID {
  fileprivate static func sample(_ version: String) -> BundleID {
    guard let name = BundleName("board"), let version = BundleVersion(version) else {
      preconditionFailure("\(version) is no version")
    }
    return BundleID(name, version)
  }
}

extension ContentHash {
  fileprivate static func bundleSample(_ number: UInt8) -> ContentHash {
    guard let hash = ContentHash([UInt8](repeating: number, count: 32)) else {
      preconditionFailure("32 bytes are a hash")
    }
    return hash
  }
}

extension Result where Failure == Problem {
  fileprivate var problem: Problem? {
    if case .failure(let problem) = self { problem } else { nil }
  }
}

extension Reader {
  /// Returns the state of a version, as the device has pulled it.
  fileprivate func listing(_ version: String) -> BundleListing? {
    let id = BundleID.sample(version).mission.value
    guard let columns = records[RecordKey(table: MissionRecord.table, record: Name(id))] else {
      return nil
    }
    return MissionRecord(id: id) { columns[$0] }?.bundle
  }
}

extension SpaceUnderTest {
  @discardableResult
  fileprivate func publishBundle(
    _ version: String, share: String = "100"
  ) async throws -> MissionRecord {
    let id = BundleID.sample(version)
    let item = MissionItem(path: "index.html", size: 5, hash: .bundleSample(9))
    let manifest = MissionManifest(
      space: space.name, id: id.mission, version: 1, title: "Board", items: [item],
      bundle: BundleDeclaration(id, minShell: BundleVersion("1")))
    var record = MissionRecord(
      of: manifest, hash: .bundleSample(UInt8(id.version.numbers[0])), manifestSize: 77,
      signature: [UInt8](repeating: 3, count: 64), signer: [UInt8](repeating: 4, count: 32),
      publishedAt: Self.now)
    record.bundle?.share = BundleShare(percent: share) ?? .all
    return try await store.publishMission(record, blobs: [], in: self.space.id, now: Self.now)
      .get()
  }

  fileprivate func change(
    _ version: String, _ change: BundleChange, later: Int64 = 0
  ) async throws -> Result<MissionRecord, Problem> {
    try await store.changeBundle(
      .sample(version), change, in: space.id, now: Self.now + later)
  }

  /// Reports about versions: a reason is a failure, `nil` a success. Returns the number of kept
  /// reports.
  ///
  /// - Parameter number: By default greater if `at` is.
  @discardableResult
  fileprivate func reports(
    _ outcomes: KeyValuePairs<String, String?>, of device: DeviceID, by principal: Principal,
    at: Int64 = 0, number: Int64? = nil, quota: Int64 = 1_000
  ) async throws -> Int {
    let reports = outcomes.map { version, reason in
      let id = BundleID.sample(version)
      return BundleReport(
        id, .bundleSample(UInt8(id.version.numbers[0])),
        reason.map { .failure(BundleReason(bounding: $0)) } ?? .success,
        number: number ?? Self.now + at)
    }
    return try await send(reports, of: device, by: principal, at: at, quota: quota)
  }

  fileprivate func send(
    _ reports: [BundleReport], of device: DeviceID, by principal: Principal, at: Int64 = 0,
    quota: Int64 = 1_000
  ) async throws -> Int {
    try await BundleCatalogue(store).storeBundleReports(
      reports, of: device, in: space.id, now: Self.now + at, by: principal, quota: quota
    ).get()
  }

  /// Returns the code with which a report is refused.
  fileprivate func problem(
    of device: DeviceID, by principal: Principal, number: Int64 = 1, quota: Int64 = 1_000
  ) async throws -> ProblemCode? {
    let report = BundleReport(.sample("1"), .bundleSample(1), .success, number: number)
    return try await BundleCatalogue(store).storeBundleReports(
      [report], of: device, in: space.id, now: Self.now, by: principal, quota: quota
    ).problem?.code
  }

  fileprivate func tally(_ version: String) async throws -> BundleTally {
    let id = BundleID.sample(version)
    let tallies = try await BundleCatalogue(store).bundleTallies(of: [id], in: space.id, latest: 20)
    return try unwrap(tallies[id], "no tally")
  }
}
