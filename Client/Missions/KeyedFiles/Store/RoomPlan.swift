/// Decides whether a new file fits within a store's limit.
struct RoomPlan: Equatable, Sendable {
  enum Verdict: Equatable {
    /// It fits.
    case fits
    /// It fits after the removal of other files with this number of bytes.
    case removing(Int64)
    /// It fits only if a user removes files with this number of bytes.
    case lacking(Int64)
    /// It never fits.
    case tooLarge
  }

  let options: FileStoreOptions

  /// Returns the verdict on a file of `added` bytes instead of one of `replaced` bytes, while all
  /// files have `used` bytes.
  func verdict(added: Int64, replaced: Int64, used: Int64) -> Verdict {
    guard let limit = options.bytesMax else { return .fits }
    if added > limit { return .tooLarge }
    // A smaller file is welcome, also if a higher limit held before.
    if added <= replaced { return .fits }
    let excess = used - replaced + added - limit
    if excess <= 0 { return .fits }
    return options.overflow == .fail ? .lacking(excess) : .removing(excess)
  }

  /// Returns the most bytes for a new file, so a long one fails early.
  func bytesMax(replaced: Int64, used: Int64) -> Int64 {
    guard let limit = options.bytesMax else { return .max }
    if options.overflow == .removeLeastRecentlyUsed { return limit }
    return max(replaced, limit - (used - replaced))
  }
}
