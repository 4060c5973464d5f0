import FerryProtocol
import Foundation

/// The list of composed missions, and their content.
extension OwnMissions {
  /// Returns all missions by name: those under way, here, or ended without being here. Unfinished
  /// ones have the sizes known so far.
  public func list() async throws(MissionError) -> [MissionStatus] {
    let drafts = known.values.sorted { $0.number < $1.number }
    let here = try await manager.list()
    var found: [MissionID: MissionStatus] = [:]
    for draft in drafts {
      found[draft.id] = await status(of: draft, beside: here.first { $0.id == draft.id })
    }
    return found.values.sorted { $0.id < $1.id }
  }

  /// Returns one mission.
  ///
  /// - Throws: ``MissionError/Kind/notFound``.
  public func mission(_ id: String) async throws(MissionError) -> MissionStatus {
    guard let status = try await list().first(where: { $0.id.value == id }) else {
      throw MissionError(.notFound, "there is no mission \(id)")
    }
    return status
  }

  private func status(of draft: Draft, beside here: MissionStatus?) async -> MissionStatus {
    var status = MissionStatus(
      id: draft.id, version: draft.number, title: draft.document.title,
      summary: draft.document.summary, items: Int64(draft.document.items.count), itemsDone: 0,
      bytesDone: 0, bytesTotal: 0)
    status.state = await state(of: draft)
    status.reason = known[draft.number]?.reason
    status.activeVersion = here?.activeVersion
    if draft.state == .done, let here, here.version == draft.number {
      (status.items, status.itemsDone) = (here.items, here.items)
      (status.bytesTotal, status.bytesDone) = (here.bytesTotal, here.bytesTotal)
      return status
    }
    let items = await downloads(under: draft)
    let progress = progress(of: draft, items)
    (status.itemsDone, status.bytesDone) = (progress.itemsDone, progress.bytesDone)
    status.bytesTotal = progress.bytesTotal
    for (place, download) in items where download.state != .cancelled {
      if status.reason == nil, let reason = download.status.reason, reason.kind != .waiting {
        status.reason = MissionError(
          MissionError(reason, of: nil), item: draft.document.items[place].path)
      }
    }
    return status
  }

  /// Returns the progress of a mission by the items' downloads, with the items' places.
  func progress(
    of draft: Draft, _ items: [(place: Int, download: Download)]
  ) -> MissionProgress {
    var meter =
      meters[draft.number]
      ?? DraftMeter(
        draft.id, version: draft.number, paths: draft.document.items.map(\.path))
    let statuses = items.map { (place: $0.place, status: $0.download.status) }
    let progress = meter.progress(statuses, at: surroundings.steadyClock())
    if known[draft.number]?.isOpen == true { meters[draft.number] = meter }
    return progress
  }

  /// Returns the state of a mission, by the states of the items.
  func state(of draft: Draft) async -> MissionState {
    let state = known[draft.number]?.state ?? draft.state
    if state.isFinal { return state }
    if known[draft.number]?.reason != nil { return .paused }
    let open = await downloads(under: draft).map(\.download.status).filter { !$0.state.isFinal }
    if open.isEmpty || open.contains(where: { $0.state == .downloading }) { return .downloading }
    // An item that waits for a paused one waits for the user, too.
    let isStill = open.allSatisfy { $0.state == .paused || $0.reason?.kind == .waiting }
    return isStill && open.contains { $0.state == .paused } ? .paused : .ready
  }

  /// Returns the app's value of the version in use, or else of the unfinished version.
  ///
  /// - Throws: ``MissionError/Kind/notFound`` if there is no such mission, or it has no payload;
  ///   ``MissionError/Kind/database`` if the payload is of another type.
  public func payload<Value: Decodable & Sendable>(
    of id: String, as type: Value.Type = Value.self
  ) async throws(MissionError) -> Value {
    let name = try Self.name(id)
    // A version is in use shortly before the draft is done.
    let active = try await manager.list().first { $0.id == name }?.activeVersion
    let all = known.values.filter { $0.id == name }.sorted { $0.number < $1.number }
    guard let bytes = (all.last { $0.number == active } ?? all.last)?.payload else {
      throw MissionError(.notFound, "mission \(id) has no payload")
    }
    do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch {
      throw MissionError(.database, "the payload of mission \(id) is not a \(type): \(error)")
    }
  }

  /// Returns the JSON result of a request, from the version in use.
  public func result<Value: Decodable & Sendable>(
    _ path: String, in id: String, as type: Value.Type = Value.self
  ) async throws(MissionError) -> Value {
    let bytes = try await content(of: path, in: id).readAll()
    do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch {
      throw MissionError(.refused, item: path, "the result is not a \(type): \(error)")
    }
  }

  /// Returns true if a complete version is here.
  public func isDownloaded(_ id: String) async throws(MissionError) -> Bool {
    try await manager.isDownloaded(try Self.name(id))
  }

  /// Returns the folder of the version in use; see ``MissionManager/path(_:)-(MissionID)``.
  public func path(_ id: String) async throws(MissionError) -> String {
    try await manager.path(try Self.name(id))
  }

  /// Returns the items of the version in use.
  public func items(_ id: String) async throws(MissionError) -> [MissionFileRow] {
    try await manager.items(try Self.name(id))
  }

  /// Opens an item of the version in use for reading, sealed or not.
  public func content(
    of path: String, in id: String
  ) async throws(MissionError) -> MissionContent {
    try await manager.content(of: path, in: try Self.name(id))
  }

  /// Reads the whole version in use again, and fetches damaged items again if asked to.
  public func verify(
    _ id: String, repairing isRepaired: Bool = false
  ) async throws(MissionError) -> MissionVerification {
    try await manager.verify(try Self.name(id), repairing: isRepaired)
  }

  /// Returns a stream of all events from now on: changed states, fetched items, and the progress of
  /// missions under way, a few times a second.
  public nonisolated func events() -> AsyncStream<MissionEvent> { hub.listen() }
}
