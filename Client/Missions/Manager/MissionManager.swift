import FerryProtocol

/// Downloads missions, checks them, stores them and puts them in use (SPEC.md §21). It uses the
/// file store, the mission store and the downloader.
///
/// Each mission is complete or absent. `path(_:)` is the folder of a complete version, and changes
/// only when another one is complete. However this process ends, ``restore()`` continues the work.
/// Any number of processes may manage the same missions; no mission is fetched by two of them.
public actor MissionManager: JobRunner {
  /// The files of the content.
  public nonisolated let files: any MissionFiles
  nonisolated let store: any MissionStore
  nonisolated let downloader: any Downloader
  nonisolated let origin: MissionOrigin
  nonisolated let options: MissionOptions
  nonisolated let surroundings: MissionSurroundings
  nonisolated let contents: StoredContents
  nonisolated let stored: StoredVersions
  nonisolated let hub = EventHub()

  var runs: JobRuns<MissionJobs>
  var waiters = Waiters()
  var space: SpacePlan<MissionID, ContentHash>
  /// The transfers of missions under way in this manager.
  var downloads: [MissionID: Transfer] = [:]
  /// The version to fetch, for each mission in the queue.
  var versions: [MissionID: MissionVersion] = [:]
  /// The states of missions with unwritten rows, after a failed write.
  var unwritten: [MissionID: (MissionState, MissionError?)] = [:]
  private var isClosed = false
  private var isSuspended = false

  /// The transfer of a mission's items.
  struct Transfer {
    var board: ProgressBoard?
    /// The bytes received until the connection was lost.
    var stalledAt: Int64?
  }

  /// Opens a manager over the given parts. It fetches nothing without a call.
  ///
  /// - Throws: ``MissionError/Kind/wrongKey`` if the stored content needs another key, a key is
  ///   missing, or the stored content is not sealed and `files` has a key.
  public static func open(
    store: any MissionStore, files: any MissionFiles, downloader: any Downloader,
    catalogue: any MissionCatalogue, options: MissionOptions = MissionOptions()
  ) async throws(MissionError) -> MissionManager {
    try await open(
      store: store, files: files, downloader: downloader, catalogue: catalogue, options: options,
      in: .system)
  }

  /// Opens a manager in the caller's surroundings.
  package static func open(
    store: any MissionStore, files: any MissionFiles, downloader: any Downloader,
    catalogue: any MissionCatalogue, options: MissionOptions, in surroundings: MissionSurroundings
  ) async throws(MissionError) -> MissionManager {
    try await open(
      OwnParts(files: files, store: store, downloader: downloader), from: .catalogue(catalogue),
      options: options, in: surroundings)
  }

  static func open(
    _ parts: OwnParts, from origin: MissionOrigin, options: MissionOptions,
    in surroundings: MissionSurroundings
  ) async throws(MissionError) -> MissionManager {
    try await parts.checkSeal()
    return MissionManager(parts, origin, options, surroundings)
  }

  private init(
    _ parts: OwnParts, _ origin: MissionOrigin, _ options: MissionOptions,
    _ surroundings: MissionSurroundings
  ) {
    (store, files, downloader) = (parts.store, parts.files, parts.downloader)
    (self.origin, self.options, self.surroundings) = (origin, options, surroundings)
    contents = StoredContents(store: store, files: files, surroundings: surroundings)
    stored = StoredVersions(
      store: store, files: files, origin: origin, options: options, surroundings: surroundings)
    runs = JobRuns(MissionQueue(limits: JobLimits(atOnce: options.missionsAtOnce)))
    space = SpacePlan(margin: options.spaceMargin)
  }

  /// The missions composed by the app.
  nonisolated var composed: ComposedVersions {
    ComposedVersions(contents: contents, versions: stored)
  }

  // MARK: Downloading

  /// Continues the work of the last process, and removes unneeded files (SPEC.md §21). Returns the
  /// missions now in the queue.
  @discardableResult
  public func restore() async throws(MissionError) -> [MissionID] {
    await whileSuspended()
    return try await restoreNow()
  }

  private func restoreNow() async throws(MissionError) -> [MissionID] {
    try await stored.collect()
    var jobs: [MissionQueue.Job] = []
    for row in try await store.missions() where !isRunning(row.record.id) {
      switch KeepingPlan.restoring(row.state, isComplete: row.isComplete) {
      case .goesOn, .rests:
        versions[row.record.id] = row.version
        jobs.append(MissionQueue.Job(row))
      case .remove:
        await discard(
          row, as: row.state == .failed ? .failed : .cancelled, row.reason ?? .stopped)
      case .complete:
        if row.isActive { await handle(.alreadyDone(row.record.id)) }
      }
    }
    await handle(.requested(jobs))
    return jobs.map(\.id)
  }

  /// Requests missions in the catalogue's versions, with those that come first (SPEC.md §21).
  ///
  /// Returns as soon as they are in the queue; `waitUntilIdle(_:)` waits for the end. A paused
  /// mission continues. A mission already on this device stays unchanged, except for damage found
  /// by `verify(_:)`: it is repaired.
  ///
  /// - Throws: ``MissionError/Kind/notFound``, ``MissionError/Kind/dependency``; then none is
  ///   requested.
  public func download(_ ids: [MissionID]) async throws(MissionError) {
    try await download(ids, isPartial: false)
  }

  /// Requests missions as `download(_:)` does, but a mission with a missing dependency fails alone,
  /// with the reason.
  public func downloadPartly(_ ids: [MissionID]) async throws(MissionError) {
    try await download(ids, isPartial: true)
  }

  private func download(_ ids: [MissionID], isPartial: Bool) async throws(MissionError) {
    await whileSuspended()
    for id in ids { await waitIfCancelled(id) }
    var records: [MissionID: MissionRecord] = [:]
    for record in try await origin.published() { records[record.id] = record }
    var here: [MissionID: HeldVersion] = [:]
    var damaged: [MissionID] = []
    for row in try await store.missions() where row.isActive {
      here[row.record.id] = HeldVersion(row.record)
      if row.isDamaged, ids.contains(row.record.id) { damaged.append(row.record.id) }
    }
    let wanted = try MissionRequest.plan(
      ids, catalogue: records, here: here, isPartial: isPartial)
    for id in here.keys.sorted() where !wanted.contains(where: { $0.id == id }) {
      await handle(.alreadyDone(id))
    }
    var jobs: [MissionQueue.Job] = []
    for record in wanted {
      // Already under way, perhaps in an earlier version: the earlier one ends first.
      if let job = queue[record.id], isRunning(record.id) {
        jobs.append(job)
        continue
      }
      let row = try await store.add(record, at: surroundings.wallClock())
      versions[record.id] = row.version
      jobs.append(MissionQueue.Job(row))
    }
    await handle(.requested(jobs))
    // Paused missions are requested as well.
    for job in jobs where queue[job.id]?.state == .paused { await handle(.resume(job.id)) }
    for id in damaged where !wanted.contains(where: { $0.id == id }) {
      // The state keeps the reason if the repair fails; the others continue.
      _ = try? await verify(id, repairing: true)
    }
  }

  /// Pauses a mission and keeps the fetched parts (SPEC.md §21). Also if another process fetches
  /// it.
  public func pause(_ id: MissionID) async throws(MissionError) {
    await whileSuspended()
    if let state = queue[id]?.state, !state.isFinal { return await handle(.pause(id)) }
    let row = try await stored.incomplete(id)
    try await store.setState(.paused, reason: nil, of: row.version)
  }

  /// Resumes a paused mission.
  public func resume(_ id: MissionID) async throws(MissionError) {
    await whileSuspended()
    if queue[id]?.state == .paused { return await handle(.resume(id)) }
    if let state = queue[id]?.state, !state.isFinal { return }
    var row = try await stored.incomplete(id)
    row.state = .ready
    versions[id] = row.version
    // The dependencies continue with it, or are here already.
    for other in try await store.missions() where row.record.after.contains(other.record.id) {
      if other.isActive { await handle(.alreadyDone(other.record.id)) }
      if !other.isComplete, queue[other.record.id] == nil { try await resume(other.record.id) }
    }
    await handle(.requested([MissionQueue.Job(row)]))
  }

  /// Cancels the download of a mission and removes the fetched parts. A version in use stays.
  public func cancel(_ id: MissionID) async throws(MissionError) {
    await whileSuspended()
    if let state = queue[id]?.state, !state.isFinal { return await handle(.cancel(id, .stopped)) }
    let row = try await stored.incomplete(id)
    await discard(row, as: .cancelled, .stopped)
    hub.notify(.changed(id, .cancelled, nil))
  }

  /// Waits until none of these missions is under way, nor will be without another call. Returns
  /// their states. A mission waiting for a connection counts as under way.
  public func waitUntilIdle(_ ids: [MissionID]) async throws(MissionError) -> [MissionStatus] {
    while !ids.allSatisfy(isIdle) {
      await change()
      if Task.isCancelled {
        throw MissionError(.cancelled, "it was stopped; the fetched content is kept")
      }
    }
    return try await list().filter { ids.contains($0.id) }
  }

  /// Returns a stream of all events from now on (SPEC.md §21).
  public nonisolated func events() -> AsyncStream<MissionEvent> { hub.listen() }

  /// Stops all work and returns after the end of it. Another manager's ``restore()`` continues it;
  /// this manager cannot be used any more.
  public func close() async {
    isClosed = true
    await stopJobs()
    hub.end()
  }

  /// Stops all work for a while and returns after the end of it. Then this process holds no lock of
  /// the missions' files. Until ``resume()``, calls that change missions wait.
  public func suspend() async {
    guard !isClosed, !isSuspended else { return }
    isSuspended = true
    await stopJobs()
  }

  /// Continues the work of a suspended manager, as ``restore()`` continues the work of another
  /// process.
  public func resume() async {
    guard !isClosed, isSuspended else { return }
    await stopJobs()
    guard !isClosed else { return }
    runs = JobRuns(MissionQueue(limits: JobLimits(atOnce: options.missionsAtOnce)))
    isSuspended = false
    wake()
    // If the rows cannot be read now, the next request continues.
    _ = try? await restoreNow()
  }

  private func whileSuspended() async {
    while isSuspended, !isClosed, !Task.isCancelled { await change() }
  }

  // MARK: The queue

  func apply(_ state: MissionState, _ reason: MissionError?, to id: MissionID) async {
    await store(state, reason, of: id)
    hub.notify(.changed(id, state, reason))
  }

  /// Stores the state of a mission. If it ended without success, the files are removed once no
  /// process works on it.
  private func store(_ state: MissionState, _ reason: MissionError?, of id: MissionID) async {
    guard let version = versions[id] else { return }
    switch state {
    case .done: unwritten[id] = nil
    case .failed, .cancelled:
      unwritten[id] = nil
      guard !isRunning(id), queue[id]?.state == state else { break }
      if let row = try? await stored.row(of: version) {
        await discard(row, as: state, reason ?? .stopped)
      }
    case .ready, .downloading, .paused:
      // An observer does not store this reason: the row belongs to the other process.
      if reason?.kind == .busy { break }
      do throws(MissionError) {
        try await store.setState(state, reason: reason, of: version)
        unwritten[id] = nil
      } catch {
        // The row stays unchanged: for other processes the mission is still under way.
        unwritten[id] = (state, reason)
      }
    }
  }

  func clean(_ id: MissionID, after ending: MissionQueue.Ending) async {
    space.release(id)
    downloads[id] = nil
    if !runs.isStopped, ending != .done, queue[id]?.state == .cancelled,
      let version = versions[id], let row = try? await stored.row(of: version)
    {
      await discard(row, as: .cancelled, .stopped)
    }
  }

  // MARK: Waiting

  private func isIdle(_ id: MissionID) -> Bool {
    if isClosed { return true }
    guard !isRunning(id), !runs.isCarryingOut else { return false }
    guard let state = queue[id]?.state else { return true }
    return state.isFinal || state == .paused || queue.isIdle
  }

  /// Waits for the end of a cancelled run and the removal of its files; a new request comes after
  /// that.
  private func waitIfCancelled(_ id: MissionID) async {
    while isRunning(id), queue[id]?.state == .cancelled, !Task.isCancelled { await change() }
  }
}

extension JobQueue.Job where Kind == MissionJobs {
  /// Creates the job of a row.
  init(_ row: MissionRow) {
    self.init(
      id: row.record.id, priority: row.record.priority, number: row.asked,
      after: row.record.after, state: row.state, reason: row.reason)
  }
}

extension MissionError {
  static let stopped = MissionError(.cancelled, "it was cancelled")
}
