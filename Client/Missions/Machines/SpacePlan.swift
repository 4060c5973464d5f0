import FerryProtocol

/// Reserves room on the disk for the missions that are under way, before the first byte of one is
/// fetched (seed row S4.8). It knows of no file: what is free is told to it.
struct SpacePlan: Sendable {
  /// Bytes that stay free whatever is fetched.
  let margin: Int64
  /// What each mission that is under way has still to write: bytes by content.
  private var missing: [MissionID: [ContentHash: Int64]] = [:]

  init(margin: Int64 = 64 << 20) { self.margin = margin }

  /// Room that a mission lacks.
  struct Shortage: Error, Equatable {
    /// Bytes that it and the missions beside it have still to write, the margin included.
    var needed: Int64
    /// Bytes that are free.
    var free: Int64
  }

  /// Bytes that all missions have still to write; content that several bring is written once.
  var reserved: Int64 {
    var largest: [ContentHash: Int64] = [:]
    for contents in missing.values {
      for (hash, bytes) in contents { largest[hash] = max(largest[hash] ?? 0, bytes) }
    }
    return largest.values.reduce(0, &+)
  }

  /// Reserves what a mission has still to write, or refuses where that is more than is free.
  ///
  /// - Parameter extra: bytes that it needs for a while besides, such as those of a file that is
  ///   sealed into another.
  mutating func reserve(
    _ contents: [ContentHash: Int64], for id: MissionID, free: Int64, extra: Int64 = 0
  ) throws(Shortage) {
    let before = missing[id]
    missing[id] = contents
    let (sum, isHuge) = reserved.addingReportingOverflow(margin + extra)
    if isHuge || sum > free {
      missing[id] = before
      throw Shortage(needed: isHuge ? .max : sum, free: free)
    }
  }

  /// So many bytes of a content are still missing; what is written is no longer reserved.
  mutating func wrote(_ hash: ContentHash, missing bytes: Int64) {
    for id in missing.keys where missing[id]?[hash] != nil {
      missing[id]?[hash] = max(0, bytes)
    }
  }

  /// The mission has ended or rests.
  mutating func release(_ id: MissionID) { missing[id] = nil }
}
