/// The rule of all names for people: of devices, tokens and their owners, and titles.
///
/// It is about Unicode scalars: none in a name is invisible, ends a line or changes the direction
/// of the text around it.
package enum ReadableName {
  /// Returns the first scalar that violates the rule, such as `U+202E`; `nil` if there is none.
  package static func hiddenScalar(in text: String) -> String? {
    text.unicodeScalars.first(where: \.isHidden).map { scalar in
      let digits = String(scalar.value, radix: 16, uppercase: true)
      return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
  }
}

extension Unicode.Scalar {
  /// True if the scalar is a control character, ends a line, changes the direction of text, or is
  /// an invisible format character. Joiners are none of these: words and emoji need them.
  fileprivate var isHidden: Bool {
    switch value {
    case 0x00...0x1F, 0x7F...0x9F, 0xAD, 0x034F, 0x061C, 0x115F...0x1160, 0x17B4...0x17B5, 0x180E,
      0x200B, 0x200E...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0x3164, 0xFEFF, 0xFFA0,
      0xFFF0...0xFFFB, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A, 0xE0000...0xE0FFF:
      true
    default: false
    }
  }
}
