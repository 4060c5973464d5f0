import FerryProtocol
import Foundation

/// The work on one composed mission, from the items until it is in use.
extension OwnMissions {
  /// Fetches the items of a draft, composes it, and puts it in use.
  func work(_ number: Int64) async {
    guard let draft = known[number], draft.isOpen else { return }
    do throws(MissionError) {
      // A process may end after the version came into use.
      if try await !manager.composed.isInUse(draft.id, number) {
        guard try await gather(draft) else { return }
        let (manifest, move) = try await compose(draft)
        try await manager.composed.install(manifest, at: draft.at, move)
      }
      try await finish(draft)
    } catch {
      guard !Task.isCancelled, let draft = known[number], draft.isOpen else { return }
      switch error.kind {
      case .cancelled where error.item == nil: return
      case .cancelled: await end(draft, .cancelled, error)
      // The user can solve a problem on this device.
      case .diskFull, .files, .database: known[number]?.reason = error
      default: await end(draft, .failed, error)
      }
    }
  }

  /// Waits for all items. Returns `false` if the work was stopped.
  private func gather(_ draft: Draft) async throws(MissionError) -> Bool {
    let items = await downloads(under: draft)
    let watch = Task { await self.watch(draft, items) }
    defer { watch.cancel() }
    let failure = await withTaskGroup(of: (Int, DownloadError)?.self) {
      group -> (Int, DownloadError)? in
      for (place, download) in items {
        group.addTask {
          var last: DownloadState?
          for await status in download.updates() where status.state != last {
            last = status.state
            await self.scheduleReport(draft.number)
          }
          let status = download.status
          if status.state == .done { await self.report(item: place, of: draft) }
          guard status.state == .failed else { return nil }
          return (place, status.reason ?? DownloadError(.file, "it failed"))
        }
      }
      for await case let failure? in group {
        group.cancelAll()
        return failure
      }
      return nil
    }
    if let (place, error) = failure {
      let item = draft.document.items[place]
      throw MissionError(MissionError(error, of: .url(item.request.url)), item: item.path)
    }
    return !Task.isCancelled && known[draft.number]?.isOpen == true
      && items.allSatisfy { $0.download.state == .done || $0.download.state == .cancelled }
  }

  /// The interval between two reports of a mission's progress.
  private static let watchPause: Duration = .milliseconds(250)

  /// Reports the progress of a mission until the items are here.
  private func watch(_ draft: Draft, _ items: [(place: Int, download: Download)]) async {
    var reported: MissionProgress?
    while !Task.isCancelled {
      let progress = progress(of: draft, items)
      if progress != reported { hub.notify(.progress(progress)) }
      reported = progress
      do { try await surroundings.sleep(Self.watchPause) } catch { return }
    }
  }

  /// Reports the progress of a complete mission.
  private func reportComplete(_ draft: Draft) async throws(MissionError) {
    let fetched = meters.removeValue(forKey: draft.number)?.fetched ?? 0
    let here = try await manager.mission(draft.id)
    hub.notify(
      .progress(
        MissionProgress(
          id: draft.id, version: draft.number, bytesDone: here.bytesTotal,
          bytesTotal: here.bytesTotal, itemsDone: here.items, items: here.items,
          bytesFetched: fetched)))
  }

  /// Checks the fetched items. Returns the manifest, and the function that moves the items.
  private func compose(
    _ draft: Draft
  ) async throws(MissionError) -> (MissionManifest, ComposedVersions.Move) {
    var fetched: [Int: ContentFacts] = [:]
    var staged: [ContentHash: StagedFile] = [:]
    for (place, download) in await downloads(under: draft) where download.state == .done {
      let (item, file) = (draft.document.items[place], stagedFile(draft, place))
      let known = download.file?.facts
      let facts = try await executor.perform(MissionError.self) {
        try Self.check(file, item, known)
      }
      if facts != known { try await record(facts, of: download) }
      fetched[place] = facts
      staged[facts.hash] = file
    }
    if fetched.isEmpty {
      throw MissionError(.cancelled, item: draft.document.items[0].path, "all items were cancelled")
    }
    let manifest = DraftRule.manifest(draft.document, of: draft.id, version: draft.number, fetched)
    if let fault = manifest.fault() { throw MissionError(.badManifest, fault) }
    let move: ComposedVersions.Move = {
      [executor, staged] (content, path) async throws(MissionError) in
      try await executor.perform(MissionError.self) {
        try staged[content.hash]?.move(content, to: path) ?? false
      }
    }
    return (manifest, move)
  }

