import FerryPlatform

/// A representation's tag (RFC 9110 §8.8.3): `"abc"`, or `W/"abc"` when it is weak.
package struct EntityTag: Sendable, Equatable, CustomStringConvertible {
  /// The text between the quotes.
  package let opaque: String
  /// True if equal tags promise equal meaning only, and not equal bytes.
  package let isWeak: Bool

  /// Creates a strong tag. `opaque` holds visible characters only, and no quotes.
  package init(strong opaque: String) {
    precondition(opaque.utf8.allSatisfy(Self.isTagByte), "no entity tag: \(opaque)")
    self.opaque = opaque
    isWeak = false
  }

  /// Reads exactly one tag of a header; `nil` if the text is anything else, such as a date.
  package init?(header text: String) {
    var rest = text.trimmedBlanks
    guard let tag = Self.next(&rest), rest.isEmpty else { return nil }
    self = tag
  }

  /// As headers write it.
  package var description: String { (isWeak ? "W/" : "") + "\"\(opaque)\"" }

  /// Returns whether both are strong and equal (RFC 9110 §8.8.3.2).
  package func equalsStrongly(_ other: EntityTag) -> Bool {
    !isWeak && !other.isWeak && opaque == other.opaque
  }

  /// Returns whether both are equal, be they weak or strong.
  package func equalsWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }

  /// Returns the tags of a list, up to the first thing of another form.
  package static func list(_ text: String) -> [EntityTag] {
    var tags: [EntityTag] = []
    var rest = Substring(text)
    while true {
      rest = Substring(rest.utf8.drop { ", \t".utf8.contains($0) })
      guard let tag = next(&rest) else { return tags }
      tags.append(tag)
      rest = rest.trimmedBlanks
      guard rest.isEmpty || rest.begins(with: ",") else { return tags }
    }
  }

  private init(opaque: String, isWeak: Bool) {
    self.opaque = opaque
    self.isWeak = isWeak
  }

  /// Removes a tag from the front of the text and returns it.
  private static func next(_ rest: inout Substring) -> EntityTag? {
    let weak = rest.rest(after: "W/")
    guard let text = (weak ?? rest).rest(after: "\"") else { return nil }
    guard let end = text.utf8.firstIndex(where: { !isTagByte($0) }),
      text.utf8[end] == UInt8(ascii: "\"")
    else { return nil }
    rest = text[text.utf8.index(after: end)...]
    return EntityTag(opaque: String(text[..<end]), isWeak: weak != nil)
  }

  /// `etagc`: visible, and not a quote; bytes above ASCII count as visible.
  private static func isTagByte(_ byte: UInt8) -> Bool {
    byte == 0x21 || (0x23...0x7E).contains(byte) || byte >= 0x80
  }
}
