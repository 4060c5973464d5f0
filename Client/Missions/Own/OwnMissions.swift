import FerryPlatform
import FerryProtocol
import Foundation

/// Missions composed by the app, of files of any server and of requests' results.
///
/// Like a published mission, each one is here whole or not at all. All items are fetched first.
/// Then the device makes a manifest with their hashes, and a ``MissionManager`` puts all of it in
/// use at once. One process at a time has the folder open.
///
/// ```swift
/// let missions = try await OwnMissions.open("/data/courses")
/// try await missions.add(course)
/// try await missions.waitUntilIdle("course-7")
/// let model = try await missions.payload(of: "course-7", as: Course.self)
/// print(try await missions.path("course-7"))
/// ```
public actor OwnMissions: Changing {
  /// The folder of the missions.
  public nonisolated let folder: String
  /// The manager of complete missions.
  package nonisolated let manager: MissionManager
  nonisolated let queue: DownloadQueue
  nonisolated let drafts: DraftStore
  nonisolated let executor: any WorkExecutor
  nonisolated let surroundings: MissionSurroundings
  private nonisolated let files: any MissionFiles
  private nonisolated let system: any FileCalls
  nonisolated let hub = EventHub()

  /// Drafts that are not done, failed or cancelled, and those that ended, by number.
  var known: [Int64: Draft] = [:]
  var runs: [Int64: Task<Void, Never>] = [:]
  /// The meters of missions under way, by number.
  var meters: [Int64: DraftMeter] = [:]
  /// The downloads of items known to be here: of an earlier process, or reported.
  private var told: Set<DownloadID> = []
  /// The last reported states.
  var reported: [MissionID: MissionState] = [:]
  /// The drafts with possibly changed states since the last report.
  private var noted: Set<Int64> = []
  private var isReporting = false
  var isClosed = false
  var waiters = Waiters()

  /// Opens the missions in a folder, and creates an absent one. Unfinished missions continue.
  ///
  /// - Parameter makeParts: makes the parts in this folder.
  /// - Throws: ``MissionError/Kind/busy`` if another process has the folder open;
  ///   ``MissionError/Kind/wrongKey`` if the content has another key, or none.
  package static func open(
    _ folder: String, options: MissionOptions,
    makeParts: @Sendable (_ root: String) async throws(MissionError) -> OwnParts
  ) async throws(MissionError) -> OwnMissions {
    let folder = URL(fileURLWithPath: folder).standardizedFileURL.path
    let executor = ThreadExecutor(name: "own-missions")
    try await executor.perform(MissionError.self) {
      try NamedFile.makeFolder(folder, with: "staged")
    }
    let parts = try await makeParts(folder)
    let queue = try await openQueue(folder, options, parts)
    do throws(MissionError) {
      let drafts = try await DraftStore.open("\(folder)/content.db", on: executor)
      try await checkKey(of: parts.files, drafts)
      let manager = try await MissionManager.open(
        parts, from: .app(requests(of: drafts)), options: options, in: .system)
      let missions = OwnMissions(folder, manager, queue, drafts, executor, parts)
      try await missions.restore()
      return missions
    } catch {
      await queue.close()
      throw error
    }
  }

  private static func openQueue(
    _ folder: String, _ options: MissionOptions, _ parts: OwnParts
  ) async throws(MissionError) -> DownloadQueue {
    var own = DownloadQueueOptions()
    own.pauses = options.pauses
    own.silence = options.silence
    own.startsAtOnce = false
    do throws(DownloadError) {
      return try await DownloadQueue.open(
        "\(folder)/content.db", options: own, downloader: parts.downloader, in: .system,
        rules: rules(options, parts.files))
    } catch {
      throw MissionError(error, of: nil)
    }
  }

  /// The limits of published missions hold for composed ones, too: for their items' downloads.
  private static func rules(_ options: MissionOptions, _ files: any MissionFiles) -> DownloadRules {
    let (missions, items) = (max(1, options.missionsAtOnce), max(1, options.itemsAtOnce))
    let (all, isHuge) = missions.multipliedReportingOverflow(by: items)
    var rules = DownloadRules()
    rules.limits = JobLimits(
      atOnce: isHuge ? .max : all, groupsAtOnce: missions, atOnceInGroup: items)
    rules.group = { Draft.number(of: $0) }
    rules.seal = files.seal
    rules.partSize = MissionManifest.chunkSizeDefault
    rules.spaceMargin = options.spaceMargin
    rules.freeBytes = { () async throws(DownloadError) in
      do throws(MissionError) { return try await files.freeBytes() } catch {
        throw DownloadError(converting: error)
      }
    }
    return rules
  }

  /// Throws if the key is not that of unfinished missions. The manager checks it for complete ones.
  private static func checkKey(
    of files: any MissionFiles, _ drafts: DraftStore
  ) async throws(MissionError) {
    for draft in try await drafts.drafts() where draft.isOpen {
      guard files.accepts(sealProof: draft.seal) else {
        throw MissionError(
          .wrongKey,
          files.isSealed
            ? "the key does not fit the content of mission \(draft.id)"
            : "the content of mission \(draft.id) is encrypted; give its key")
      }
    }
  }

  /// Returns the requests behind items, to fetch lost content again.
  private static func requests(
    of drafts: DraftStore
  ) -> @Sendable (MissionManifest, String) async throws(MissionError) -> ContentRequest {
    { (manifest, path) async throws(MissionError) in
      let draft = try await drafts.drafts().first { $0.number == manifest.version }
      guard let item = draft?.document.items.first(where: { $0.path == path }) else {
        throw MissionError(.notFound, item: path, "the item's source is not known any more")
      }
      return item.request
    }
  }

  private init(
    _ folder: String, _ manager: MissionManager, _ queue: DownloadQueue, _ drafts: DraftStore,
    _ executor: any WorkExecutor, _ parts: OwnParts
  ) {
    self.folder = folder
    self.manager = manager
    self.queue = queue
    self.drafts = drafts
    self.executor = executor
    (files, system) = (parts.files, parts.system)
    surroundings = .system
  }

  // MARK: Composing

  /// Adds a mission, or the next version of one, and begins it. It is stored when this returns. A
  /// complete version stays in use until the next one is complete; an unfinished one is cancelled.
  ///
  /// - Throws: ``MissionError/Kind/badManifest`` if two items have one path, a path leaves the
  ///   folder, an address is malformed, or items wait for each other.
  public func add(_ mission: OwnMission) async throws(MissionError) {
    try checkOpen()
    let id = try Self.name(mission.id)
    let document = Draft.Document(
      title: mission.title, summary: mission.summary, priority: Int64(mission.priority),
      items: mission.items)
    if let fault = DraftRule.fault(in: document, of: id) {
      throw MissionError(.badManifest, fault)
    }
    let draft = try await drafts.add(
      Draft(
        number: 0, id: id, document: document, payload: try mission.payload.get(),
        seal: files.sealProof(), at: surroundings.wallClock()))
    let former = known.values.filter { $0.id == id && $0.isOpen }
    known[draft.number] = draft
    for other in former { await stop(other, Self.replaced) }
    do throws(MissionError) { try await begin(draft) } catch {
      await end(draft, .failed, error)
      throw error
    }
  }

  private static let replaced = MissionError(.cancelled, "a later version replaced it")

  /// Adds missing downloads of a draft, and follows them.
  private func begin(_ draft: Draft) async throws(MissionError) {
    if await queue.download(draft.downloadID(0)) == nil {
      let folder = folder
      try await executor.perform(MissionError.self) {
        try NamedFile.makeFolder("\(folder)/staged", with: "\(draft.number)")
      }
      do throws(DownloadError) { try await queue.add(downloads(of: draft)) } catch {
        throw MissionError(error, of: nil)
      }
    }
    run(draft.number)
  }

  private func downloads(of draft: Draft) -> [Download] {
    var places: [String: Int] = [:]
    for (place, item) in draft.document.items.enumerated() { places[item.path] = place }
    return draft.document.items.enumerated().map { place, item in
      Download(
        item.request, to: "\(stagedFolder(draft.number))/\(place)", id: draft.downloadID(place),
        size: item.size, hash: item.hash, sizeMax: item.sizeMax,
        priority: Int(draft.document.priority),
        after: item.after.compactMap { places[$0].map(draft.downloadID) })
    }
  }

  func stagedFolder(_ number: Int64) -> String { "\(folder)/staged/\(number)" }

  func stagedFile(_ draft: Draft, _ place: Int) -> StagedFile {
    StagedFile(
      path: "\(stagedFolder(draft.number))/\(place)",
      seal: files.seal, system: system)
  }

  private func restore() async throws(MissionError) {
    let all = try await drafts.drafts()
    var newest: [MissionID: Int64] = [:]
    for draft in all where draft.isOpen { newest[draft.id] = draft.number }
    for draft in all { known[draft.number] = draft }
    let names = Set(
      all.filter(\.isOpen).flatMap { draft in
        draft.document.items.indices.map { draft.downloadID($0) }
      })
    do throws(DownloadError) {
      for download in await queue.downloads where !names.contains(download.id) {
        try await queue.remove(download)
      }
    } catch {
      throw MissionError(error, of: nil)
    }
    told = Set(await queue.downloads.filter { $0.state == .done }.map(\.id))
    for draft in all where draft.isOpen && newest[draft.id] != draft.number {
      await end(draft, .cancelled, Self.replaced)
    }
    for draft in all where !draft.isOpen { await removeStaged(draft) }
    try await manager.composed.withdraw { [known] in known[$0.version]?.isOpen != true }
    try await manager.stored.collect()
    await queue.start()
    for draft in known.values.sorted(by: { $0.number < $1.number }) where draft.isOpen {
      try await begin(draft)
    }
  }

  // MARK: Parts

  func checkOpen() throws(MissionError) {
    if isClosed { throw MissionError(.busy, "the missions in \(folder) were closed") }
  }

  static func name(_ id: String) throws(MissionError) -> MissionID {
    guard let name = MissionID(id) else {
      throw MissionError(.badManifest, "“\(id)” is no mission's name")
    }
    return name
  }

  /// Returns the unfinished draft of a mission.
  func open(_ id: String) throws(MissionError) -> Draft {
    try checkOpen()
    let name = try Self.name(id)
    guard let draft = newest(name) else {
      throw MissionError(.notFound, "mission \(id) is not being fetched")
    }
    return draft
  }

  /// Returns the newest unfinished draft of a mission: a replaced one may be about to end.
  func newest(_ name: MissionID) -> Draft? {
    known.values.filter { $0.id == name && $0.isOpen }.max { $0.number < $1.number }
  }

  /// Returns the downloads of a draft's items in the queue, with the items' places.
  func downloads(under draft: Draft) async -> [(place: Int, download: Download)] {
    let found = await queue.downloads(draft.document.items.indices.map(draft.downloadID))
    return found.enumerated().compactMap { place, download in download.map { (place, $0) } }
  }

  /// Reports a local item, once.
  func report(item place: Int, of draft: Draft) {
    guard told.insert(draft.downloadID(place)).inserted else { return }
    hub.notify(.item(draft.id, path: draft.document.items[place].path))
  }

  func run(_ number: Int64) {
    guard runs[number] == nil, !isClosed else { return }
    runs[number] = Task {
      await self.work(number)
      self.ended(number)
    }
  }

  private func ended(_ number: Int64) {
    runs[number] = nil
    scheduleReport(number)
    wake()
  }

  /// Reports the state of a draft soon, if it has changed. Many changes at once are one report.
  func scheduleReport(_ number: Int64) {
    noted.insert(number)
    guard !isReporting else { return }
    isReporting = true
    Task { await self.report() }
  }

  private func report() async {
    while let number = noted.min() {
      noted.remove(number)
      guard let draft = known[number] else { continue }
      let state = await state(of: draft)
      guard let draft = known[number], reported[draft.id] != state else { continue }
      reported[draft.id] = state
      hub.notify(.changed(draft.id, state, draft.reason))
    }
    isReporting = false
    wake()
  }
}
