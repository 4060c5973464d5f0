import FerryProtocol

/// The control of composed missions and of their items.
extension OwnMissions {
  /// Pauses a mission, and keeps the fetched parts.
  public func pause(_ id: String) async throws(MissionError) {
    let draft = try open(id)
    for (_, download) in await downloads(under: draft) where !download.state.isFinal {
      do throws(DownloadError) { try await download.pause() } catch {
        throw MissionError(error, of: nil)
      }
    }
    scheduleReport(draft.number)
  }

  /// Resumes a paused mission with all items.
  public func resume(_ id: String) async throws(MissionError) {
    let draft = try open(id)
    for (_, download) in await downloads(under: draft) where download.state == .paused {
      do throws(DownloadError) { try await download.resume() } catch {
        throw MissionError(error, of: nil)
      }
    }
    known[draft.number]?.reason = nil
    run(draft.number)
    scheduleReport(draft.number)
  }

  /// Cancels a mission, and removes the fetched parts. A complete version stays.
  public func cancel(_ id: String) async throws(MissionError) {
    await stop(try open(id), MissionError(.cancelled, "it was cancelled"))
  }

  /// Removes a mission with the payload, and ends the download.
  public func remove(_ id: String) async throws(MissionError) {
    try checkOpen()
    let name = try Self.name(id)
    let all = known.values.filter { $0.id == name }
    guard !all.isEmpty else { throw MissionError(.notFound, "there is no mission \(id)") }
    for draft in all where draft.isOpen {
      await stop(draft, MissionError(.cancelled, "it was removed"))
    }
    do throws(MissionError) { try await manager.remove(name) } catch {
      if error.kind != .notFound { throw error }
    }
    try await drafts.remove(all.map(\.number))
    for draft in all { known[draft.number] = nil }
    reported[name] = nil
    hub.notify(.removed(name))
    wake()
  }

  /// Returns the download of one item of an unfinished mission; it can be observed, paused, resumed
  /// and cancelled alone. The mission will not have a cancelled item; if another item comes after
  /// it, the mission fails. Returns `nil` if there is no such item, or the mission is complete.
  public func download(of path: String, in id: String) async throws(MissionError) -> Download? {
    try checkOpen()
    let name = try Self.name(id)
    guard let draft = newest(name),
      let place = draft.document.items.firstIndex(where: { $0.path == path })
    else { return nil }
    return await queue.download(draft.downloadID(place))
  }

  /// Waits until none of these missions is being fetched, nor will be without another call.
  @discardableResult
  public func waitUntilIdle(_ ids: String...) async throws(MissionError) -> [MissionStatus] {
    let names = try ids.map { (id) throws(MissionError) in try Self.name(id) }
    while !isClosed {
      let seen = waiters.changes
      if Task.isCancelled { throw MissionError(.cancelled, "the wait was stopped") }
      let found = try await list().filter { names.contains($0.id) }
      let isBusy = known.values.contains { draft in
        names.contains(draft.id) && runs[draft.number] != nil
          && found.first { $0.id == draft.id }?.state != .paused
      }
      // After a change meanwhile, the list may be older than the end of the work.
      guard seen == waiters.changes else { continue }
      if !isBusy { return found }
      await change()
    }
    throw MissionError(.cancelled, "the missions were closed")
  }

  /// Stops all work and returns after the end of it. The next process continues it.
  public func close() async {
    guard !isClosed else { return }
    isClosed = true
    let work = Array(runs.values)
    for run in work { run.cancel() }
    await queue.close()
    await manager.close()
    for run in work { await run.value }
    wake()
    hub.end()
  }
}
