import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Bundles", .hangLimit)
struct BundleTests {
  static let board = BundleID(known(BundleName("board")), known(BundleVersion("1.2")))

  /// Returns a value known to be valid.
  private static func known<Value>(_ value: Value?) -> Value {
    guard let value else { preconditionFailure("the test's sample is not valid") }
    return value
  }

  /// Returns a manifest of a bundle with these files.
  static func manifest(
    _ bundle: BundleDeclaration, files: [MissionItem]? = nil
  ) -> MissionManifest {
    MissionManifest(
      space: known(SpaceName("team-7.notes")), id: bundle.id.mission, version: 1, title: "Board",
      items: files ?? [
        MissionItem(
          path: "index.html", mediaType: "text/html", size: 5, hash: MissionManifestTests.hash(7))
      ], bundle: bundle)
  }

  static var declaration: BundleDeclaration {
    BundleDeclaration(
      board,
      services: [
        known(BundleService("data", version: BundleVersion("1"))), known(BundleService("device")),
      ],
      minShell: BundleVersion("1"))
  }

  // MARK: Names and versions

  @Test("a bundle's name and version are safe as a mission's name, and are read from it")
  func identity() throws {
    for (name, version, mission) in [
      ("board", "1.2", "bundle.board.1.2"), ("con", "0", "bundle.con.0"),
      (
        String(repeating: "x", count: 64), "999999999.999999999.999999999.999999999",
        "bundle.\(String(repeating: "x", count: 64)).999999999.999999999.999999999.999999999"
      ),
    ] {
      let id = BundleID(try #require(BundleName(name)), try #require(BundleVersion(version)))
      #expect(id.mission.value == mission && BundleID(mission: id.mission) == id)
      #expect(MissionPath.fault(in: mission) == nil)
    }
    for other in ["tour", "bundle.board", "bundle.board.x", "bundle.Board.1", "bundle.board.01"] {
      let mission = try #require(MissionID(other))
      #expect(BundleID(mission: mission) == nil, "\(other)")
    }
  }

  @Test(
    "a bundle's name that breaks the rule is refused",
    arguments: [
      "", "Board", "a.b", "a/b", "..", "-a", "_a", "ä", "a\u{301}", "a b", "a\n",
      String(repeating: "x", count: 65),
    ])
  func badName(name: String) { #expect(BundleName(name) == nil) }

  @Test("versions compare number by number")
  func versionOrder() throws {
    let sorted = ["0", "1", "1.0", "1.0.0", "1.1", "1.12", "2", "10", "999999999"]
    let read = try sorted.map { try #require(BundleVersion($0)) }
    #expect(read.sorted() == read && Set(read).count == read.count)
    #expect(read.map(\.description) == sorted)
  }

  @Test(
    "a version that is none is refused",
    arguments: [
      "", ".", "1.", ".1", "1..2", "01", "1.02", "-1", "+1", "1.a", "1.2.3.4.5", "1000000000", "v1",
      " 1", "1 ", "１", "1\u{301}",
    ])
  func badVersion(text: String) { #expect(BundleVersion(text) == nil) }

  // MARK: Declarations

  @Test("a declaration and a manifest are read and written back byte for byte")
  func golden() throws {
    let declared = try ProjectFiles.fixture("bundles/declaration")
    #expect(try BundleDeclaration(decoding: declared) == Self.declaration)
    let document = try ProjectFiles.fixture("bundles/manifest")
    let manifest = try MissionManifest(decoding: document)
    #expect(manifest == Self.manifest(Self.declaration) && manifest.encoded() == document)
    let renamed = try BundleDeclaration(decoding: declared, name: BundleName("other"))
    #expect(renamed.id.mission.value == "bundle.other.1.2")
    let least = try BundleDeclaration(decoding: Array(#"{"name":"a","version":"1"}"#.utf8))
    #expect(least.entry == "index.html" && least.services.isEmpty && least.minShell == nil)
  }

  @Test(
    "a declaration with unknown, repeated, missing or malformed members is refused",
    arguments: [
      "", "[]", "{}", #"{"name":"a"}"#, #"{"version":"1"}"#, #"{"name":"A","version":"1"}"#,
      #"{"name":"a","version":1}"#, #"{"name":"a","version":"1.x"}"#,
      #"{"name":"a","version":"1","colour":"red"}"#, #"{"name":"a","name":"b","version":"1"}"#,
      #"{"name":"a","version":"1","minShell":"x"}"#, #"{"name":"a","version":"1","minShell":null}"#,
      #"{"name":"a","version":"1","services":["data"]}"#,
      #"{"name":"a","version":"1","services":[{"name":"../x"}]}"#,
      #"{"name":"a","version":"1","services":[{"version":"1"}]}"#,
      #"{"name":"a","version":"1","services":[{"name":"x","scope":"all"}]}"#,
      #"{"name":"a","version":"1"} x"#,
    ])
  func badDeclaration(json: String) {
    #expect(throws: MalformedMessage.self) { try BundleDeclaration(decoding: Array(json.utf8)) }
  }

  @Test("a declaration is bounded")
  func boundedDeclaration() {
    let services = (0...BundleLimits.standard.services).map { #"{"name":"s\#($0)"}"# }
    let many = #"{"name":"a","version":"1","services":[\#(services.joined(separator: ","))]}"#
    let long = #"{"name":"a","version":"1"\#(String(repeating: " ", count: 64 << 10))}"#
    for json in [many, long] {
      #expect(throws: MalformedMessage.self) { try BundleDeclaration(decoding: Array(json.utf8)) }
    }
  }

  @Test("a bundle's manifest has its name, its entry, and only files that the server has")
  func faults() throws {
    func fault(_ change: (inout MissionManifest) -> Void) -> String? {
      var manifest = Self.manifest(Self.declaration)
      change(&manifest)
      return manifest.fault()
    }
    #expect(fault { _ in } == nil)
    #expect(fault { $0.id = MissionID("bundle.board.1.3")! }?.contains("is mission") == true)
    #expect(fault { $0.after = [MissionID("tour")!] }?.contains("waits for no mission") == true)
    for entry in ["", "main.html", "../index.html", "index.html/", "/index.html", "INDEX.HTML"] {
      #expect(fault { $0.bundle?.entry = entry }?.contains("entry") == true, "\(entry)")
    }
    #expect(fault { $0.items[0].url = "https://e.example/a" }?.contains("no url") == true)
    #expect(
      fault {
        $0.items[0].size = 300 << 20
        $0.items[0].chunks = Array(repeating: MissionManifestTests.hash(1), count: 75)
      }?.contains("bytes") == true)
    #expect(
      fault { manifest in
        let service = BundleService("data")!
        manifest.bundle?.services = [service, service]
      }?.contains("twice") == true)
    #expect(
      fault { manifest in
        manifest.items += (0..<10_000).map { MissionManifestTests.item("f/\($0)") }
      }?.contains("10000 files") == true)
    // A device checks the same when it reads the document.
    let text = String(decoding: Self.manifest(Self.declaration).encoded(), as: UTF8.self)
    let wrong = text.replacing(#""entry":"index.html""#, with: #""entry":"other.html""#)
    #expect(throws: MalformedMessage.self) { try MissionManifest(decoding: Array(wrong.utf8)) }
    // A later version's members are passed over there.
    let later = text.replacing(#""entry":"#, with: #""theme":{"dark":[true]},"entry":"#)
    #expect(try MissionManifest(decoding: Array(later.utf8)) == Self.manifest(Self.declaration))
  }

  // MARK: The catalogue

  @Test("a record has the state of a bundle, in columns and in JSON")
  func record() throws {
    var record = MissionRecord(
      of: Self.manifest(Self.declaration), hash: MissionManifestTests.hash(9), manifestSize: 77,
      signature: [1], signer: [2], publishedAt: 5)
    #expect(record.bundle == BundleListing(minShell: BundleVersion("1")))
    record.bundle?.share = try #require(BundleShare(percent: "2.5"))
    record.bundle?.withdrawnAt = 9
    let columns = record.columns
    #expect(columns == columns.sortedByBytes() && record.bundleID == Self.board)
    #expect(
      MissionRecord(id: record.id.value) { name in columns.first { $0.name == name }?.value }
        == record)
    #expect(try MissionRecord(decoding: record.encoded()) == record)
    // An ordinary mission has none of these columns.
    var plain = record
    plain.bundle = nil
    #expect(plain.columns.count == 12 && columns.count == 16)
  }

  @Test("columns that contradict a bundle's name or its ranges offer it to nobody")
  func hostileColumns() throws {
    let record = MissionRecord(
      of: Self.manifest(Self.declaration), hash: MissionManifestTests.hash(9), manifestSize: 77,
      signature: [1], signer: [2], publishedAt: 5)
    func read(_ id: String, _ name: Name, _ value: Value) -> MissionRecord? {
      MissionRecord(id: id) { wanted in
        wanted == name ? value : record.columns.first { $0.name == wanted }?.value
      }
    }
    for value in [.integer(-1), .integer(10_001), .text("100"), .null] as [Value] {
      #expect(read(record.id.value, "rollout", value)?.bundle?.share == BundleShare.none)
    }
    #expect(read("tour", "rollout", .integer(10_000))?.bundle == nil)
    #expect(read(record.id.value, "kind", .text("other"))?.bundle == nil)
    #expect(read(record.id.value, "withdrawnAt", .integer(-7))?.bundle?.isWithdrawn == true)
  }

  // MARK: Messages

  @Test("requests and answers about bundles are read and written back byte for byte")
  func messages() throws {
    let reports = try ProjectFiles.fixture("bundles/reports")
    let request = try BundleReportsRequest(decoding: reports)
    #expect(request.encoded() == reports && request.reports.count == 2)
    #expect(request.reports[0].outcome == .success && request.reports[1].bundle == Self.board)
    #expect(request.reports.map(\.number) == [1_760_000_008_000, 1_760_000_009_000])
    let change = try ProjectFiles.fixture("bundles/change")
    #expect(
      try BundleChangeRequest(decoding: change)
        == BundleChangeRequest(
          version: Self.board.version, change: .share(BundleShare(percent: "25")!)))
    #expect(try BundleChangeRequest(decoding: change).encoded() == change)
    let withdrawal = BundleChangeRequest(version: Self.board.version, change: .withdrawal)
    #expect(try BundleChangeRequest(decoding: withdrawal.encoded()) == withdrawal)
    let list = try ProjectFiles.fixture("bundles/list")
    let page = try BundlePage(decoding: list)
    let entries = page.entries
    #expect(page.encoded() == list && page.next == nil)
    #expect(entries.map(\.id).last == Self.board)
    let place = MissionID("bundle.board.1.2")
    #expect(try BundlePage(decoding: BundlePage([], next: place).encoded()).next == place)
    #expect(try BundleEntry(decoding: entries[0].encoded()) == entries[0])
    let overview = try ProjectFiles.fixture("bundles/overview")
    let shown = try BundleOverview(decoding: overview)
    #expect(shown.encoded() == overview && shown.versions[0].tally.failures == 1)
  }

  @Test(
    "a report that is not whole, too long, repeated or unsafe to show is refused",
    arguments: [
      #"{"bundle":"board","version":"1","number":1,"outcome":"success"}"#,
      #"{"bundle":"board","version":"1","manifest":"x","number":1,"outcome":"success"}"#,
      #"{"bundle":"../x","version":"1","manifest":"H","number":1,"outcome":"success"}"#,
      #"{"bundle":"board","version":"1..2","manifest":"H","number":1,"outcome":"success"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":1,"outcome":"maybe"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":1}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":1,"outcome":"failure","reason":"a\u0000b"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":1,"outcome":"failure","reason":"\u001b[2J"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":1,"outcome":"failure","reason":"LONG"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","outcome":"success"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":0,"outcome":"success"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":9007199254740992,"outcome":"success"}"#,
      #"{"bundle":"board","version":"1","manifest":"H","number":"1","outcome":"success"}"#,
    ])
  func badReport(json: String) throws {
    let report = json.replacing("\"H\"", with: "\"\(MissionManifestTests.hash(9))\"")
      .replacing("LONG", with: String(repeating: "é", count: 1_001))
    let device = "0199c306-6400-7000-800a-11ce00000001"
    let body = #"{"device":"\#(device)","reports":[\#(report)]}"#
    #expect(throws: MalformedMessage.self) {
      try BundleReportsRequest(decoding: Array(body.utf8))
    }
  }

  @Test("a request has 1 to 100 reports of one device, each version once")
  func reportBounds() throws {
    let device = DeviceID(UniqueID(high: 1, low: 2))
    func request(_ count: Int, of device: DeviceID = device) -> BundleReportsRequest {
      BundleReportsRequest(
        device: device,
        reports: (0..<count).map {
          BundleReport(
            BundleID(Self.board.name, BundleVersion($0)!), MissionManifestTests.hash(1), .success,
            number: BundleReport.numberMax)
        })
    }
    #expect(try BundleReportsRequest(decoding: request(100).encoded()) == request(100))
    var repeated = request(1)
    repeated.reports += repeated.reports
    for wrong in [request(0), request(101), request(1, of: .server), repeated] {
      #expect(throws: MalformedMessage.self) {
        try BundleReportsRequest(decoding: wrong.encoded())
      }
    }
  }

  @Test("any text becomes a reason that the server accepts")
  func bounding() throws {
    for text in ["", "ok", "a\u{0}b\nc\u{1B}[2J", String(repeating: "🙂", count: 5_000)] {
      let reason = BundleReason(bounding: text)
      #expect(BundleReason(checking: reason.text) == reason)
      #expect(reason.text.unicodeScalars.count == min(1_000, text.unicodeScalars.count))
    }
  }

  @Test(
    "a change is one change",
    arguments: [
      "{}", #"{"version":"1"}"#, #"{"rollout":5}"#, #"{"version":"1","withdrawn":false}"#,
      #"{"version":"1","rollout":10001}"#, #"{"version":"1","rollout":-1}"#,
      #"{"version":"1","rollout":"5"}"#, #"{"version":"1","rollout":5,"withdrawn":true}"#,
      #"{"version":"1","rollout":5,"force":true}"#,
    ])
  func badChange(json: String) {
    #expect(throws: MalformedMessage.self) { try BundleChangeRequest(decoding: Array(json.utf8)) }
  }
}
