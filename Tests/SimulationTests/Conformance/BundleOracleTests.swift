import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracles on bundles, each with cases to accept and cases to report.
@Suite(.hangLimit)
struct BundleOracleTests {
  private static let name = made(BundleName("board"))
  private static let device = DeviceID(UniqueID(high: 1, low: 2))
  private static let second: Int64 = 1_000_000

  private static func made<T>(_ value: T?) -> T {
    guard let value else { preconditionFailure("the test's own value is none") }
    return value
  }

  private static func version(_ text: String) -> BundleVersion { made(BundleVersion(text)) }

  private static func id(_ text: String) -> BundleID { BundleID(name, version(text)) }

  private static func hash(_ number: UInt8) -> ContentHash {
    made(ContentHash([UInt8](repeating: number, count: 32)))
  }

  /// The files of version 1 and 2: one of them is in both.
  private static func files(_ text: String) -> [String: ContentHash] {
    [
      "index.html": hash(text == "1" ? 1 : 2), "app.js": hash(9),
      "photo": hash(text == "1" ? 3 : 4),
    ]
  }

  private static let published: [BundleRunEvent] = ["1", "2", "3"].map {
    .publishing(id($0), files($0))
  }

  private static func evidence(
    _ active: String?, isConfirmed: Bool = false, _ outcomes: [BundleEvidence.Outcome] = [],
    files: [String: ContentHash]? = nil
  ) -> BundleEvidence {
    BundleEvidence(
      name, active: active.map { version($0) }, isConfirmed: isConfirmed, outcomes: outcomes,
      files: files ?? active.map { Self.files($0) })
  }

  private static func looked(
    _ active: String?, isConfirmed: Bool = false, _ outcomes: [BundleEvidence.Outcome] = [],
    at: Int64 = 0, on device: String = "one"
  ) -> BundleRunEvent {
    .looked(
      device: device, at: at, [evidence(active, isConfirmed: isConfirmed, outcomes)])
  }

  private static func success(_ text: String, isReported: Bool = true) -> BundleEvidence.Outcome {
    .init(version(text), failure: nil, isBlocked: false, isReported: isReported)
  }

  private static func failure(
    _ text: String, isBlocked: Bool = true, isReported: Bool = true
  ) -> BundleEvidence.Outcome {
    .init(version(text), failure: "blank", isBlocked: isBlocked, isReported: isReported)
  }

  private static func failing(_ text: String, on device: String = "one") -> BundleRunEvent {
    .failing(device: device, id(text), reason: "blank")
  }

  private static func confirming(_ text: String, on device: String = "one") -> BundleRunEvent {
    .confirming(device: device, id(text))
  }

  private static func listed(
    _ entries: [String: BundleCatalogue.Entry], at: Int64 = 0, shell: String = "1"
  ) -> BundleRunEvent {
    .listed(
      device: "one", at: at,
      BundleCatalogue(
        device: device, shell: version(shell),
        entries: Dictionary(uniqueKeysWithValues: entries.map { (id($0.key), $0.value) })))
  }

  private static let all = BundleCatalogue.Entry(share: .all)
  private static let none = BundleCatalogue.Entry(share: .none)
  private static let withdrawn = BundleCatalogue.Entry(share: .all, isWithdrawn: true)

  private static func objections(
    _ oracle: some BundleOracle, _ events: [BundleRunEvent]
  ) -> Int {
    var oracle = oracle
    return events.reduce(0) { $0 + oracle.see($1).count }
  }

  // MARK: Whole versions, and good ones

  @Test("the version in use must be one published version, whole")
  func whole() {
    func count(_ files: [String: ContentHash]?, _ active: String = "1") -> Int {
      var bundle = Self.evidence(active)
      bundle.files = files
      return Self.objections(
        BundlesKept(), Self.published + [.looked(device: "one", at: 0, [bundle])])
    }
    #expect(count(Self.files("1")) == 0)
    #expect(count(Self.files("2"), "2") == 0)
    #expect(count(Self.files("2")) == 1)
    #expect(count(nil) == 1)
    var mixed = Self.files("1")
    mixed["photo"] = Self.files("2")["photo"]
    #expect(count(mixed) == 1)
    mixed["photo"] = nil
    #expect(count(mixed) == 1)
    #expect(count(Self.files("1").merging(["x": Self.hash(7)]) { $1 }) == 1)
  }

  @Test("a page must show the files of its own version")
  func shown() {
    func count(_ files: [String: ContentHash]) -> Int {
      Self.objections(
        BundlesKept(), Self.published + [.showed(device: "one", Self.id("2"), files)])
    }
    #expect(count(Self.files("2")) == 0)
    #expect(count(Self.files("1")) == 1)
    var mixed = Self.files("2")
    mixed["index.html"] = Self.files("1")["index.html"]
    #expect(count(mixed) == 1)
    mixed["index.html"] = nil
    #expect(count(mixed) == 1)
  }

