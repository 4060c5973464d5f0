import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let missions = [
    StoreContract(
      "a published mission reaches devices in their pull list, and so does its retraction"
    ) { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]))
        var device = Reader()
        try await device.pull(from: space)
        let first = try await space.publish("tour", 1, blobs: [1, 2])
        try require(try await space.head(), is: 2, "the head")
        try await device.pull(from: space)
        let columns = try unwrap(device.records[.mission("tour")], "no record")
        let read = MissionRecord(id: "tour") { columns[$0] }
        try require(read, is: first, "what the device reads")
        try require(try await space.store.missions(in: space.space.id), is: [first], "the list")
        let second = try await space.publish("tour", 2, blobs: [2, 3])
        try await device.pull(from: space)
        try require(device.records[.mission("tour")]?["version"], is: 2, "the second version")
        try require(try await space.retract("tour"), "it was not there")
        try await device.pull(from: space)
        try require(device.records[.mission("tour")] == nil, "the device still has it")
        try require(try await space.retract("tour"), is: false, "retracted twice")
        try require(try await space.store.missions(in: space.space.id), is: [], "the list")
        try require(
          try await space.known("tour"), is: StoredMission(lastVersion: 2, record: nil), "after")
        let third = try await space.publish("tour", 3, blobs: [2])
        try await device.pull(from: space)
        try require(device.records[.mission("tour")]?["version"], is: 3, "published again")
        try require(second.manifest != third.manifest, "the samples are the same")
      }
      try await under.withSpace { space in
        try require(try await space.known("tour")?.lastVersion, is: 3, "after a restart")
      }
    },
    StoreContract("missions are listed by the bytes of their names") { under in
      try await under.withSpace { space in
        let names = ["0199c82c-0000-7000-8000-0000000000a1", "alpha", "zeta"]
        for name in names.reversed() { try await space.publish(name, 1, blobs: [1]) }
        let listed = try await space.store.missions(in: space.space.id)
        try require(listed.map(\.id.value), is: names, "the list")
      }
    },
    StoreContract("missions and versions of bundles are listed in parts") { under in
      try await under.withSpace { space in
        let (store, id) = (space.store, space.space.id)
        let names = [
          "alpha", "bundle.", "bundle.a-b.1", "bundle.a.10", "bundle.a.9", "bundle.none", "zeta",
          "0199c82c-0000-7000-8000-0000000000a1",
        ]
        for name in names.reversed() {
          // A retracted mission is in no part.
          try await space.publish(name, 1, blobs: [1])
          try await space.publish("gone-\(name)", 1, blobs: [1])
          _ = try await space.retract("gone-\(name)")
        }
        for limit in 1...names.count + 1 {
          var (found, place) = ([String](), MissionID?.none)
          repeat {
            let page = try await store.missions(in: id, after: place, limit: limit)
            try require(page.records.count <= limit, "a part is too long")
            found += page.records.map(\.id.value)
            place = page.next
          } while place != nil
          try require(found, is: names, "parts of \(limit)")
        }
      }
    },
    StoreContract("a part of a list of missions ends at its bytes") { under in
      try await under.withSpace { space in
        let (store, id) = (space.store, space.space.id)
        let summary = String(repeating: "s", count: MissionLimits.standard.summaryBytes)
        let names = (100..<170).map { "m\($0)" }
        for name in names { try await space.publish(name, 1, blobs: [], summary: summary) }
        var (found, place, parts) = ([String](), MissionID?.none, 0)
        repeat {
          let page = try await store.missions(
            in: id, after: place, limit: MissionPage.countMax)
          let bytes = page.records.reduce(0) { $0 + $1.summary.utf8.count }
          try require(bytes <= MissionPage.bytesMax, "a part has \(bytes) bytes")
          found += page.records.map(\.id.value)
          (place, parts) = (page.next, parts + 1)
        } while place != nil
        try require(found, is: names, "the list")
        try require(parts, is: 2, "parts")
      }
    },
    StoreContract("a mission's next version is its last one plus one, even after a retraction") {
      under in
      try await under.withSpace { space in
        try require(try await space.known("tour") == nil, "a mission from nowhere")
        for wrong in [2, 0, 7] {
          try await space.refusesVersion(Int64(wrong))
        }
        try await space.publish("tour", 1, blobs: [1])
        try await space.refusesVersion(3)
        _ = try await space.retract("tour")
        try await space.refusesVersion(1)
        try await space.publish("tour", 2, blobs: [1])
        // Tombstones may be pruned; the version stays.
        _ = try await space.retract("tour")
        try await space.prune()
        try await space.refusesVersion(1)
        try await space.publish("tour", 3, blobs: [1])
        try require(try await space.everything().records.count, is: 1, "records")
      }
    },
    StoreContract("publishing the same mission again writes nothing and returns the same answer") {
      under in
      try await under.withSpace { space in
        let first = try await space.publish("tour", 1, blobs: [1])
        let head = try await space.head()
        var again = space.sample("tour", 1)
        again.publishedAt += 5_000
        let answer = try await space.store.publishMission(
          again, blobs: [.sample(1)], in: space.space.id, now: SpaceUnderTest.now + 5_000
        ).get()
        try require(answer, is: first, "the answer")
        try require(try await space.head(), is: head, "the head")
        // The same version by another key is another mission.
        again.signer[0] ^= 1
        let other = try await space.store.publishMission(
          again, blobs: [], in: space.space.id, now: SpaceUnderTest.now)
        guard case .failure(let problem) = other else {
          throw ContractViolation(description: "another signer's mission was taken for the same")
        }
        try require(problem.code, is: .missionConflict, "another signer")
      }
    },
    StoreContract("a space reads the content of its own missions only") { under in
      try await under.withSpace { space in
        let other = SpaceUnderTest(
          store: space.store, space: try await space.store.createSpace(.name("other")))
        try await space.publish("tour", 1, blobs: [1, 2])
        try await other.publish("tour", 1, blobs: [2, 3])
        for (blob, mine, others) in [
          (1, true, false), (2, true, true), (3, false, true), (4, false, false),
        ] as [(UInt8, Bool, Bool)] {
          try require(try await space.reads(blob), is: mine, "content \(blob)")
          try require(try await other.reads(blob), is: others, "content \(blob) elsewhere")
          let anywhere = try await space.store.readableBlob(
            MissionBlob.sample(blob).hash, in: .everything)
          try require(anywhere != nil, is: mine || others, "content \(blob) anywhere")
        }
        let unknown = try await space.store.readableBlob(
          MissionBlob.sample(1).hash, in: SpacePattern(.name("nowhere")))
        try require(unknown == nil, "a space that is not there reads")
      }
    },
    StoreContract("former versions are readable until they are ended; retracted missions are not") {
      under in
      try await under.withSpace { space in
        let now = SpaceUnderTest.now
        try await space.publish("tour", 1, blobs: [1, 2], now: now)
        try await space.publish("tour", 2, blobs: [2, 3], now: now + 1_000)
        for blob in 1...3 as ClosedRange<UInt8> {
          try require(try await space.reads(blob), "content \(blob) is gone at once")
        }
        try require(try await space.store.endBlobs(before: now + 1_000), is: 0, "ended too early")
        try require(try await space.store.endBlobs(before: now + 1_001), is: 1, "ended")
        try require(try await space.reads(1), is: false, "the first version's content")
        try require(try await space.reads(2), "what both versions name")
        let needed = try await space.store.neededBlobs(among: (1...4).map { .sample($0) })
        try require(needed, is: [.sample(2), .sample(3)].sorted(), "what is needed")
        // A returning mission is in force again.
        try await space.publish("tour", 3, blobs: [1], now: now + 2_000)
        try require(try await space.store.endBlobs(before: now + 9_000), is: 2, "ended")
        try require(try await space.reads(1), "what came back")
        try await space.publish("base", 1, blobs: [1])
        _ = try await space.retract("tour")
        try require(try await space.reads(1), "what another mission names")
        _ = try await space.retract("base")
        try require(try await space.reads(1), is: false, "what was retracted")
        try require(
          try await space.store.neededBlobs(among: [.sample(1)]), is: [], "what is needed")
      }
    },
    StoreContract(
      "uploaded content belongs to its space and is not readable before it is published"
    ) {
      under in
      try await under.withSpace { space in
        let other = SpaceUnderTest(
          store: space.store, space: try await space.store.createSpace(.name("other")))
        let now = SpaceUnderTest.now
        for _ in 0..<2 {
          try await space.store.storeUpload(.sample(1), in: space.space.id, now: now)
        }
        try await space.publish("tour", 1, blobs: [2])
        try require(
          try await space.held([1, 2, 3]), is: [.sample(1), .sample(2)].sorted(), "what is held")
        try require(try await other.held([1, 2, 3]), is: [], "what another space holds")
        try require(try await space.reads(1), is: false, "what was sent is read")
        try require(
          try await space.store.neededBlobs(among: [.sample(1)]), is: [.sample(1)], "needed")
        try await space.publish("tour", 2, blobs: [1, 2])
        try require(try await space.store.endBlobs(before: now + 1), is: 1, "ended")
        try require(try await space.reads(1), "what was published")
      }
    },
    StoreContract("concurrent publishers of one mission publish each version once") {
      under in
      let store = try await under.open(.standard)
      let second = under.isShared ? try await under.open(.standard) : store
      let space = SpaceUnderTest(store: store, space: try await store.createSpace(.test))
      let other = SpaceUnderTest(store: second, space: space.space)
      let published = try await withThrowingTaskGroup(of: Int64.self) { group in
        for writer in 0..<8 {
          group.addTask {
            let side = writer % 2 == 0 ? space : other
            while true {
              let last = try await side.known("tour")?.lastVersion ?? 0
              var record = side.sample("tour", last + 1)
              record.title = "by \(writer)"
              record.manifest = MissionBlob.sample(UInt8(100 + writer)).hash
              let answer = try await side.store.publishMission(
                record, blobs: [.sample(1)], in: side.space.id, now: SpaceUnderTest.now)
              if case .success = answer { return last + 1 }
            }
          }
        }
        return try await group.reduce(into: [Int64]()) { $0.append($1) }.sorted()
      }
      try require(published, is: Array(1...8), "the versions")
      try require(try await space.head(), is: 8, "the head")
      await second.close()
      await store.close()
    },
  ]
}

