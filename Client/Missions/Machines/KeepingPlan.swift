import FerryProtocol

/// Decides which versions of a mission stay after one of them is put in use, and which files in the
/// store are garbage (SPEC.md §21).
enum KeepingPlan {
  /// Returns the versions to remove after `active` was put in use: all except this version and the
  /// last ones before it.
  ///
  /// - Parameters:
  ///   - complete: complete versions, the one in use included, in the order of their activation.
  ///   - keep: how many versions stay, the one in use included; at least 1.
  static func outdated(_ complete: [Int64], active: Int64, keep: Int) -> [Int64] {
    let others = complete.filter { $0 != active }
    return Array(others.dropLast(max(0, keep - 1)))
  }

  /// How the mission of a database row continues after a restart (SPEC.md §21).
  enum Restoring: Equatable {
    /// The mission continues when its turn comes.
    case goesOn
    /// The mission stays paused until the user resumes it.
    case rests
    /// The mission was cancelled or failed, and the process ended before the files were removed.
    case remove
    /// The mission is complete.
    case complete
  }

  static func restoring(_ state: MissionState, isComplete: Bool) -> Restoring {
    if isComplete { return .complete }
    switch state {
    case .ready, .downloading: return .goesOn
    case .paused: return .rests
    case .cancelled, .failed, .done: return .remove
    }
  }

  /// The content of the store's folders.
  struct Found: Sendable, Equatable {
    var objects: [ContentHash] = []
    var partials: [ContentHash] = []
    /// Folders of versions.
    var bundles: [MissionVersion] = []
    /// Folders of unfinished versions.
    var building: [MissionVersion] = []

    var count: Int { objects.count + partials.count + bundles.count + building.count }
  }

  /// Returns removable files. Unfinished ones may be removed only if no process works on them: the
  /// caller checks the locks.
  static func garbage(_ found: Found, needed: NeededFiles) -> Found {
    Found(
      objects: found.objects.filter { !needed.objects.contains($0) }.sorted(),
      partials: found.partials.filter { !needed.partials.contains($0) }.sorted(),
      bundles: found.bundles.filter { !needed.bundles.contains($0) }.sorted(),
      building: found.building.sorted())
  }
}