  @Test("a device that had a good version must use a version until no good one is left")
  func good() {
    func count(_ events: [BundleRunEvent]) -> Int {
      Self.objections(BundlesKept(), Self.published + events)
    }
    let one = Self.looked("1", isConfirmed: true)
    let two = Self.looked("2", isConfirmed: true)
    #expect(count([Self.looked(nil), Self.looked("1"), Self.looked(nil)]) == 0)
    #expect(count([one, Self.looked(nil)]) == 1)
    #expect(count([one, Self.failing("1"), Self.looked(nil)]) == 0)
    // The version is still in use while the device leaves it.
    #expect(count([one, Self.failing("1"), one, Self.looked(nil)]) == 0)
    #expect(count([one, Self.failing("1"), Self.confirming("1"), one, Self.looked(nil)]) == 1)
    #expect(count([one, Self.looked("2"), Self.failing("2"), Self.looked(nil)]) == 1)
    #expect(count([one, Self.looked("2"), Self.failing("2"), Self.looked("1")]) == 0)
    #expect(count([one, two, Self.failing("2"), Self.looked(nil)]) == 1)
    #expect(count([one, two, Self.failing("2"), Self.failing("1"), Self.looked(nil)]) == 0)
    #expect(count([one, Self.listed(["1": Self.withdrawn]), Self.looked(nil)]) == 0)
    #expect(count([one, Self.listed(["2": Self.withdrawn]), Self.looked(nil)]) == 1)
    #expect(count([one, .wentBack(device: "one"), Self.looked(nil)]) == 0)
    #expect(count([one, .wentBack(device: "two"), Self.looked(nil)]) == 1)
    #expect(
      count([one, .copied(device: "two", from: "one"), Self.looked(nil, on: "two")]) == 1)
    // Only two good versions are kept.
    let three = Self.looked("3", isConfirmed: true)
    let failures = [Self.failing("3"), Self.failing("2")]
    #expect(count([one, two, three] + failures + [Self.looked(nil)]) == 0)
  }

  // MARK: Failures

  @Test("a version that failed must not be in use again, unless a user names it")
  func failed() {
    func count(_ events: [BundleRunEvent]) -> Int {
      Self.objections(FailuresKept(), events)
    }
    let failed = Self.looked("1", [Self.failure("2")])
    let forgotten = Self.looked("2", [Self.failure("2", isBlocked: false)])
    let naming = BundleRunEvent.naming(device: "one", Self.id("2"))
    let named = BundleRunEvent.named(device: "one", Self.id("2"))
    #expect(count([failed, Self.looked("1", [Self.failure("2")])]) == 0)
    #expect(count([failed, forgotten]) == 1)
    #expect(count([failed, .died(device: "one"), Self.looked("1"), forgotten]) == 1)
    #expect(count([failed, naming, forgotten]) == 0)
    #expect(count([failed, naming, failed, forgotten, named, forgotten]) == 0)
    #expect(count([failed, naming, named, failed, forgotten]) == 1)
    #expect(count([failed, naming, .died(device: "one"), failed, forgotten]) == 1)
    #expect(count([failed, .naming(device: "one", Self.id("3")), forgotten]) == 1)
    #expect(count([failed, .wentBack(device: "one"), forgotten]) == 0)
    let copy = Self.looked("2", [Self.failure("2", isBlocked: false)], on: "two")
    #expect(count([failed, copy]) == 0)
    #expect(count([failed, .copied(device: "two", from: "one"), copy]) == 1)
  }

  // MARK: Rollouts

  @Test("a device must not put a version in use that is not offered to it, or is withdrawn")
  func rollouts() {
    func count(_ events: [BundleRunEvent]) -> Int {
      Self.objections(RolloutsKept(), [Self.looked(nil)] + events)
    }
    let use = Self.looked("2", at: 1)
    #expect(count([Self.listed(["2": Self.all]), use]) == 0)
    #expect(count([Self.listed(["2": Self.none]), use]) == 1)
    #expect(count([Self.listed(["1": Self.all]), use]) == 1)
    #expect(count([Self.listed(["2": Self.withdrawn]), use]) == 1)
    let place = Int64(BundleRollout.place(of: Self.device, for: Self.id("2")))
    let (less, more) = (BundleShare(hundredths: place), BundleShare(hundredths: place + 1))
    #expect(count([Self.listed(["2": .init(share: Self.made(less))]), use]) == 1)
    #expect(count([Self.listed(["2": .init(share: Self.made(more))]), use]) == 0)
    // A version stays if the rollout shrinks.
    #expect(
      count([
        Self.listed(["2": Self.all]), use, Self.listed(["2": Self.none], at: 9 * Self.second),
        Self.looked("2", at: 10 * Self.second),
      ]) == 0)
  }

  @Test("a user's request and a version that worked need no rollout, but no withdrawn one is used")
  func free() {
    func count(_ events: [BundleRunEvent]) -> Int {
      Self.objections(RolloutsKept(), [Self.looked(nil)] + events)
    }
    let use = Self.looked("2", at: 1)
    let naming = BundleRunEvent.naming(device: "one", Self.id("2"))
    let named = BundleRunEvent.named(device: "one", Self.id("2"))
    for request in [[naming], [naming, named], [naming, .died(device: "one")]] {
      #expect(count([Self.listed(["2": Self.none])] + request + [use]) == 0)
      #expect(count([Self.listed(["2": Self.withdrawn])] + request + [use]) == 1)
    }
    // The request is over.
    #expect(
      count([Self.listed(["2": Self.none]), naming, named, Self.looked(nil, at: 1), use]) == 1)
    #expect(count([Self.listed(["2": Self.none]), Self.confirming("2"), use]) == 0)
    #expect(count([Self.listed(["2": Self.withdrawn]), Self.confirming("2"), use]) == 1)
    let later = BundleCatalogue.Entry(share: .all, minShell: Self.version("2"))
    #expect(count([Self.listed(["2": later]), naming, use]) == 1)
    #expect(count([Self.listed(["2": later], shell: "2"), use]) == 0)
  }

  @Test("an older catalogue counts for some seconds, and not longer")
  func catalogues() {
    func count(_ at: Int64) -> Int {
      Self.objections(
        RolloutsKept(),
        [
          Self.listed(["2": Self.all]), Self.looked(nil), Self.listed(["2": Self.none], at: 1),
          Self.looked(nil, at: at), Self.looked("2", at: at + 1),
        ])
    }
    #expect(count(2 * Self.second) == 0)
    #expect(count(6 * Self.second) == 1)
  }

  // MARK: Outcomes

  private static func report(
    _ text: String, _ outcome: BundleOutcome, _ number: Int, of device: DeviceID = device,
    place: Int64? = nil
  ) -> BundleRunEvent {
    let report = BundleReport(id(text), hash(0), outcome, number: place ?? Int64(number))
    return .reporting(
      device: "one", BundleReportsRequest(device: device, reports: [report]), number: number)
  }

  private static let blank = BundleOutcome.failure(BundleReason(bounding: "blank"))

  @Test("a device must report the outcomes of its own pages, and no others")
  func reported() {
    func count(_ events: [BundleRunEvent]) -> Int {
      Self.objections(OutcomesCounted(), events)
    }
    #expect(count([Self.confirming("1"), Self.report("1", .success, 1)]) == 0)
    #expect(count([Self.report("1", .success, 1)]) == 1)
    #expect(count([Self.confirming("2"), Self.report("1", .success, 1)]) == 1)
    #expect(count([Self.confirming("1"), Self.report("1", Self.blank, 1)]) == 1)
    #expect(count([Self.failing("1"), Self.report("1", Self.blank, 1)]) == 0)
    let other = BundleOutcome.failure(BundleReason(bounding: "another reason"))
    #expect(count([Self.failing("1"), Self.report("1", other, 1)]) == 1)
    #expect(count([Self.confirming("1", on: "two"), Self.report("1", .success, 1)]) == 1)
    #expect(count([Self.looked("1", isConfirmed: true, [Self.success("1")])]) == 1)
    #expect(count([Self.confirming("1"), Self.looked("1", [Self.success("1")])]) == 0)
  }

  private static func final(
    _ outcomes: [BundleEvidence.Outcome], _ successes: Int, _ failures: Int
  ) -> FinalBundleEvidence {
    FinalBundleEvidence(
      published: [id("1"): all],
      counts: [id("1"): .init(successes: successes, failures: failures)],
      devices: [
        .init(
          name: "one", id: device, shell: version("1"), opened: [name],
          bundles: [evidence("1", outcomes)])
      ])
  }

  @Test("the server must count each device once, for its last report")
  func counted() {
    func count(
      _ events: [BundleRunEvent], _ outcomes: [BundleEvidence.Outcome], _ successes: Int,
      _ failures: Int
    ) -> Int {
      var oracle = OutcomesCounted()
      let before = [Self.confirming("1"), Self.failing("1"), Self.listed(["1": Self.all])]
      for event in before + events { #expect(oracle.see(event).isEmpty) }
      return oracle.judge(Self.final(outcomes, successes, failures)).count
    }
    let success = [Self.report("1", .success, 1), .reported(number: 1, isKept: true)]
    let failure = [Self.report("1", Self.blank, 2), .reported(number: 2, isKept: true)]
    #expect(count(success, [Self.success("1")], 1, 0) == 0)
    #expect(count(success, [Self.success("1")], 2, 0) == 1)
    #expect(count(success, [Self.success("1")], 0, 0) == 1)
    #expect(count(success, [Self.success("1")], 0, 1) == 1)
    #expect(count(success + failure, [Self.failure("1")], 0, 1) == 0)
    #expect(count(success + failure, [Self.failure("1")], 1, 1) == 1)
    // The network has repeated an earlier report after a later one.
    for isKept in [false, true] {
      let repeated = [
        Self.report("1", .success, 3, place: 1), .reported(number: 3, isKept: isKept),
      ]
      #expect(count(success + failure + repeated, [Self.failure("1")], 0, 1) == 0)
      #expect(count(success + failure + repeated, [Self.failure("1")], 1, 0) == 1)
    }
    // The device itself has sent an earlier outcome last.
    let again = [Self.report("1", .success, 3), .reported(number: 3, isKept: true)]
    #expect(count(success + failure + again, [Self.failure("1")], 1, 0) == 1)
    #expect(count([], [Self.success("1", isReported: false)], 0, 0) == 1)
    #expect(count([], [Self.success("1")], 0, 0) == 1)
    // The server failed to answer: it may have kept the report.
    let unknown = [Self.report("1", .success, 1), .reported(number: 1, isKept: false)]
    #expect(count(unknown, [], 1, 0) == 0)
    #expect(count(unknown, [], 0, 0) == 0)
    #expect(count(unknown, [], 0, 1) == 1)
    // Two requests at the same time: their numbers decide. Two files with the same numbers have none.
    for (place, found) in [(2, 1), (1, 0)] as [(Int64, Int)] {
      let both = [
        Self.report("1", .success, 1), Self.report("1", Self.blank, 2, place: place),
        .reported(number: 2, isKept: true), .reported(number: 1, isKept: true),
      ]
      #expect(count(both, [Self.failure("1")], 0, 1) == 0)
      #expect(count(both, [Self.failure("1")], 1, 0) == found)
      #expect(count(both, [Self.failure("1")], 1, 1) == 1)
    }
  }

  @Test("a report with a former identifier counts, and files that were copied may share one")
  func identifiers() {
    let former = DeviceID(UniqueID(high: 7, low: 7))
    var oracle = OutcomesCounted()
    func see(_ events: [BundleRunEvent]) {
      for event in events { #expect(oracle.see(event).isEmpty) }
    }
    see([Self.confirming("1"), Self.report("1", .success, 1, of: former)])
    see([.reported(number: 1, isKept: true)])
    #expect(oracle.judge(Self.final([Self.success("1")], 1, 0)).count == 1)
    see([
      .listed(device: "one", at: 0, .init(device: former, shell: Self.version("1"), entries: [:]))
    ])
    #expect(oracle.judge(Self.final([Self.success("1")], 1, 0)).isEmpty)
    see([Self.failing("1")])
    #expect(oracle.judge(Self.final([Self.failure("1")], 1, 0)).count == 1)
    see([.copied(device: "two", from: "one")])
    #expect(oracle.judge(Self.final([Self.failure("1")], 1, 0)).isEmpty)
  }

  // MARK: The end

  @Test("at the end a device must use the latest version that is offered to it and did not fail")
  func delivered() {
    func count(
      _ bundle: BundleEvidence?, _ entries: [String: BundleCatalogue.Entry], isOpened: Bool = true
    ) -> Int {
      var oracle = BundlesDelivered()
      return oracle.judge(
        FinalBundleEvidence(
          published: Dictionary(
            uniqueKeysWithValues: entries.map { (Self.id($0.key), $0.value) }), counts: [:],
          devices: [
            .init(
              name: "one", id: Self.device, shell: Self.version("1"),
              opened: isOpened ? [Self.name] : [], bundles: bundle.map { [$0] } ?? [])
          ])
      ).count
    }
    let both = ["1": Self.all, "2": Self.all]
    #expect(count(Self.evidence("2"), both) == 0)
    #expect(count(Self.evidence("1"), both) == 1)
    #expect(count(nil, both) == 1)
    #expect(count(nil, both, isOpened: false) == 0)
    #expect(count(Self.evidence("1", [Self.failure("2")]), both) == 0)
    #expect(count(Self.evidence("1"), ["1": Self.all, "2": Self.none]) == 0)
    #expect(count(Self.evidence("2"), ["1": Self.all, "2": Self.none]) == 0)
    #expect(count(Self.evidence("2"), ["1": Self.all, "2": Self.withdrawn]) == 1)
    #expect(count(Self.evidence("1"), ["1": Self.all, "2": Self.withdrawn]) == 0)
    let later = BundleCatalogue.Entry(share: .all, minShell: Self.version("2"))
    #expect(count(Self.evidence("1"), ["1": Self.all, "2": later]) == 0)
    #expect(count(nil, ["1": Self.none]) == 0)
  }
}
