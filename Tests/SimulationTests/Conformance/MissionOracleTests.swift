import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracles on missions, each with cases to accept and cases to report.
@Suite(.hangLimit)
struct MissionOracleTests {
  private static let space = made(SpaceName("main"))
  private static let mission = made(MissionID("guide"))

  private static func made<T>(_ value: T?) -> T {
    guard let value else { preconditionFailure("the test's own value is none") }
    return value
  }

  private static func hash(_ number: UInt8) -> ContentHash {
    made(ContentHash([UInt8](repeating: number, count: 32)))
  }

  private static func item(_ number: UInt8, size: Int64 = 1_000, part: Int64 = 100) -> PublishedItem
  {
    PublishedItem(hash: hash(number), size: size, partSize: part)
  }

  private static func publishing(_ items: [String: PublishedItem]) -> MissionRunEvent {
    .publishing(space, mission, items)
  }

  private static func evidence(
    _ version: Int64, _ files: [String: UInt8]?, isComplete: Bool = true, isActive: Bool = true
  ) -> MissionEvidence {
    var evidence = MissionEvidence()
    evidence.versions = [
      MissionEvidence.Version(
        mission: mission, version: version, isComplete: isComplete, isActive: isActive,
        files: files?.mapValues { hash($0) })
    ]
    return evidence
  }

  private static func looked(_ evidence: MissionEvidence, on device: String = "one")
    -> MissionRunEvent
  { .looked(device: device, space, evidence) }

  private static func objections(
    _ oracle: some MissionOracle, _ events: [MissionRunEvent]
  ) -> Int {
    var oracle = oracle
    return events.reduce(0) { $0 + oracle.see($1).count }
  }

  // MARK: Whole missions

  @Test(
    "a version in use must be one published version, whole",
    arguments: [
      (["a": 1, "b": 2], true), (["a": 3, "b": 4], true), (["a": 1, "b": 4], false),
      (["a": 1], false), (["a": 1, "b": 2, "c": 3], false), (nil, false),
    ] as [([String: UInt8]?, Bool)])
  func whole(_ files: [String: UInt8]?, _ isSound: Bool) {
    let count = Self.objections(
      WholeMissions(),
      [
        Self.publishing(["a": Self.item(1), "b": Self.item(2)]),
        Self.publishing(["a": Self.item(3), "b": Self.item(4)]),
        Self.looked(Self.evidence(1, files)),
      ])
    #expect(count == (isSound ? 0 : 1))
  }

  @Test("a version in use must be complete; any other version need not be")
  func incomplete() {
    let publishing = Self.publishing(["a": Self.item(1)])
    let isActive = Self.evidence(1, nil, isComplete: false)
    #expect(Self.objections(WholeMissions(), [publishing, Self.looked(isActive)]) == 1)
    let isNot = Self.evidence(1, nil, isComplete: false, isActive: false)
    #expect(Self.objections(WholeMissions(), [publishing, Self.looked(isNot)]) == 0)
  }

  @Test("one version must be the same on all devices")
  func same() {
    let count = Self.objections(
      WholeMissions(),
      [
        Self.publishing(["a": Self.item(1)]), Self.publishing(["a": Self.item(2)]),
        Self.looked(Self.evidence(1, ["a": 1])),
        Self.looked(Self.evidence(1, ["a": 2]), on: "two"),
      ])
    #expect(count == 1)
  }

  @Test("the content of a complete version must be present and match its hash")
  func content() {
    var oracle = WholeMissions()
    var store = Self.evidence(1, ["a": 1])
    store.objects = [(Self.hash(1).description, Self.hash(1))]
    #expect(oracle.judge(Self.final(store)).isEmpty)
    // Content outside of all complete versions belongs to no mission.
    store.objects.append((Self.hash(2).description, Self.hash(3)))
    #expect(oracle.judge(Self.final(store)).isEmpty)
    store.objects[0].hash = Self.hash(3)
    #expect(oracle.judge(Self.final(store)).count == 1)
    store.objects = []
    #expect(oracle.judge(Self.final(store)).count == 1)
  }

  // MARK: Confinement and progress

  @Test("a file outside of the store is a violation")
  func confined() {
    var evidence = MissionEvidence()
    #expect(Self.objections(MissionsConfined(), [Self.looked(evidence)]) == 0)
    evidence.strays = ["replica.db.missions/escape"]
    #expect(Self.objections(MissionsConfined(), [Self.looked(evidence)]) == 1)
  }

  private static func progress(_ done: Int64, version: Int64 = 1) -> MissionRunEvent {
    .progress(
      device: "one", MissionVersionName(mission, version), done: done, total: 100)
  }

