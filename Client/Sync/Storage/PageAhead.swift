import FerryProtocol

/// Decodes the pages of a pull list on another thread while earlier changes are applied.
///
/// Decoding takes about as long as applying. Of a page and of the next one, a few batches of changes
/// are in memory at a time. Small pages are decoded when they are due, without another thread.
struct PageAhead {
  private let limits: Limits
  private var next: PageFeed?

  init(limits: Limits) { self.limits = limits }

  /// Begins to decode a page. Returns the page before it, if there is one.
  mutating func begin(_ body: StoredPage) throws -> PageFeed? {
    let previous = next
    next = try PageFeed(body, limits: limits)
    return previous
  }

  /// Returns the last page.
  mutating func end() -> PageFeed? {
    defer { next = nil }
    return next
  }
}
