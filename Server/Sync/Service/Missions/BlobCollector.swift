import FerryMissionServer
import FerryProtocol

/// The removal of content without any use in a space, in the background and a little at a time.
///
/// Missions in force need their content. Replaced versions need it for ``graceStandard`` more.
/// Publishers hold the content meanwhile, and content to remove is looked up under the same lock.
/// So no content goes right before a publication names it.
package struct BlobCollector: Sendable {
  /// The time for which former versions stay readable, and unpublished uploads stay stored: a week,
  /// in milliseconds.
  package static let graceStandard: Int64 = 7 * 86_400_000
  /// Files looked up, and removed, under one lock.
  private static let slice = 256

  /// The entries and files removed by a run.
  package struct Result: Sendable, Equatable {
    /// Entries of the content of former versions.
    package var entries = 0
    package var files = 0
    package var bytes: Int64 = 0
    /// Unfinished uploads and drafts.
    package var unfinished = 0

    package init() {}
  }

  private let store: any SyncStore
  private let blobs: any ContentStore
  private let clock: ServiceClock
  private let log: ServiceLog
  private let sleep: @Sendable (Duration) async throws -> Void

  /// - Parameter sleep: How time passes between runs; throws when it is to end.
  package init(
    store: any SyncStore, blobs: any ContentStore, clock: ServiceClock, log: ServiceLog,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    (self.store, self.blobs, self.clock, self.log) = (store, blobs, clock, log)
    self.sleep = sleep
  }

  /// Runs again and again until the task is cancelled. A failed run is logged.
  package func run(every interval: Duration) async {
    while (try? await sleep(interval)) != nil {
      do {
        let result = try await collect()
        if result.files > 0 {
          log.write(
            .info, "content removed",
            detail: "\(result.files.grouped) files, \(result.bytes.grouped) bytes")
        }
      } catch {
        log.write(error)
      }
    }
  }

  /// Runs once.
  ///
  /// - Parameter grace: See ``graceStandard``.
  package func collect(
    grace: Int64 = BlobCollector.graceStandard
  ) async throws(MissionFailure) -> Result {
    // Content that arrives within the clock's current second is not older than it.
    let moment = clock.wall() - max(0, grace)
    let second = grace <= 0 ? Int64.max : moment / 1_000
    var result = Result()
    result.entries = try await MissionFailure.asking { () async throws(StoreError) in
      try await store.endBlobs(before: moment)
    }
    let removal = try await holding { () async throws(MissionFailure) in
      try await blobs.content { (blobs) async throws(BlobError) in
        try await blobs.removeUnfinished(before: second)
      }
    }
    result.unfinished = removal.count
    for failure in removal.failures {
      log.write(.warning, "an unfinished upload cannot be removed", detail: failure.description)
    }
    var place: String?
    repeat {
      let page = try await blobs.content { (blobs) async throws(BlobError) in
        try await blobs.page(from: place, before: second)
      }
      var rest = page.hashes[...]
      while !rest.isEmpty {
        try await remove(Array(rest.prefix(Self.slice)), &result)
        rest = rest.dropFirst(Self.slice)
      }
      place = page.next
    } while place != nil
    return result
  }

  private func remove(
    _ hashes: [ContentHash], _ result: inout Result
  ) async throws(MissionFailure) {
    let removed = try await holding { () async throws(MissionFailure) in
      let needed = Set(
        try await MissionFailure.asking { () async throws(StoreError) in
          try await store.neededBlobs(among: hashes)
        })
      return try await blobs.content { (blobs) async throws(BlobError) in
        try await blobs.remove(hashes.filter { !needed.contains($0) })
      }
    }
    result.files += removed.count
    result.bytes += removed.reduce(0, +)
  }

  /// Runs `body` while no publication runs.
  private func holding<T>(
    _ body: () async throws(MissionFailure) -> T
  ) async throws(MissionFailure) -> T {
    let hold = try await ContentHold(blobs, store, isExclusive: true)
    defer { withExtendedLifetime(hold) {} }
    return try await body()
  }
}

extension ServiceLog {
  /// Writes a line for a failed call about missions.
  func write(_ failure: MissionFailure) {
    switch failure {
    case .refused: break
    case .store(let error): write(error)
    case .content(let error):
      write(.error, "the missions' content cannot be read or written", detail: error.description)
    case .key(let error):
      write(.error, "there is no key to sign missions with", detail: error.description)
    }
  }
}
