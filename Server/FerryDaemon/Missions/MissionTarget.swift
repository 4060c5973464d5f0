import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import FerrySyncServer
import Foundation

/// The target of the mission commands: the store, or a server.
protocol MissionTarget: Sendable {
  /// The space's name.
  var name: SpaceName { get }

  /// Returns a page of the missions, and the place at which the list continues.
  func list(after place: MissionID?) async throws -> MissionPage

  /// Returns the catalogue's record and the manifest's document.
  func show(_ id: MissionID) async throws -> (MissionRecord, [UInt8])

  /// Returns the way to read the files of a new mission.
  ///
  /// - Parameter last: The mission's last version, or another with much of the same content.
  func intake(after last: MissionID?) async throws -> BlobIntake

  /// Returns the paths of the items whose content is missing or damaged.
  func damaged(_ manifest: MissionManifest) async throws -> [String]

  /// - Parameters:
  ///   - manifest: The version is 0 for the next one.
  ///   - isNewKey: Whether it may be signed with another key than the space's other missions.
  ///   - share: The devices to get a bundle's version, if it is published for the first time.
  ///   - bar: Shows the stored bytes.
  func publish(
    _ manifest: MissionManifest, _ files: [BlobSource], isNewKey: Bool, share: BundleShare,
    bar: ProgressBar
  ) async throws -> MissionRecord

  func retract(_ id: MissionID) async throws

  /// Returns a page of the published versions of all bundles, and the place at which the list
  /// continues.
  func bundles(after place: MissionID?) async throws -> ([BundleEntry], next: MissionID?)

  /// Returns a bundle with the reports about all versions.
  func bundle(_ name: BundleName) async throws -> BundleOverview

  func change(_ bundle: BundleID, _ change: BundleChange) async throws -> BundleEntry
}

/// The place of a list of missions, which ends even with a hostile server (SPEC.md §24): the places
/// ascend, and the pages are limited.
struct MissionListProgress {
  /// The most pages. A space has fewer: each contains missions up to a number or to some bytes.
  static let pagesMax = 1_000

  /// The last name of the pages so far; `nil` before the first page, and after the last.
  private(set) var place: MissionID?
  private var pages = 0

  /// Advances to the place at which the next page continues; `nil` after the last page.
  mutating func advance(to next: MissionID?) throws(CommandFailure) {
    pages += 1
    if let next, pages >= Self.pagesMax || place.map({ next <= $0 }) ?? false {
      throw CommandFailure(
        "the server's list does not end", why: "page \(pages.grouped) continues at \(next)",
        next: "check --server: is it a Ferry server with support for missions?",
        code: "malformed_answer")
    }
    place = next
  }
}

extension MissionTarget {
  /// Passes all missions to `body`, a page at a time.
  func forEachPage(_ body: ([MissionRecord]) throws -> Void) async throws {
    var progress = MissionListProgress()
    repeat {
      let page = try await list(after: progress.place)
      try body(page.records)
      try progress.advance(to: page.next)
    } while progress.place != nil
  }

  /// Passes the published versions of all bundles to `body`, a page at a time.
  func forEachBundlePage(_ body: ([BundleEntry]) throws -> Void) async throws {
    var progress = MissionListProgress()
    repeat {
      let (page, next) = try await bundles(after: progress.place)
      try body(page)
      try progress.advance(to: next)
    } while progress.place != nil
  }

  /// Returns all missions.
  func list() async throws -> [MissionRecord] {
    var found: [MissionRecord] = []
    try await forEachPage { found += $0 }
    return found
  }

  /// Returns the published versions of all bundles, by bundle and version.
  func bundles() async throws -> [BundleEntry] {
    var found: [BundleEntry] = []
    try await forEachBundlePage { found += $0 }
    return found.sorted { $0.id < $1.id }
  }

  /// Publishes an ordinary mission.
  func publish(
    _ manifest: MissionManifest, _ files: [BlobSource], isNewKey: Bool, bar: ProgressBar
  ) async throws -> MissionRecord {
    try await publish(manifest, files, isNewKey: isNewKey, share: .all, bar: bar)
  }
}

enum MissionTargets {
  /// Runs `body` on the target of the command line.
  static func with<Answer>(
    _ arguments: ParsedArguments, _ body: (any MissionTarget) async throws -> Answer
  ) async throws -> Answer {
    let name = try SpaceCommands.name(try arguments.string("space"))
    if let url = arguments.stringIfPresent("server") {
      return try await body(
        RemoteMissions(
          url, token: TokenOptions.token(arguments), space: name,
          authorities: arguments.stringIfPresent("ca")))
    }
    return try await LocalMissions.withContent(arguments) { store, content in
      guard let space = try await store.space(named: name) else {
        throw CommandFailure(
          "there is no space \(name)", why: "no space has this name",
          next:
            "check --data or --database, see `ferryd space list`, or create it with `ferryd space "
            + "create \(name)`",
          code: "unknown_space")
      }
      return try await body(LocalMissions(store: store, content: content, space: space))
    }
  }

  static func unknown(_ id: MissionID, _ space: SpaceName) -> CommandFailure {
    CommandFailure(
      "there is no mission \(id)", why: "space \(space) has no published mission of this name",
      next: "see `ferryd mission list --space \(space)`", code: "unknown_mission")
  }
}

/// Missions of the store in the command line.
struct LocalMissions: MissionTarget {
  let store: any SyncStore
  let content: ContentPlace
  let space: SpaceSummary

  var name: SpaceName { space.name }

