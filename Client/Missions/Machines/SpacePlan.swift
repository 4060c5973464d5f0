/// Reserves disk space for current missions or downloads, before the first byte is fetched (SPEC.md
/// §21). It reads no files: the caller passes the free space.
struct SpacePlan<Owner: Hashable & Sendable, Content: Hashable & Sendable>: Sendable {
  /// The bytes that always stay free.
  let margin: Int64
  /// The bytes still to write for each owner, by content.
  private var missing: [Owner: [Content: Int64]] = [:]

  init(margin: Int64 = 64 << 20) { self.margin = margin }

  /// The bytes still to write for all owners; shared content counts once.
  var reserved: Int64 {
    var largest: [Content: Int64] = [:]
    for contents in missing.values {
      for (hash, bytes) in contents { largest[hash] = max(largest[hash] ?? 0, bytes) }
    }
    return largest.values.reduce(0, &+)
  }

  /// Reserves the bytes still to write for an owner; throws if they exceed the free space.
  mutating func reserve(
    _ contents: [Content: Int64], for id: Owner, free: Int64
  ) throws(SpaceShortage) {
    let before = missing[id]
    missing[id] = contents
    let (sum, isHuge) = reserved.addingReportingOverflow(margin)
    if isHuge || sum > free {
      missing[id] = before
      throw SpaceShortage(needed: isHuge ? .max : sum, free: free)
    }
  }

  /// Stores the missing bytes of a content; written bytes are no longer reserved.
  mutating func wrote(_ content: Content, missing bytes: Int64) {
    for id in Array(missing.keys) where missing[id]?[content] != nil {
      missing[id]?[content] = max(0, bytes)
    }
  }

  /// The owners of reserved space, in any order.
  var owners: [Owner] { Array(missing.keys) }

  /// Releases the space of an ended or paused owner.
  mutating func release(_ id: Owner) { missing[id] = nil }
}

/// A lack of disk space.
struct SpaceShortage: Error, Equatable {
  /// The bytes still to write for all owners, the margin included.
  var needed: Int64
  /// The free bytes.
  var free: Int64

  /// The reason for users.
  var message: String { "it needs \(needed) bytes of disk space, and \(free) are free" }
}
