import FerryProtocol

/// The spaces of a grant: one by its name, all with a common prefix (`list-*`), or all (`*`).
package struct SpacePattern: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// As it is written: a name, the beginning of names and `*`, or `*` alone.
  package let text: String

  /// Every space, and the server itself.
  package static let everything = SpacePattern(known: "*")

  private init(known text: String) { self.text = text }

  /// One space.
  package init(_ space: SpaceName) { text = space.value }

  /// Returns `nil` unless the text is `*`, a space's name, or such a name and `*`.
  package init?(_ text: String) {
    let name = text.utf8.last == UInt8(ascii: "*") ? String(text.dropLast()) : text
    guard text == "*" || SpaceName(name) != nil else { return nil }
    self.text = text
  }

  /// The space, if it is only one.
  package var space: SpaceName? { isPrefix ? nil : SpaceName(text) }

  // Names are ASCII, so these bound them in every order by bytes.

  /// The least matching name, or a text before it.
  var first: String { isPrefix ? String(text.dropLast()) : text }

  /// The greatest matching name, or a text after it.
  var last: String { isPrefix ? text.dropLast() + "\u{7F}" : text }

  private var isPrefix: Bool { text.utf8.last == UInt8(ascii: "*") }

  /// Returns whether every space of the other pattern is one of this.
  package func covers(_ other: SpacePattern) -> Bool {
    guard isPrefix else { return self == other }
    return other.text.utf8.starts(with: text.utf8.dropLast())
  }

  package static func < (left: SpacePattern, right: SpacePattern) -> Bool {
    left.text < right.text
  }

  package var description: String { text }
}