  /// Opens the store, and finds the directory of the content.
  static func withContent<Answer>(
    _ arguments: ParsedArguments, _ body: (any SyncStore, ContentPlace) async throws -> Answer
  ) async throws -> Answer {
    try await StoreOptions.withStore(arguments) { store, location in
      guard let path = try ContentOptions.directory(arguments) else {
        throw CommandFailure(
          "there is no directory for missions' content",
          why: "--database needs --blobs",
          next: "add --blobs DIR with the directory of `ferryd serve`, or use --server URL",
          status: .usage, code: "no_blob_directory")
      }
      return try await body(
        store,
        ContentPlace(
          store: store, path: path, isNamed: arguments.stringIfPresent("blobs") != nil,
          keyFile: arguments.stringIfPresent("mission-key"),
          remote: try ContentOptions.client(arguments)))
    }
  }

  func list(after place: MissionID?) async throws -> MissionPage {
    try await store.missions(in: space.id, after: place, limit: MissionPage.countMax)
  }

  func show(_ id: MissionID) async throws -> (MissionRecord, [UInt8]) {
    guard let record = try await store.mission(id, in: space.id)?.record else {
      throw MissionTargets.unknown(id, space.name)
    }
    let desk = try content.desk()
    let document = try await desk.content { (blobs) async throws(BlobError) in
      try await blobs.content(
        of: record.manifest, limit: MissionLimits.standard.manifestBytes)
    }
    guard let document else {
      throw CommandFailure(
        "the manifest of mission \(id) is missing",
        why: "\(desk.blobs.place) has no content \(record.manifest)",
        next: "check --blobs, or publish the mission again", code: "damaged_manifest")
    }
    return (record, document)
  }

  func intake(after last: MissionID?) async throws -> BlobIntake {
    guard content.remote == nil else { return BlobIntake() }
    let desk = try content.desk(createsIfMissing: true)
    var sizes: Set<Int64> = []
    // A damaged document only costs a second copy.
    if let last, let (_, document) = try? await show(last),
      let manifest = try? MissionManifest(decoding: document)
    {
      sizes = Set(manifest.items.map(\.size))
    }
    let local = desk.blobs.local
    return BlobIntake(
      into: local.directory, under: try await local.acquire(), knownSizes: sizes)
  }

  func damaged(_ manifest: MissionManifest) async throws -> [String] {
    let bar = ProgressBar("verify", unit: .bytes, total: manifest.size)
    defer { bar.finish() }
    let desk = try content.desk()
    var damaged: [String] = []
    for item in manifest.items where item.isHosted {
      let isIntact = try await desk.content { (blobs) async throws(BlobError) in
        try await blobs.isIntact(item.hash) { bar.advance(by: Int64($0)) }
      }
      if isIntact != true { damaged.append(item.path) }
    }
    return damaged
  }

  func publish(
    _ manifest: MissionManifest, _ files: [BlobSource], isNewKey: Bool, share: BundleShare,
    bar: ProgressBar
  ) async throws -> MissionRecord {
    let desk = try content.desk(createsIfMissing: true)
    // Existing content must not be collected before the mission names it.
    let hold = try await desk.acquireContent()
    defer { withExtendedLifetime(hold) {} }
    try await desk.content { (blobs) async throws(BlobError) in
      try await blobs.store(files: files) { bar.advance(by: Int64($0)) }
    }
    return try await desk.publish(
      manifest, in: space, ownContentOnly: false, isNewKey: isNewKey, share: share,
      by: CommandMark.principal, under: hold)
  }

  func retract(_ id: MissionID) async throws {
    let mark = CommandMark.now
    guard try await store.retractMission(id, in: space.id, now: mark.at, by: mark) else {
      throw MissionTargets.unknown(id, space.name)
    }
  }
}

extension LocalMissions {
  /// Displayed failures of each version.
  private static let failuresShown = 20

  func bundles(after place: MissionID?) async throws -> ([BundleEntry], next: MissionID?) {
    try await BundleCatalogue(store).bundleEntries(
      in: space.id, after: place, limit: MissionPage.countMax)
  }

  func bundle(_ name: BundleName) async throws -> BundleOverview {
    let found = try await BundleCatalogue(store).bundleOverview(
      of: name, in: space.id, latest: Self.failuresShown)
    guard let found else { throw BundleCommands.unknown(name, in: space.name) }
    return found
  }

  func change(_ bundle: BundleID, _ change: BundleChange) async throws -> BundleEntry {
    let mark = CommandMark.now
    let record = try await store.changeBundle(
      bundle, change, in: space.id, now: mark.at, by: mark
    ).get()
    guard let entry = BundleEntry(record) else {
      throw Problem(.internalError, "the version's record cannot be read")
    }
    return entry
  }
}

/// The place of missions' content. A call opens it only when needed, and creates it only to add
/// content: other calls would work on an empty directory by mistake.
struct ContentPlace: Sendable {
  let store: any SyncStore
  let path: String
  /// True if the command line or the environment names it.
  let isNamed: Bool
  let keyFile: String?
  /// The store of the content elsewhere; `nil` if the directory has the content.
  let remote: ObjectStoreClient?

  /// True if there is one.
  var exists: Bool { remote != nil || FileManager.default.fileExists(atPath: path) }

  /// - Parameter createsIfMissing: Whether it is made if it is absent.
  func desk(createsIfMissing: Bool = false) throws -> MissionService {
    guard createsIfMissing || exists else {
      throw CommandFailure(
        "there is no directory for missions' content at \(path)",
        why: isNamed ? "--blobs (FERRY_BLOBS) names it" : "no mission was published here yet",
        next: "check --data and --blobs: `ferryd serve` uses the same directories",
        code: "no_blob_directory")
    }
    if let remote {
      return MissionService(
        store: store, blobs: try ContentOptions.store(remote, beside: path), keyFile: keyFile,
        clock: .system)
    }
    return try MissionService(store: store, directory: path, keyFile: keyFile, clock: .system)
  }
}
