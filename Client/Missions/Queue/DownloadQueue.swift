import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerrySQLite
import Foundation

/// Fetches files to paths, a number of them at once, and continues after a restart of the process.
///
/// The queue is an SQLite file. One process at a time has it open. The downloader of missions
/// fetches the files: an interrupted one continues by HTTP Range, if the server can prove that the
/// file is the same.
///
/// ```swift
/// let queue = try await DownloadQueue.open("/data/downloads.db")
/// let index = Download("https://example.org/index.json", to: "/data/index.json")
/// let film = Download("https://example.org/film.mp4", to: "/data/film.mp4", after: [index.id])
/// try await queue.add(index, film)
/// let file = try await film.finished()
/// ```
public actor DownloadQueue: JobRunner {
  /// The path of the queue's file.
  public nonisolated let path: String
  nonisolated let store: DownloadStore
  nonisolated let downloader: any Downloader
  nonisolated let options: DownloadQueueOptions
  nonisolated let surroundings: MissionSurroundings
  nonisolated let rules: DownloadRules
  /// `nil` for a queue in memory: no other process can open it.
  private let lock: FileLock?

  var runs: JobRuns<DownloadJobs>
  var waiters = Waiters()
  /// The bytes still to write for each running download.
  var space: SpacePlan<DownloadID, DownloadID>
  private var found: [DownloadID: Download] = [:]
  private var order: [DownloadID] = []
  /// The failures in a row of each download: those since the file last grew.
  var failures: [DownloadID: Int] = [:]
  /// The most local bytes of each file so far.
  var highest: [DownloadID: Int64] = [:]
  private var isClosed = false
  /// The number of calls that are storing added downloads.
  private var additions = 0

  /// Opens the queue in the file at `path`, and creates an absent one. Unfinished downloads
  /// continue. `:memory:` is a queue in memory, for tests and previews.
  ///
  /// - Parameter transport: carries requests; libcurl by default.
  /// - Throws: ``DownloadError/Kind/busy`` if another process has the queue open.
  public static func open(
    _ path: String, options: DownloadQueueOptions = DownloadQueueOptions(),
    transport: any Transport = SystemTransport()
  ) async throws(DownloadError) -> DownloadQueue {
    try await open(
      path, options: options,
      requests: ChunkedDownloader.requests(
        over: transport, server: "", timeout: options.silence))
  }

  /// Opens the queue, and sends requests through a client with its fields and filters.
  public static func open(
    _ path: String, options: DownloadQueueOptions = DownloadQueueOptions(), client: NetworkClient
  ) async throws(DownloadError) -> DownloadQueue {
    try await open(
      path, options: options,
      requests: ChunkedDownloader.requests(through: client, timeout: options.silence))
  }

  private static func open(
    _ path: String, options: DownloadQueueOptions, requests: @escaping DownloadOpening
  ) async throws(DownloadError) -> DownloadQueue {
    var settings = DownloadSettings()
    // The queue itself retries, and starts others meanwhile.
    settings.retry.attemptsMax = 2
    settings.retry.retryAfterMax = .seconds(10)
    return try await open(
      path, options: options, downloader: ChunkedDownloader(settings: settings, open: requests))
  }

  /// Opens the queue with a downloader of the app.
  public static func open(
    _ path: String, options: DownloadQueueOptions = DownloadQueueOptions(),
    downloader: any Downloader
  ) async throws(DownloadError) -> DownloadQueue {
    try await open(path, options: options, downloader: downloader, in: .system)
  }

  static func open(
    _ path: String, options: DownloadQueueOptions, downloader: any Downloader,
    in surroundings: MissionSurroundings, rules: DownloadRules = DownloadRules()
  ) async throws(DownloadError) -> DownloadQueue {
    let isFile = path != SQLiteConnection.memory
    let path = isFile ? URL(fileURLWithPath: path).standardizedFileURL.path : path
    let lock = isFile ? try acquireLock(of: path) : nil
    let store = try await DownloadStore.open(path, on: ThreadExecutor(name: "ferry-queue"))
    let queue = DownloadQueue(path, lock, store, downloader, options, surroundings, rules)
    try await queue.restore()
    return queue
  }

  private static func acquireLock(of path: String) throws(DownloadError) -> FileLock {
    let lock: FileLock?
    do { lock = try NamedFile.lock("\(path).lock") } catch {
      throw DownloadError(converting: error)
    }
    if let lock { return lock }
    throw DownloadError(
      .busy, "another process, or another queue of this one, has \(path) open")
  }

  private init(
    _ path: String, _ lock: FileLock?, _ store: DownloadStore, _ downloader: any Downloader,
    _ options: DownloadQueueOptions, _ surroundings: MissionSurroundings,
    _ rules: DownloadRules
  ) {
    self.path = path
    self.lock = lock
    self.store = store
    self.downloader = downloader
    self.options = options
    self.surroundings = surroundings
    self.rules = rules
    space = SpacePlan(margin: rules.spaceMargin)
    runs = JobRuns(
      JobQueue(
        limits: rules.limits ?? JobLimits(atOnce: options.downloadsAtOnce),
        isHeld: !options.startsAtOnce))
  }

  private func restore() async throws(DownloadError) {
    let rows = try await store.rows()
    for row in rows {
      let download = Download(row)
      _ = download.join(self)
      found[row.id] = download
      order.append(row.id)
      if row.state == .downloading { download.set(.ready, nil) }
      // The process may have ended before the part was removed.
      let isGone = row.state == .cancelled || row.state == .failed
      if isGone, !rows.contains(where: { $0.path == row.path && $0.id != row.id }) {
        // A remaining part must not stop the other downloads.
        try? await remove(download.partialPath)
      }
    }
    await handle(.added(rows.map(job)))
  }

  /// Continues the downloads of an earlier process, unless the options have started them already.
  public func start() async {
    if queue.isHeld { await handle(.begin) }
  }

  /// The most downloads fetched at once.
  public var downloadsAtOnce: Int { queue.limits.atOnce }

  /// Changes the number of downloads fetched at once, from now on and for this process. With a
  /// lower number, running downloads end first; then the others follow.
  ///
  /// - Parameter count: at least 1.
  public func setDownloadsAtOnce(_ count: Int) async { await handle(.limit(count)) }

  // MARK: Downloads

  /// All downloads in the order of addition, ended ones included.
  public var downloads: [Download] { order.compactMap { found[$0] } }

  /// Returns a download by name.
  public func download(_ id: DownloadID) -> Download? { found[id] }

  /// Returns the downloads of these names, in their order; `nil` for an unknown one.
  func downloads(_ ids: [DownloadID]) -> [Download?] { ids.map { found[$0] } }

  /// Adds downloads, all of them or none. They are stored when this returns.
  ///
  /// - Throws: ``DownloadError/Kind/dependency`` if one waits for an unknown download or for itself;
  ///   ``DownloadError/Kind/busy`` if another download of the queue writes to the same path.
  public func add(_ downloads: Download...) async throws(DownloadError) {
    try await add(downloads)
  }

  /// Adds downloads, all of them or none.
  public func add(_ downloads: [Download]) async throws(DownloadError) {
    await start()
    try checkOpen()
    var rows: [DownloadRow] = []
    var paths = Set(found.values.filter { !$0.state.isFinal }.map(\.path))
    for download in downloads {
      guard found[download.id] == nil else {
        throw DownloadError(
          .dependency, "there is a download \(download.id) already", isTransient: false)
      }
      guard paths.insert(download.path).inserted else {
        throw DownloadError(
          .busy, "another download writes to \(download.path)", isTransient: false)
      }
      rows.append(DownloadRow(download, userInfo: try download.info.get()))
    }
    if let (id, fault) = queue.fault(adding: rows.map(job)) {
      throw DownloadJobs.error(id, fault)
    }
    for download in downloads where !download.join(self) {
      throw DownloadError(
        .busy, "download \(download.id) is in a queue already", isTransient: false)
    }
    // No other call may add the same names or paths while the rows are written.
    for download in downloads { found[download.id] = download }
    additions += 1
    defer {
      additions -= 1
      wake()
    }
    do throws(DownloadError) {
      let numbers = try await store.add(rows)
      for (index, number) in numbers.enumerated() { rows[index].number = number }
    } catch {
      for download in downloads {
        found[download.id] = nil
        download.leave()
      }
      throw error
    }
    order += downloads.map(\.id)
    await handle(.added(rows.map(job)))
  }

  /// Pauses a download.
  func pause(_ download: Download) async throws(DownloadError) {
    try await change(.pause(download.id))
  }

  /// Resumes a download.
  func resume(_ download: Download) async throws(DownloadError) {
    (failures[download.id], highest[download.id]) = (nil, nil)
    try await change(.resume(download.id))
  }

  /// Cancels a download, and returns after the removal of the fetched part.
  func cancel(_ download: Download) async throws(DownloadError) {
    try checkOpen()
    await handle(.cancel(download.id, nil))
    while !isClosed, queue.isRunning(download.id) { await nextChange() }
  }

  func setPriority(_ priority: Int, of download: Download) async throws(DownloadError) {
    try checkOpen()
    try await store.set(priority: priority, of: download.id)
    download.set(priority: priority)
    // A queue that waits for its start keeps waiting.
    await handle(.prioritise(download.id, Int64(priority)))
  }

  private func change(_ event: DownloadJobQueue.Event) async throws(DownloadError) {
    try checkOpen()
    await handle(event)
    await start()
  }

  private func checkOpen() throws(DownloadError) {
    if isClosed { throw DownloadError(.busy, "the queue \(path) was closed", isTransient: false) }
  }

  /// Removes a download from the queue, and cancels it if it has not ended. A complete file stays
  /// at its path, and counts as done for downloads waiting for it. Downloads waiting for an
  /// unfinished download fail.
  public func remove(_ download: Download) async throws(DownloadError) {
    if !download.state.isFinal { try await cancel(download) }
    // The rows of downloads waiting for this one are changed together with this row.
    while additions > 0 { await nextChange() }
    try checkOpen()
    let id = download.id
    guard found[id] === download, let job = queue[id] else { return }
    let freed = job.state == .done ? queue.followers(of: id) : [:]
    // From now on no added download can wait for it.
    await handle(job.state == .done ? .finished(id) : .removed(id))
    do throws(DownloadError) { try await store.remove(id, freeing: freed) } catch {
      await handle(.added([job]))
      throw error
    }
    found[id] = nil
    order.removeAll { $0 == id }
    (failures[id], highest[id]) = (nil, nil)
    download.leave()
  }

  /// Waits until every download has ended or is paused, or the queue is closed.
  public func waitUntilIdle() async {
    while !isClosed, !Task.isCancelled,
      found.values.contains(where: { $0.state == .ready || $0.state == .downloading })
        || !runs.isIdle
    {
      await nextChange()
    }
  }

  /// Stops all work and returns after the end of it. The next queue of this file continues it.
  public func close() async {
    guard !isClosed else { return }
    isClosed = true
    await stopJobs()
    for download in found.values { download.leave() }
    await store.close()
    lock?.release()
    wake()
  }

  // MARK: Effects

  func apply(_ state: DownloadState, _ reason: DownloadError?, to id: DownloadID) async {
    guard let download = found[id] else { return }
    if state == .cancelled || state == .failed, !isRunning(id) {
      try? await remove(download.partialPath)
    }
    // If the row cannot be written, the next process repeats the work since the last state.
    try? await store.set(state, reason, download.status.progress, of: id)
    download.set(state, reason)
    if state == .ready { rest(id) }
  }

  func work(_ id: DownloadID) async -> DownloadJobQueue.Ending {
    guard let download = found[id] else { return .stopped }
    return await work(download)
  }

  func clean(_ id: DownloadID, after ending: DownloadJobQueue.Ending) async {
    space.release(id)
    guard queue[id]?.state == .cancelled, ending != .done, let download = found[id] else { return }
    try? await remove(download.partialPath)
  }

  /// Begins a download's next attempt after a pause.
  private func rest(_ id: DownloadID) {
    guard queue[id]?.isResting == true else { return }
    let random = surroundings.random()
    let count = max(1, failures[id] ?? 1)
    let pause = options.pauses.delay(afterFailures: count, random: random) ?? .zero
    Task(executorPreference: surroundings.executor) { [weak self, surroundings] in
      try? await surroundings.sleep(pause)
      await self?.rested(id)
    }
  }

  private func rested(_ id: DownloadID) async { await handle(.rested(id)) }
}
