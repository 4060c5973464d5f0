import FerryCryptography
import FerryPlatform
import FerryProtocol

/// The names of the spaces and mirrors of a group, made from the values of a column; pure.
///
/// ```swift
/// try SpacePattern("account-{}").space(for: "7")  // account-7
/// ```
package struct SpacePattern: Sendable, Equatable {
  private let prefix: String
  private let suffix: String

  /// - Throws: ``MirrorFault`` unless the text contains `{}` once, and can become a space's name.
  package init(_ text: String) throws(MirrorFault) {
    guard let place = text.utf8.firstRange(of: "{}".utf8), !text[place.upperBound...].has("{}")
    else {
      throw MirrorFault(description: "“\(text)” does not contain {} once")
    }
    (prefix, suffix) = (String(text[..<place.lowerBound]), String(text[place.upperBound...]))
    guard SpaceName(prefix + "0" + suffix) != nil else {
      throw MirrorFault(
        description:
          "“\(text)” cannot become a space's name: such a name has 1 to 63 characters of "
          + "A–Z a–z 0–9 . _ -, the first a letter or digit")
    }
  }

  /// Returns the name of a value's space.
  ///
  /// - Throws: ``MirrorFault`` if no space can have the name.
  package func space(for value: String) throws(MirrorFault) -> String {
    guard let name = SpaceName(prefix + value + suffix) else {
      throw MirrorFault(description: "no space can have the name “\(prefix)\(value)\(suffix)”")
    }
    return name.value
  }

  /// The most characters of a group's name: those of the group's mirrors are longer.
  package static let groupNameMax = 30

  /// Returns the name of a value's mirror. Different values have different names.
  static func mirror(of group: String, for value: String) -> String {
    let isShort = value.wholeMatch(of: /[a-z0-9][a-z0-9_-]{0,31}/) != nil
    return "\(group)-"
      + (isShort ? value : "_" + Hexadecimal.text(SHA256.digest(of: value).prefix(15)))
  }
}