extension RecordKey {
  fileprivate static func mission(_ id: String) -> RecordKey {
    RecordKey(table: MissionRecord.table, record: Name(id))
  }
}

extension ContentHash {
  fileprivate static func sample(_ number: UInt8) -> ContentHash {
    guard let hash = ContentHash((0..<32).map { $0 == 7 ? number : UInt8($0) }) else {
      preconditionFailure("32 bytes are a hash")
    }
    return hash
  }
}

extension MissionBlob {
  fileprivate static func sample(_ number: UInt8) -> MissionBlob {
    MissionBlob(hash: .sample(number), size: Int64(number) * 1_000)
  }
}

extension SpaceUnderTest {
  fileprivate func id(_ text: String) -> MissionID {
    guard let id = MissionID(text) else { preconditionFailure("\(text) is no mission's name") }
    return id
  }

  /// Returns a mission; each version has another document.
  fileprivate func sample(
    _ name: String, _ version: Int64, summary: String = ""
  ) -> MissionRecord {
    let item = MissionItem(path: "a", size: 5, hash: .sample(9))
    let manifest = MissionManifest(
      space: space.name, id: id(name), version: version, title: "A tour", summary: summary,
      items: [item])
    return MissionRecord(
      of: manifest, hash: .sample(UInt8(200 + version)), manifestSize: 77,
      signature: [UInt8](repeating: 3, count: 64), signer: [UInt8](repeating: 4, count: 32),
      publishedAt: Self.now)
  }

