/// The beginning of a UUID's text. It stands for the UUID with this beginning, as a short commit
/// does in git.
///
/// ```swift
/// UniqueIDPrefix("0198c2f0-1a")?.contains(id)
/// ```
package struct UniqueIDPrefix: Sendable, Equatable {
  /// The fewest characters.
  package static let charactersMin = 4

  /// The lowest UUID with this beginning.
  package let first: UniqueID
  /// The highest one.
  package let last: UniqueID

  /// Reads 4 to 36 characters of a UUID's text; `nil` for anything else. Upper case is accepted.
  package init?(_ text: String) {
    let lowest = "00000000-0000-0000-0000-000000000000"
    let highest = "ffffffff-ffff-ffff-ffff-ffffffffffff"
    guard text.utf8.count >= Self.charactersMin, text.utf8.count <= lowest.utf8.count,
      let first = UniqueID(text + lowest.dropFirst(text.count)),
      let last = UniqueID(text + highest.dropFirst(text.count))
    else { return nil }
    (self.first, self.last) = (first, last)
  }

  /// Returns `true` if a UUID begins with the text.
  package func contains(_ id: UniqueID) -> Bool { first <= id && id <= last }
}

/// The shortest beginnings to distinguish some UUIDs.
///
/// ```swift
/// let short = UniqueIDAbbreviations(ids)
/// short.text(for: ids[0])  // 0198c2f0-1a
/// ```
package struct UniqueIDAbbreviations: Sendable, Equatable {
  /// The fewest characters of a short form, so it stays unique for longer.
  package static let charactersMin = 8

  private let sorted: [UniqueID]

  /// Creates the abbreviations of some UUIDs; duplicates count once.
  package init(_ ids: some Sequence<UniqueID>) {
    sorted = ids.sorted()
  }

  /// Returns the shortest unique beginning of the id's text. It has at least ``charactersMin``
  /// characters and does not end with a hyphen.
  package func text(for id: UniqueID) -> String {
    let text = Array(id.description.utf8)
    // Those next in order share the longest beginning.
    let place = place(of: id)
    let before = sorted[..<place].last
    let after = sorted[place...].first { $0 != id }
    let common = [before, after].compactMap { $0 }.map { other in
      zip(text, other.description.utf8).prefix { $0 == $1 }.count
    }
    var length = max(Self.charactersMin, (common.max() ?? 0) + 1)
    if length < text.count, text[length - 1] == UInt8(ascii: "-") { length += 1 }
    return String(decoding: text.prefix(length), as: UTF8.self)
  }

  /// Returns the place of the first UUID not below `id`.
  private func place(of id: UniqueID) -> Int {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = low + (high - low) / 2
      if sorted[middle] < id { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