  @Test("progress must not go back or exceed the total")
  func progress() {
    let on = [Self.progress(1), Self.progress(1), Self.progress(100)]
    #expect(Self.objections(ProgressForward(), on) == 0)
    #expect(Self.objections(ProgressForward(), [Self.progress(2), Self.progress(1)]) == 1)
    #expect(Self.objections(ProgressForward(), [Self.progress(101)]) == 1)
    let again = [Self.progress(9), .rested(device: "one", Self.mission), Self.progress(1)]
    #expect(Self.objections(ProgressForward(), again) == 0)
    #expect(
      Self.objections(ProgressForward(), [Self.progress(9), Self.progress(1, version: 2)]) == 0)
  }

  // MARK: Fetched content

  private static func fetched(_ bytes: Int64, by device: String = "one") -> MissionRunEvent {
    .fetched(device: device, hash(1), bytes: bytes)
  }

  @Test("content must be fetched once, and again only as far as an event explains it")
  func once() {
    func count(_ events: [MissionRunEvent]) -> Int {
      Self.objections(
        FetchedOnce(marksFrom: 500, transfers: 3), [Self.publishing(["a": Self.item(1)])] + events)
    }
    #expect(count([Self.fetched(600), Self.fetched(400)]) == 0)
    #expect(count([Self.fetched(1_000), Self.fetched(1)]) == 1)
    #expect(count([Self.fetched(1_000), Self.fetched(1_000, by: "two")]) == 0)
    let broken = MissionRunEvent.broken(device: "one", Self.hash(1))
    #expect(count([Self.fetched(900), broken, Self.fetched(200)]) == 0)
    #expect(count([Self.fetched(900), broken, Self.fetched(201)]) == 1)
    #expect(count([Self.fetched(900), .killed(device: "one"), Self.fetched(400)]) == 0)
    #expect(count([Self.fetched(900), .killed(device: "one"), Self.fetched(401)]) == 1)
    #expect(count([Self.fetched(900), .killed(device: "two"), Self.fetched(101)]) == 1)
    #expect(count([Self.fetched(900), .wentBack(device: "one"), Self.fetched(1_100)]) == 0)
    #expect(
      count([Self.fetched(900), .givenUp(device: "one", Self.mission), Self.fetched(1_100)]) == 0)
    #expect(
      count(
        [Self.fetched(900), .copied(device: "two", from: "one"), Self.fetched(1_101, by: "two")])
        == 1)
    // Bytes of the next part came together with the end of the lost one.
    let arrivals = FetchedOnce(marksFrom: 500, transfers: 3, arrivalMax: 20)
    let start = [Self.publishing(["a": Self.item(1)]), Self.fetched(900), broken]
    #expect(Self.objections(arrivals, start + [Self.fetched(220)]) == 0)
    #expect(Self.objections(arrivals, start + [Self.fetched(221)]) == 1)
    // Content without a row is gone.
    #expect(count([Self.fetched(900), Self.looked(MissionEvidence()), Self.fetched(1_000)]) == 0)
  }

  @Test("content that was removed may be fetched again unless a mission named it all the time")
  func removed() {
    let other = Self.made(MissionID("other"))
    func count(_ before: Set<MissionID>, _ now: Set<MissionID>) -> Int {
      var rows = MissionEvidence()
      rows.owners[Self.hash(1)] = before
      return Self.objections(
        FetchedOnce(marksFrom: 500, transfers: 3),
        [
          Self.publishing(["a": Self.item(1)]), Self.fetched(1_000), Self.looked(rows),
          .removing(device: "one", Self.hash(1), owners: now), Self.fetched(1_000),
        ])
    }
    #expect(count([Self.mission], []) == 0)
    // The other mission's rows came after the first one's had gone.
    #expect(count([Self.mission], [other]) == 0)
    #expect(count([Self.mission], [Self.mission]) == 1)
    #expect(count([Self.mission, other], [other]) == 1)
  }

  private static let broken = MissionRunEvent.broken(device: "one", hash(1))

  private static func fetchedAgain(part: Int64, _ events: [MissionRunEvent]) -> Int {
    objections(
      FetchedOnce(marksFrom: 500, transfers: 3), [publishing(["a": item(1, part: part)])] + events)
  }

  @Test("damage counts until the file without a row is gone")
  func damaged() {
    var file = MissionEvidence()
    file.stored = [Self.hash(1)]
    func count(_ release: MissionRunEvent, _ bytes: Int64) -> Int {
      Self.fetchedAgain(
        part: 1_000, [Self.fetched(900), Self.broken, release, Self.fetched(bytes)])
    }
    #expect(count(Self.looked(file), 1_100) == 0)
    #expect(count(Self.looked(file), 1_101) == 1)
    #expect(count(Self.looked(MissionEvidence()), 1_000) == 0)
    #expect(count(Self.looked(MissionEvidence()), 1_001) == 1)
    #expect(count(.removing(device: "one", Self.hash(1), owners: []), 1_100) == 0)
    #expect(count(.removing(device: "one", Self.hash(1), owners: []), 1_101) == 1)
  }

  @Test("a restored disk has the fetched content and the damage of the backup")
  func restored() {
    let backup = MissionRunEvent.backedUp(device: "one", to: "backup")
    func count(
      part: Int64 = 100, _ before: [MissionRunEvent], _ bytes: Int64, isOtherBoot: Bool = false
    ) -> Int {
      let restore = MissionRunEvent.restored(
        device: "one", from: "backup", isOtherBoot: isOtherBoot)
      return Self.fetchedAgain(part: part, before + [restore, Self.fetched(bytes)])
    }
    // The backup lacks 400 bytes, and at most 300 in flight.
    let half = [Self.fetched(600), backup, Self.fetched(400)]
    #expect(count(half, 700) == 0)
    #expect(count(half, 701) == 1)
    #expect(count(half, 1_400, isOtherBoot: true) == 0)
    #expect(count(half, 1_401, isOtherBoot: true) == 1)
    // The disk had no rows of the content at the restore; the backup has.
    let forgotten = [Self.fetched(900), Self.broken, backup, Self.looked(MissionEvidence())]
    #expect(count(part: 1_000, forgotten, 2_100) == 0)
    #expect(count(part: 1_000, forgotten, 2_101) == 1)
    #expect(count(forgotten, 500) == 0)
    #expect(count(forgotten, 501) == 1)
    // A backup from before the first content.
    #expect(count([backup, Self.fetched(1_000)], 1_000) == 0)
    #expect(count([backup, Self.fetched(1_000)], 1_001) == 1)
  }

  @Test("content that is too small for marks may be fetched whole again after a transfer")
  func small() {
    let events = [
      Self.publishing(["a": Self.item(1, size: 400)]), Self.fetched(300),
      .broken(device: "one", Self.hash(1)), Self.fetched(400),
    ]
    #expect(Self.objections(FetchedOnce(marksFrom: 500, transfers: 3), events) == 0)
    #expect(Self.objections(FetchedOnce(marksFrom: 100, transfers: 3), events) == 1)
  }

  // MARK: The end

  private static func final(
    _ store: MissionEvidence, catalogue: [MissionID: Int64] = [:],
    wanted: Set<MissionID> = [], reasons: [MissionID: String] = [:],
    published: [MissionID: Int64] = [:]
  ) -> FinalMissionEvidence {
    FinalMissionEvidence(
      published: published,
      devices: [
        FinalMissionEvidence.Device(
          name: "one", store: store, catalogue: catalogue, wanted: wanted, reasons: reasons)
      ])
  }

  @Test("a device that wants a mission must have its newest version, or a reason")
  func delivered() {
    var oracle = MissionsDelivered()
    let newest = [Self.mission: Int64(2)]
    func count(_ store: MissionEvidence, _ reasons: [MissionID: String] = [:]) -> Int {
      oracle.judge(
        Self.final(store, wanted: [Self.mission], reasons: reasons, published: newest)
      ).count
    }
    #expect(count(Self.evidence(2, ["a": 1])) == 0)
    #expect(count(Self.evidence(1, ["a": 1])) == 1)
    #expect(count(MissionEvidence()) == 1)
    #expect(count(MissionEvidence(), [Self.mission: "it waits"]) == 0)
    #expect(oracle.judge(Self.final(MissionEvidence(), wanted: [Self.mission])).isEmpty)
  }

  @Test("a replica's catalogue must equal the server's")
  func catalogue() {
    var oracle = CatalogueKept()
    let one = [Self.mission: Int64(1)]
    #expect(oracle.judge(Self.final(MissionEvidence(), catalogue: one, published: one)).isEmpty)
    #expect(oracle.judge(Self.final(MissionEvidence(), catalogue: one)).count == 1)
    #expect(oracle.judge(Self.final(MissionEvidence(), published: one)).count == 1)
    let two = [Self.mission: Int64(2)]
    #expect(oracle.judge(Self.final(MissionEvidence(), catalogue: one, published: two)).count == 1)
  }
}