  @discardableResult
  fileprivate func publish(
    _ name: String, _ version: Int64, blobs: [UInt8], now: Int64 = SpaceUnderTest.now,
    summary: String = ""
  ) async throws -> MissionRecord {
    try await store.publishMission(
      sample(name, version, summary: summary), blobs: blobs.map { .sample($0) }, in: space.id,
      now: now
    ).get()
  }

  fileprivate func retract(_ name: String) async throws -> Bool {
    try await store.retractMission(id(name), in: space.id, now: Self.now)
  }

  fileprivate func known(_ name: String) async throws -> StoredMission? {
    try await store.mission(id(name), in: space.id)
  }

  fileprivate func reads(_ blob: UInt8) async throws -> Bool {
    let found = try await store.readableBlob(
      ContentHash.sample(blob), in: SpacePattern(space.name))
    try require(
      found == nil || found == .sample(blob), "content \(blob) is \(String(describing: found))")
    return found != nil
  }

  fileprivate func held(_ blobs: [UInt8]) async throws -> [MissionBlob] {
    try await store.heldBlobs(among: blobs.map { ContentHash.sample($0) }, in: space.id)
  }

  fileprivate func refusesVersion(_ version: Int64) async throws {
    let head = try await head()
    let answer = try await store.publishMission(
      sample("tour", version), blobs: [.sample(5)], in: space.id, now: Self.now)
    guard case .failure(let problem) = answer else {
      throw ContractViolation(description: "version \(version) was published")
    }
    try require(problem.code, is: .missionConflict, "version \(version)")
    try require(try await self.head(), is: head, "the head after version \(version)")
    try require(try await reads(5), is: false, "what a refused version names")
  }
}
