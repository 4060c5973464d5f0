import FerryCompression
import FerryProtocol
import FerrySQLite

/// The pages of a pull list that is not complete: `ferry_staged`. No reader sees them.
struct StagedPages {
  let connection: SQLiteConnection
  let limits: Limits

  /// The fewest bytes of a page that is compressed. A small page repeats little.
  private static let compressedMin = 2_048

  func isEmpty() throws -> Bool { try !connection.exists("SELECT 1 FROM ferry_staged LIMIT 1") }

  /// Returns the number of staged changes.
  func changeCount() throws -> Int {
    try connection.count("SELECT coalesce(sum(changes), 0) FROM ferry_staged")
  }

  func append(_ body: [UInt8], changes: Int) throws {
    // Compression has to save a fifth of the size at least: so much less is written twice, read,
    // and freed.
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

  /// Passes the pages as ``forEach(last:_:)`` does. Between two pages the connection reads nothing, so that
  /// `body` may write in transactions of its own beside other processes.
  func forEachApart(last: [UInt8], _ body: (PageFeed) throws -> Void) throws {
    var place = Int64.min
    func next() throws -> StoredPage? {
      try connection.first(
        "SELECT page, body FROM ferry_staged WHERE page > ? ORDER BY page LIMIT 1", place
      ) { row in
        place = row.int64(0)
        return StoredPage(row.blob(1))
      }
    }
    var page = try next().map { try PageFeed($0, limits: limits) }
    while let begun = page {
      page = try next().map { try PageFeed($0, limits: limits) }
      try body(begun)
    }
    try body(PageFeed(.plain(last), limits: limits))
  }

  func removeAll() throws { try connection.run("DELETE FROM ferry_staged") }
}
