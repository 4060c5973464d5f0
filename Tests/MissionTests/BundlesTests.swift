import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

/// Bundles on a device, over real files and rows.
@Suite("The bundles of a device", .hangLimit)
struct BundlesTests {
  let shelf = Shelf()
  let board = made(BundleName("board"))

  /// Collects reports like a server; refuses a request if it names a version twice.
  final class Reports: Sendable {
    private let state = Mutex((sent: [BundleReport](), fails: false))
    var all: [BundleReport] { state.withLock { $0.sent } }
    func fail(_ fails: Bool) { state.withLock { $0.fails = fails } }

    func take(_ reports: [BundleReport]) throws {
      try state.withLock { state in
        if state.fails { throw MissionError(.offline, "no network") }
        guard Set(reports.map(\.bundle)).count == reports.count else {
          throw MissionError(.refused, "a version is named twice")
        }
        state.sent += reports
      }
    }
  }

  func version(_ text: String) -> BundleVersion { made(BundleVersion(text)) }

  /// Publishes a version whose page names it.
  func publish(
    _ text: String, page: [UInt8]? = nil, share: BundleShare = .all, minShell: String? = nil,
    isWithdrawn: Bool = false, change: ((inout MissionManifest) -> Void)? = nil
  ) {
    let id = BundleID(board, version(text))
    let page = page ?? Array("<h1>\(text)</h1>".utf8)
    var manifest = MissionManifest(
      space: spaceName, id: id.mission, version: 1,
      items: [
        MissionItem(
          path: "index.html", mediaType: "text/html", size: Int64(page.count), hash: hash(page))
      ],
      bundle: BundleDeclaration(
        id, services: [made(BundleService("data"))],
        minShell: minShell.flatMap { BundleVersion($0) }))
    change?(&manifest)
    var record = Publication(manifest).record
    record.bundle?.share = share
    record.bundle?.withdrawnAt = isWithdrawn ? 1 : nil
    shelf.publish(Publication(Publication(manifest), record: record, contents: page))
  }

  /// - Parameter look: Called each time the bundles look for the version to take.
  func bundles(
    on device: Device, shell: String = "1", reports: Reports = Reports(),
    look: @escaping @Sendable () async -> Void = {}
  ) async throws -> Bundles {
    Bundles(
      missions: device.manager,
      store: try await BundleStore.open(device.folder.path + "/bundles.db"),
      options: BundleOptions(shell: version(shell)),
      in: BundleSurroundings(
        device: { () async throws(MissionError) in
          await look()
          return DeviceID(UniqueID(high: 1, low: 2))
        },
        report: { try reports.take($0) }))
  }

  func page(_ bundle: ActiveBundle?) async throws -> String? {
    guard let bundle else { return nil }
    return String(decoding: try await bundle.open(bundle.entry).readAll(), as: UTF8.self)
  }

  @Test("a version is fetched, used on trial, confirmed, and replaced between two page loads")
  func life() async throws {
    publish("1")
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    #expect(try await bundles.active(board) == nil)
    #expect(try await bundles.update(board))
    let first = try #require(try await bundles.active(board))
    #expect(first.version == version("1") && !first.isConfirmed && first.paths == ["index.html"])
    #expect(first.services.map(\.name) == ["data"])
    #expect(try await bundles.update(board) == false)
    try await bundles.confirm(first)
    publish("2")
    #expect(try await bundles.fetch(board) == version("2"))
    // Fetching changes nothing for pages.
    #expect(try await bundles.active(board)?.version == version("1"))
    try await bundles.activate(board)
    #expect(try await page(try await bundles.active(board)) == "<h1>2</h1>")
    // A page of the former version continues with the former files.
    #expect(try await page(first) == "<h1>1</h1>")
    let file = try await first.open("index.html")
    #expect(file.mediaType == "text/html" && file.size == 10)
    #expect(try await file.read(from: 4, count: 2) == Array("1<".utf8))
    for path in ["", "/index.html", "INDEX.HTML", "../index.html", "index.html\u{301}", "x"] {
      await #expect(throws: BundleError.self) { try await first.open(path) }
    }
  }

