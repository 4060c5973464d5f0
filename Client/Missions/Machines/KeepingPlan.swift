import FerryProtocol

/// What becomes of a mission's versions when one of them is put in use, and of what lies in the
/// store when nobody needs it (seed rows S4.4 and S8.3).
enum KeepingPlan {
  /// Versions to remove after `active` was put in use: all but it and the ones in use last before.
  ///
  /// - Parameters:
  ///   - complete: complete versions, the one in use included, in the order in which they were put
  ///     in use.
  ///   - keep: how many versions stay, the one in use included; at least 1.
  static func outdated(_ complete: [Int64], active: Int64, keep: Int) -> [Int64] {
    let others = complete.filter { $0 != active }
    return Array(others.dropLast(max(0, keep - 1)))
  }

  /// How a mission that a database row speaks of goes on after a restart (seed row S4.5).
  enum Restoring: Equatable {
    /// It goes on in its turn.
    case goesOn
    /// It rests until somebody resumes it.
    case rests
    /// Somebody gave it up, or it failed, and the process ended before all of it was removed.
    case remove
    /// It is whole.
    case isThere
  }

  static func restoring(_ state: MissionState, isComplete: Bool) -> Restoring {
    if isComplete { return .isThere }
    switch state {
    case .ready, .downloading: return .goesOn
    case .paused: return .rests
    case .cancelled, .failed, .done: return .remove
    }
  }

  /// What lies in the store's folders.
  struct Found: Sendable, Equatable {
    var objects: [ContentHash] = []
    var partials: [ContentHash] = []
    /// Folders of versions.
    var bundles: [MissionVersion] = []
    /// Folders of versions that were being built.
    var building: [MissionVersion] = []
    /// Content that was being sealed.
    var sealing: [ContentHash] = []

    var count: Int {
      objects.count + partials.count + bundles.count + building.count + sealing.count
    }
  }

  /// What can go. What is being built or sealed can, as long as nobody is at it: the caller asks
  /// the locks.
  static func garbage(_ found: Found, needed: NeededFiles) -> Found {
    Found(
      objects: found.objects.filter { !needed.objects.contains($0) }.sorted(),
      partials: found.partials.filter { !needed.partials.contains($0) }.sorted(),
      bundles: found.bundles.filter { !needed.bundles.contains($0) }.sorted(),
      building: found.building.sorted(), sealing: found.sealing.sorted())
  }
}
