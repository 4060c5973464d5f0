import FerryProtocol

/// Downloads missions, checks them, stores them and puts them in use (SPEC.md §21). It uses the
/// file store, the mission store and the downloader.
///
/// Each mission is complete or absent. `path(_:)` is the folder of a complete version, and changes
/// only when another one is complete. However this process ends, ``restore()`` continues the work.
/// Any number of processes may manage the same missions; no mission is fetched by two of them.
public actor MissionManager {
  /// The files of the content.
  public nonisolated let files: any MissionFiles
  nonisolated let store: any MissionStore
  nonisolated let downloader: any Downloader
  nonisolated let catalogue: any MissionCatalogue
  nonisolated let options: MissionOptions
  nonisolated let surroundings: MissionSurroundings
  nonisolated let hub = EventHub()

  var queue: MissionQueue
  var space: SpacePlan<MissionID, ContentHash>
  /// Missions under way in this manager.
  var runs: [MissionID: Run] = [:]
  /// The version to fetch, for each mission in the queue.
  var versions: [MissionID: MissionVersion] = [:]
  /// The states of missions with unwritten rows, after a failed write.
  var unwritten: [MissionID: (MissionState, MissionError?)] = [:]
  private var isClosed = false
  private var isSuspended = false
  /// Pending effects of the queue.
  private var effects: [MissionQueue.Effect] = []
  private var isCarryingOut = false
  private var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  /// The number of waits so far.
  private(set) var waiterCount = 0

  /// A mission under way in this manager.
  struct Run {
    var task: Task<Void, Never>
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
    let proof = try await store.makeSetting("sealing", files.sealProof())
    if !files.accepts(sealProof: proof) {
      // A process that only read has not decided whether later content is sealed.
      guard try await store.remakeSetting("sealing", files.sealProof()) else {
        throw MissionError(
          .wrongKey,
          files.isSealed
            ? "the key does not fit the stored content"
            : "the stored content is encrypted; give its key")
      }
    }
    return MissionManager(store, files, downloader, catalogue, options, surroundings)
  }

  private init(
    _ store: any MissionStore, _ files: any MissionFiles, _ downloader: any Downloader,
    _ catalogue: any MissionCatalogue, _ options: MissionOptions,
    _ surroundings: MissionSurroundings
  ) {
    self.store = store
    self.files = files
    self.downloader = downloader
    self.catalogue = catalogue
    self.options = options
    self.surroundings = surroundings
    queue = MissionQueue(limits: JobLimits(atOnce: options.missionsAtOnce))
    space = SpacePlan(margin: options.spaceMargin)
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
    try await collect()
    var jobs: [MissionQueue.Job] = []
    for row in try await store.missions() where runs[row.record.id] == nil {
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
    for record in try await catalogue.missions() { records[record.id] = record }
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
      if let job = queue[record.id], runs[record.id] != nil {
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
    let row = try await incomplete(id)
    try await store.setState(.paused, reason: nil, of: row.version)
  }

  /// Resumes a paused mission.
  public func resume(_ id: MissionID) async throws(MissionError) {
    await whileSuspended()
    if queue[id]?.state == .paused { return await handle(.resume(id)) }
    if let state = queue[id]?.state, !state.isFinal { return }
    var row = try await incomplete(id)
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
    let row = try await incomplete(id)
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
    for run in runs.values { run.task.cancel() }
    wake()
    // An interrupted caller closes, too: a cancellation must not end the wait, or it would spin.
    while !runs.isEmpty { await nextChange() }
    hub.end()
  }

  /// Stops all work for a while and returns after the end of it. Then this process holds no lock of
  /// the missions' files. Until ``resume()``, calls that change missions wait.
  public func suspend() async {
    guard !isClosed, !isSuspended else { return }
    isSuspended = true
    for run in runs.values { run.task.cancel() }
    while !runs.isEmpty { await nextChange() }
  }

  /// Continues the work of a suspended manager, as ``restore()`` continues the work of another
  /// process.
  public func resume() async {
    guard !isClosed, isSuspended else { return }
    while !runs.isEmpty { await nextChange() }
    queue = MissionQueue(limits: JobLimits(atOnce: options.missionsAtOnce))
    isSuspended = false
    wake()
    // If the rows cannot be read now, the next request continues.
    _ = try? await restoreNow()
  }

  private func whileSuspended() async {
    while isSuspended, !isClosed, !Task.isCancelled { await change() }
  }

  // MARK: The queue

  /// Passes an event to the queue, and executes the effects one after another.
  func handle(_ event: MissionQueue.Event) async {
    if isClosed || isSuspended { return }
    for effect in queue.handle(event) {
      // A stop takes effect at once, whatever else is being written.
      if case .stop(let id) = effect { runs[id]?.task.cancel() } else { effects.append(effect) }
    }
    guard !isCarryingOut else { return }
    isCarryingOut = true
    while !effects.isEmpty { await carryOut(effects.removeFirst()) }
    isCarryingOut = false
    wake()
  }

  private func carryOut(_ effect: MissionQueue.Effect) async {
    switch effect {
    case .start(let id):
      if isClosed || isSuspended { return }
      let task = Task(executorPreference: surroundings.executor) { await self.run(id) }
      runs[id] = Run(task: task)
      // Stopped before the start: there was no task to cancel.
      if queue[id]?.state != .downloading { task.cancel() }
    case .stop: break
    case .changed(let id, let state, let reason):
      await store(state, reason, of: id)
      hub.notify(.changed(id, state, reason))
    }
  }

  /// Stores the state of a mission. If it ended without success, the files are removed once no
  /// process works on it.
  private func store(_ state: MissionState, _ reason: MissionError?, of id: MissionID) async {
    guard let version = versions[id] else { return }
    switch state {
    case .done: unwritten[id] = nil
    case .failed, .cancelled:
      unwritten[id] = nil
      guard runs[id] == nil, queue[id]?.state == state else { break }
      let rows = (try? await store.missions()) ?? []
      guard let row = rows.first(where: { $0.version == version }) else { break }
      await discard(row, as: state, reason ?? .stopped)
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

  private func run(_ id: MissionID) async {
    let ending = await work(id)
    space.release(id)
    if !isClosed, !isSuspended, ending != .done, queue[id]?.state == .cancelled,
      let version = versions[id]
    {
      let rows = (try? await store.missions()) ?? []
      if let row = rows.first(where: { $0.version == version }) {
        await discard(row, as: .cancelled, .stopped)
      }
    }
    runs[id] = nil
    await handle(.ended(id, ending))
    wake()
  }

  // MARK: Waiting

  private func isIdle(_ id: MissionID) -> Bool {
    if isClosed { return true }
    guard runs[id] == nil, !isCarryingOut else { return false }
    guard let state = queue[id]?.state else { return true }
    return state.isFinal || state == .paused || queue.isIdle
  }

  /// Waits for the end of a cancelled run and the removal of its files; a new request comes after
  /// that.
  private func waitIfCancelled(_ id: MissionID) async {
    while runs[id] != nil, queue[id]?.state == .cancelled, !Task.isCancelled { await change() }
  }

  /// Waits until anything has changed, or the task is cancelled.
  func change() async {
    waiterCount += 1
    let number = waiterCount
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        if Task.isCancelled { waiter.resume() } else { waiters[number] = waiter }
      }
    } onCancel: {
      Task(executorPreference: surroundings.executor) { await self.wake(number) }
    }
  }

  /// Waits until anything has changed, even in a cancelled task.
  private func nextChange() async {
    waiterCount += 1
    let number = waiterCount
    await withCheckedContinuation { waiters[number] = $0 }
  }

  private func wake(_ number: Int) { waiters.removeValue(forKey: number)?.resume() }

  private func wake() {
    let waiting = waiters.sorted { $0.key < $1.key }
    waiters = [:]
    for (_, waiter) in waiting { waiter.resume() }
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