  /// Stores facts that the downloader has not computed: after the item's move, nobody can.
  private func record(
    _ facts: ContentFacts, of download: Download
  ) async throws(MissionError) {
    do throws(DownloadError) { try await queue.record(facts, of: download) } catch {
      throw MissionError(error, of: nil)
    }
  }

  /// Returns the facts about a fetched item. Reads it only if the downloader has computed no facts.
  /// A result must be JSON.
  private static func check(
    _ file: StagedFile, _ item: OwnItem, _ known: ContentFacts?
  ) throws -> ContentFacts {
    let partSize = MissionManifest.chunkSizeDefault
    let computed = known.flatMap { $0.hasParts(of: partSize) ? $0 : nil }
    guard let size = file.size else {
      // An earlier process has checked and moved it.
      if let computed { return computed }
      throw MissionError(.damaged, item: item.path, "its fetched content is missing")
    }
    guard let facts = try computed ?? file.facts(partSize: partSize) else {
      throw MissionError(.damaged, item: item.path, "its fetched content is missing")
    }
    guard facts.size == size, item.hash ?? facts.hash == facts.hash else {
      throw MissionError(.damaged, item: item.path, "its fetched content was changed")
    }
    guard item.isJSON else { return facts }
    let bytes = try file.bytes(limit: item.sizeMax) ?? []
    let isJSON =
      (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil
    guard isJSON else {
      throw MissionError(.refused, item: item.path, "the server's answer is not JSON")
    }
    return facts
  }

  /// Records that a version is in use, and removes everything else of it and of former ones.
  private func finish(_ draft: Draft) async throws(MissionError) {
    let number = draft.number
    try await drafts.set(.done, nil, of: number)
    try await reportComplete(draft)
    known[number]?.state = .done
    known[number]?.reason = nil
    let ended = known.values.filter { $0.id == draft.id && $0.number < number && !$0.isOpen }
    for other in ended { known[other.number] = nil }
    try? await drafts.remove(ended.map(\.number))
    await removeDownloads(draft)
    scheduleReport(number)
  }

  /// Stops the work on a draft, and cancels it unless it has come into use.
  func stop(_ draft: Draft, _ reason: MissionError) async {
    runs[draft.number]?.cancel()
    await runs[draft.number]?.value
    if known[draft.number]?.isOpen == true { await end(draft, .cancelled, reason) }
  }

  /// Ends a draft without success, and removes the fetched parts.
  func end(_ draft: Draft, _ state: MissionState, _ reason: MissionError) async {
    known[draft.number]?.state = state
    known[draft.number]?.reason = reason
    // If the row cannot be written, the next process continues the mission.
    try? await drafts.set(state, reason, of: draft.number)
    // Its files are garbage then; the next process collects them.
    try? await manager.composed.withdraw { $0.id == draft.id && $0.version == draft.number }
    await removeDownloads(draft)
    meters[draft.number] = nil
    scheduleReport(draft.number)
  }

  private func removeDownloads(_ draft: Draft) async {
    for (_, download) in await downloads(under: draft) { try? await queue.remove(download) }
    await removeStaged(draft)
  }

  /// Removes the folder of a draft's items.
  func removeStaged(_ draft: Draft) async {
    let folder = folder
    // What stays is removed when the folder is opened again.
    try? await executor.perform(MissionError.self) {
      try NamedFile.removeTree("\(draft.number)", in: "\(folder)/staged")
    }
  }
}

extension MissionError {
  init(_ error: MissionError, item: String) { self.init(error.kind, item: item, error.message) }
}
