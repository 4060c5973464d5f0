/// The name of a device, set by a user. It is a label: nothing is decided by it (SPEC.md §30).
///
/// A name is safe to show. It has 1 to ``Limits/deviceNameCharacters`` characters. None of them is
/// invisible, ends a line or changes the direction of the text around it.
///
/// ```swift
/// let name = try DeviceName(checking: "Ada's laptop")
/// ```
package struct DeviceName: Hashable, Sendable, CustomStringConvertible {
  /// The characters of the name.
  package let text: String

  /// Checks a text from outside.
  ///
  /// - Throws: ``DeviceNameFault`` with the violated rule.
  package init(checking text: String) throws(DeviceNameFault) {
    if let reason = Self.fault(in: text) { throw DeviceNameFault(reason: reason) }
    self.text = text
  }

  package var description: String { text }

  /// Names compare by bytes, so each change of a name is noticed.
  package static func == (left: DeviceName, right: DeviceName) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }

  /// Returns the reason why a text cannot be a device's name, or `nil` when it can.
  private static func fault(in text: String) -> String? {
    let (scalars, most) = (text.unicodeScalars, Limits.deviceNameCharacters)
    // A long text is not counted to the end.
    guard text.utf8.count <= 4 * most, scalars.count <= most else {
      return "a device's name has at most \(most) characters"
    }
    if let hidden = ReadableName.hiddenScalar(in: text) {
      return "a device's name contains \(hidden), which is not a visible character"
    }
    guard scalars.contains(where: \.isVisible) else {
      return "a device's name has at least one visible character"
    }
    if scalars.first?.isBlank == true || scalars.last?.isBlank == true {
      return "a device's name neither begins nor ends with a space"
    }
    return nil
  }
}

/// The reason why a text is no device's name.
package struct DeviceNameFault: Error, Sendable, Equatable {
  /// The rule violated by the text.
  package let reason: String
}

extension Unicode.Scalar {
  /// True if the scalar is some kind of space.
  fileprivate var isBlank: Bool {
    switch value {
    case 0x20, 0xA0, 0x1680, 0x2000...0x200A, 0x202F, 0x205F, 0x3000: true
    default: false
    }
  }

  /// True if the scalar shows something by itself: neither a space nor a joiner nor a selector.
  fileprivate var isVisible: Bool {
    switch value {
    case 0x200C...0x200D, 0xFE00...0xFE0F: false
    default: !isBlank
    }
  }
}
