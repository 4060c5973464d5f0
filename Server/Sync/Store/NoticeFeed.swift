import FerryProtocol

/// A device's notices after a cursor, walked along with the changes of a page.
struct NoticeFeed {
  struct Row {
    let sequence: SequenceNumber
    /// In the form on the wire.
    let body: [UInt8]
  }

  /// Oldest first; perhaps not all, but at least one if there is any.
  private let rows: [Row]
  private var next = 0
  private var taken = JSONWriter()
  /// The newest of the device's notices, even if it was not read; 0 when there is none.
  let newest: SequenceNumber
  /// Up to here nothing is missing between the rows.
  let reach: SequenceNumber

  /// - Parameter newest: The newest of the device's notices, from the same snapshot as the rows.
  init(_ rows: [Row] = [], newest: SequenceNumber = 0) {
    self.rows = rows
    self.newest = newest
    if let last = rows.last?.sequence, last < newest { reach = last } else { reach = .max }
  }

  /// The place of the next one; `nil` after the last notice read.
  var place: SequenceNumber? { next < rows.count ? rows[next].sequence : nil }

  /// Bytes of the taken notices.
  var byteCount: Int { taken.count }

  /// Advances to the next one.
  mutating func advance() {
    taken.element()
    taken.raw(rows[next].body)
    next += 1
  }

  /// Returns the taken notices, comma-separated.
  consuming func finish() -> [UInt8] { taken.finish() }
}
