import FerryProtocol

/// Reserves disk space for current missions, before the first byte of a mission is fetched (SPEC.md
/// §21). It reads no files: the caller passes the free space.
struct SpacePlan: Sendable {
  /// The bytes that always stay free.
  let margin: Int64
  /// The bytes still to write for each current mission, by content.
  private var missing: [MissionID: [ContentHash: Int64]] = [:]

  init(margin: Int64 = 64 << 20) { self.margin = margin }

  /// A lack of space for a mission.
  struct Shortage: Error, Equatable {
    /// The bytes still to write for all missions, the margin included.
    var needed: Int64
    /// The free bytes.
    var free: Int64
  }

  /// The bytes still to write for all missions; shared content counts once.
  var reserved: Int64 {
    var largest: [ContentHash: Int64] = [:]
    for contents in missing.values {
      for (hash, bytes) in contents { largest[hash] = max(largest[hash] ?? 0, bytes) }
    }
    return largest.values.reduce(0, &+)
  }

  /// Reserves the bytes still to write for a mission; throws if they exceed the free space.
  ///
  /// - Parameter extra: further bytes, needed temporarily, such as those of a file sealed into
  ///   another.
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

  /// Stores the missing bytes of a content; written bytes are no longer reserved.
  mutating func wrote(_ hash: ContentHash, missing bytes: Int64) {
    for id in Array(missing.keys) where missing[id]?[hash] != nil {
      missing[id]?[hash] = max(0, bytes)
    }
  }

  /// Releases the space of an ended or paused mission.
  mutating func release(_ id: MissionID) { missing[id] = nil }
}
