/// Connections in lines. Each line has the order in which they entered it. All calls take constant
/// time.
struct ConnectionLines {
  private struct Place {
    var line: Int
    var older: Int?
    var newer: Int?
  }

  private struct Ends {
    var oldest: Int
    var newest: Int
  }

  private var places: [Int: Place] = [:]
  private var ends: [Ends?]

  init(count: Int) {
    ends = Array(repeating: nil, count: count)
  }

  /// Returns the first line of `lines` with a connection.
  func firstInUse(of lines: Range<Int>) -> Int? {
    lines.first { ends[$0] != nil }
  }

  /// Returns the first connection of a line.
  func oldest(of line: Int) -> Int? { ends[line]?.oldest }

  /// Adds a connection to the end of a line.
  mutating func append(_ number: Int, to line: Int) {
    let newest = ends[line]?.newest
    places[number] = Place(line: line, older: newest, newer: nil)
    if let newest { places[newest]?.newer = number }
    ends[line] = Ends(oldest: ends[line]?.oldest ?? number, newest: number)
  }

  /// Removes a connection from a line, if it is in one.
  mutating func remove(_ number: Int) {
    guard let place = places.removeValue(forKey: number) else { return }
    if let older = place.older { places[older]?.newer = place.newer }
    if let newer = place.newer { places[newer]?.older = place.older }
    guard let old = ends[place.line] else { return }
    let oldest = old.oldest == number ? place.newer : old.oldest
    let newest = old.newest == number ? place.older : old.newest
    if let oldest, let newest {
      ends[place.line] = Ends(oldest: oldest, newest: newest)
    } else {
      ends[place.line] = nil
    }
  }
}
