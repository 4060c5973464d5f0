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

  func removeAll() throws { try connection.run("DELETE FROM ferry_staged") }
}
