import FerryCompression
import FerryProtocol
import FerrySQLite

/// The pages of an incomplete pull list: `ferry_staged`. No reader sees them.
struct StagedPages {
  let connection: SQLiteConnection
  let limits: Limits

  /// The fewest bytes of a compressed page. A small page repeats little.
  private static let compressedMin = 2_048

  func isEmpty() throws -> Bool { try !connection.exists("SELECT 1 FROM ferry_staged LIMIT 1") }

  /// Returns the number of staged changes.
  func changeCount() throws -> Int {
    try connection.count("SELECT coalesce(sum(changes), 0) FROM ferry_staged")
  }

  func append(_ body: [UInt8], changes: Int) throws {
    // Compression must save at least a fifth of the size: so much less is written twice, read, and
    // freed.
    let stored =
      body.count < Self.compressedMin
      ? body : try ContentCoding.preferred.compressQuickly(body)
    try connection.run("INSERT INTO ferry_staged(changes, body) VALUES (?, ?)", changes, stored)
  }

  /// Passes the pages, and the last one if it is given, to `body`, one by one. Another thread
  /// decodes a page while the one before it is in use.
  func forEach(last: [UInt8]? = nil, _ body: (PageFeed) throws -> Void) throws {
    var begun: PageFeed?
    func begin(_ page: StoredPage) throws {
      let next = try PageFeed(page, limits: limits)
      if let begun { try body(begun) }
      begun = next
    }
    try connection.forEach("SELECT body FROM ferry_staged ORDER BY page") { row in
      try begin(StoredPage(row.blob(0)))
    }
    if let last { try begin(.plain(last)) }
    if let begun { try body(begun) }
  }

  func removeAll() throws { try connection.run("DELETE FROM ferry_staged") }
}

/// Reads the pages of a complete list one by one. The connection reads nothing between two pages, so that its
/// owner may write in transactions of its own beside other processes.
struct StagedPageCursor {
  /// Selects the page after a place.
  static let selection =
    "SELECT page, body FROM ferry_staged WHERE page > ? ORDER BY page LIMIT 1"

  private let pages: StagedPages
  private var last: [UInt8]?
  private var place = Int64.min
  private var hasBegun = false
  /// The page after the one in use, which another thread decodes.
  private var ahead: PageFeed?

  /// - Parameter last: the last page, which is not staged.
  init(_ pages: StagedPages, last: [UInt8]) { (self.pages, self.last) = (pages, last) }

  /// Returns the next page; `nil` after the last one.
  mutating func next() throws -> PageFeed? {
    if !hasBegun { ahead = try read() }
    hasBegun = true
    let page = ahead
    ahead = page == nil ? nil : try read()
    return page
  }

  private mutating func read() throws -> PageFeed? {
    let staged = try pages.connection.first(Self.selection, place) {
      ($0.int64(0), StoredPage($0.blob(1)))
    }
    if let (found, body) = staged {
      place = found
      return try PageFeed(body, limits: pages.limits)
    }
    defer { last = nil }
    return try last.map { try PageFeed(.plain($0), limits: pages.limits) }
  }
}