  @Test("a version that fails is left, reported, and never activated again by itself")
  func failure() async throws {
    publish("1")
    publish("2", share: .none)
    let device = try await Device(shelf)
    let reports = Reports()
    let bundles = try await bundles(on: device, reports: reports)
    try await bundles.update(board)
    try await bundles.confirm(try #require(try await bundles.active(board)))
    publish("2")
    try await bundles.update(board)
    let second = try #require(try await bundles.active(board))
    let long = String(repeating: "no answer\u{0} ", count: 500)
    #expect(try await bundles.fail(second, reason: long)?.version == version("1"))
    #expect(try await bundles.update(board) == false)
    #expect(try await bundles.activate(board).version == version("1"))
    reports.fail(true)
    await bundles.synced()
    #expect(reports.all.isEmpty)
    reports.fail(false)
    await bundles.synced()
    await bundles.synced()
    #expect(reports.all.map(\.bundle.version) == [version("1"), version("2")])
    guard case .failure(let reason) = reports.all[1].outcome else {
      Issue.record("a success")
      return
    }
    #expect(reason.text.unicodeScalars.count == 1_000 && !reason.text.contains("\u{0}"))
    let shown = try await bundles.versions(of: board)
    #expect(shown.map(\.failure) == [nil, reason] && shown.map(\.isActive) == [true, false])
    // A page of the failed version cannot leave the good one.
    try await bundles.fail(second, reason: "again")
    #expect(try await bundles.active(board)?.version == version("1"))
    // Another process knows all of this.
    let other = try await self.bundles(on: try await device.another())
    #expect(try await other.update(board) == false)
    #expect(try await other.activate(board, version: version("2")).version == version("2"))
  }

  @Test("an update takes no version whose rollout has ended while it was fetched")
  func endedRollout() async throws {
    publish("1")
    let device = try await Device(shelf)
    let looks = Mutex(0)
    let bundles = try await bundles(on: device) { [self] in
      // The second look is before the fetch.
      let isSecond = looks.withLock { looks in
        looks += 1
        return looks == 2
      }
      if isSecond { publish("1", share: .none) }
    }
    #expect(try await bundles.update(board) == false)
    #expect(try await bundles.active(board) == nil)
    publish("1")
    #expect(try await bundles.update(board))
  }

  @Test("an update brings back no version that another program left or replaced meanwhile")
  func twoUpdates() async throws {
    publish("1")
    let device = try await Device(shelf)
    let other = try await bundles(on: device)
    try await other.update(board)
    try await other.confirm(try #require(try await other.active(board)))
    let work = Mutex<(@Sendable () async throws -> Void)?>(nil)
    let looks = Mutex(0)
    let slow = try await bundles(on: device) {
      // The third look is before the activation.
      let isLast = looks.withLock { looks in
        looks += 1
        return looks % 3 == 0
      }
      if isLast { try? await work.withLock { $0 }?() }
    }
    publish("2")
    work.withLock {
      $0 = { [board] in
        try await other.update(board)
        guard let page = try await other.active(board) else { return }
        try await other.fail(page, reason: "it does not work")
      }
    }
    #expect(try await slow.update(board) == false)
    #expect(try await other.active(board)?.version == version("1"))
    #expect(try await other.update(board) == false)
    publish("3")
    work.withLock {
      $0 = { [board] in
        publish("4")
        try await other.update(board)
      }
    }
    #expect(try await slow.update(board))
    #expect(try await other.active(board)?.version == version("4"))
    #expect(looks.withLock { $0 } == 6)
  }

  @Test("a withdrawn version is left at the next sync, and not offered any more")
  func withdrawal() async throws {
    publish("1")
    let device = try await Device(shelf)
    let reports = Reports()
    let bundles = try await bundles(on: device, reports: reports)
    try await bundles.update(board)
    try await bundles.confirm(try #require(try await bundles.active(board)))
    publish("2")
    try await bundles.update(board)
    try await bundles.confirm(try #require(try await bundles.active(board)))
    await bundles.synced()
    publish("2", isWithdrawn: true)
    #expect(try await bundles.active(board)?.version == version("2"))
    await bundles.synced()
    #expect(try await bundles.active(board)?.version == version("1"))
    #expect(reports.all.map(\.outcome) == [.success, .success])
    for call in [bundles.fetch, { try await bundles.activate($0, version: $1).version }]
      as [(BundleName, BundleVersion?) async throws -> BundleVersion]
    {
      await #expect(throws: BundleError.self) { try await call(board, version("2")) }
    }
    // The last one leaves nothing.
    publish("1", isWithdrawn: true)
    await bundles.synced()
    #expect(try await bundles.active(board) == nil)
    // A retracted version stays in use, like every mission.
    publish("3")
    try await bundles.update(board)
    shelf.retract("bundle.board.3")
    await bundles.synced()
    #expect(try await page(try await bundles.active(board)) == "<h1>3</h1>")
  }

  @Test("the reason names the shell, the failure or the rollout")
  func reasons() async throws {
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    func reason() async -> BundleError.Kind? {
      do {
        try await bundles.fetch(board)
        return nil
      } catch {
        return error.kind
      }
    }
    #expect(await reason() == .notFound)
    publish("2", share: .none)
    #expect(await reason() == .notOffered)
    publish("3", minShell: "7")
    #expect(await reason() == .shellTooOld)
    await #expect { try await bundles.activate(board) } throws: { error in
      (error as? BundleError)?.kind == .shellTooOld
    }
    publish("3", minShell: "7", isWithdrawn: true)
    #expect(await reason() == .notOffered)
    publish("1")
    #expect(await reason() == nil)
    let active = try await bundles.activate(board)
    try await bundles.fail(active, reason: "blank")
    #expect(await reason() == .failedHere)
  }

  @Test("the signed manifest decides about the shell, whatever the catalogue says")
  func hostileCatalogue() async throws {
    publish("1", minShell: "9")
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    let id = BundleID(board, version("1"))
    var record = try #require(try await shelf.missions().first)
    record.bundle?.minShell = nil
    shelf.replace(record)
    #expect(try await bundles.fetch(board) == version("1"))
    do {
      try await bundles.activate(board)
      Issue.record("it is in use")
    } catch {
      #expect(error.kind == .shellTooOld)
    }
    // An ordinary mission under a bundle's name is none.
    let plain = Publication(id.mission.value, [("index.html", content(1, 10))])
    record = plain.record
    record.bundle = BundleListing()
    shelf.publish(Publication(plain, record: record))
    try await bundles.fetch(board)
    await #expect(throws: BundleError.self) { try await bundles.activate(board) }
    #expect(try await bundles.active(board) == nil)
  }

  @Test("a manifest that no publisher can make leaves nothing on the device")
  func hostileManifests() async throws {
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    for change in [
      { $0.bundle?.entry = "../../secret" }, { $0.bundle?.entry = "main.html" },
      { $0.items[0].path = "../index.html" }, { $0.items[0].path = "/etc/passwd" },
      { $0.bundle = BundleDeclaration(BundleID(board, version("7"))) },
      { $0.items[0].url = "http://127.0.0.1:1/x" },
    ] as [(inout MissionManifest) -> Void] {
      publish("1", change: change)
      // The catalogue still calls it a bundle.
      var record = try #require(try await shelf.missions().first)
      record.bundle = BundleListing()
      shelf.replace(record)
      await #expect(throws: BundleError.self) { try await bundles.fetch(board) }
      await #expect(throws: BundleError.self) { try await bundles.activate(board) }
    }
    #expect(device.everything().isEmpty)
  }
}

extension Publication {
  /// Creates a publication with the content of one file.
  init(_ other: Publication, record: MissionRecord, contents page: [UInt8]) {
    (manifest, document) = (other.manifest, other.document)
    self.record = record
    contents = other.contents.merging([hash(page): page]) { $1 }
  }
}
