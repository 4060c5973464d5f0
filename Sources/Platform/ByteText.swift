// Texts from outside, compared and cut by their bytes.
//
// Swift's `String` compares by canonical equivalence and cuts between `Character`s: U+212A equals
// `K`, and a quote behind U+0600 is no quote. Formats, databases and other programs read bytes.
// `Scripts/check-text.py` reports functions of `String` on text from outside.

extension StringProtocol {
  /// Returns whether both texts have the same bytes.
  package func isSame(as other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }

  /// Returns whether the text's first bytes are those of another one.
  package func begins(with other: some StringProtocol) -> Bool { utf8.starts(with: other.utf8) }

  /// Returns whether the text's last bytes are those of another one.
  package func ends(with other: some StringProtocol) -> Bool {
    utf8.count >= other.utf8.count && utf8.suffix(other.utf8.count).elementsEqual(other.utf8)
  }

  /// Returns whether the bytes of another text are in this one.
  package func has(_ other: some StringProtocol) -> Bool {
    utf8.firstRange(of: other.utf8) != nil
  }

  /// Returns the place of the first mark of ASCII.
  package func first(_ mark: Unicode.Scalar) -> Index? {
    utf8.firstIndex(of: UInt8(ascii: mark))
  }

  /// Returns the place of the last mark of ASCII.
  package func last(_ mark: Unicode.Scalar) -> Index? {
    var last: Index?
    var rest = self[...]
    while let next = rest.first(mark) {
      last = next
      rest = rest[utf8.index(after: next)...]
    }
    return last
  }

  /// Returns the parts between marks of ASCII, empty ones included.
  ///
  /// - Parameter most: the most parts; the last one has the rest.
  package func parts(at mark: Unicode.Scalar, most: Int = .max) -> [SubSequence] {
    utf8.split(
      separator: UInt8(ascii: mark), maxSplits: most - 1, omittingEmptySubsequences: false
    ).map { self[$0.startIndex..<$0.endIndex] }
  }

  /// Returns the parts between occurrences of a text, empty ones included.
  package func parts(between separator: String) -> [SubSequence] {
    var parts: [SubSequence] = []
    var rest = self[...]
    while let found = rest.utf8.firstRange(of: separator.utf8) {
      parts.append(rest[..<found.lowerBound])
      rest = rest[found.upperBound...]
    }
    return parts + [rest]
  }

  /// Returns the parts between marks of ASCII without empty ones.
  package func words(at mark: Unicode.Scalar = " ") -> [SubSequence] {
    utf8.split(separator: UInt8(ascii: mark)).map { self[$0.startIndex..<$0.endIndex] }
  }

  /// The parts between blanks of ASCII: spaces, tabs and line ends. Empty ones are left out.
  package var fields: [SubSequence] {
    utf8.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
      .map { self[$0.startIndex..<$0.endIndex] }
  }

  /// The parts between line ends of ASCII, without empty ones.
  package var lines: [SubSequence] {
    utf8.split { (0x0A...0x0D).contains($0) }.map { self[$0.startIndex..<$0.endIndex] }
  }

  /// Returns the text behind these first bytes; `nil` if it begins with others.
  package func rest(after beginning: some StringProtocol) -> SubSequence? {
    guard begins(with: beginning) else { return nil }
    return self[utf8.index(startIndex, offsetBy: beginning.utf8.count)...]
  }

  /// Returns the text without these last bytes; `nil` if it ends with others.
  package func start(before end: some StringProtocol) -> SubSequence? {
    guard ends(with: end) else { return nil }
    return self[..<utf8.index(endIndex, offsetBy: -end.utf8.count)]
  }

  /// Returns the beginning of the text with at most so many bytes, without a part of a character.
  package func cut(bytes most: Int) -> SubSequence {
    var end = utf8.index(startIndex, offsetBy: most, limitedBy: endIndex) ?? endIndex
    while end < endIndex, utf8[end] & 0xC0 == 0x80 { end = utf8.index(end, offsetBy: -1) }
    return self[..<end]
  }

  /// Returns the text up to the first of some marks of ASCII, or all of it.
  package func until(_ marks: Unicode.Scalar...) -> SubSequence {
    self[..<(utf8.firstIndex { byte in marks.contains { UInt8(ascii: $0) == byte } } ?? endIndex)]
  }

  /// The text without spaces and tabs around it (`OWS` of RFC 9110 §5.6.3).
  package var trimmedBlanks: SubSequence {
    trimmed { $0 == 0x20 || $0 == 0x09 }
  }

  /// The text without spaces, tabs and line ends of ASCII around it.
  package var trimmedASCII: SubSequence { trimmed { $0 == 0x20 || (0x09...0x0D).contains($0) } }

  private func trimmed(_ isBlank: (UInt8) -> Bool) -> SubSequence {
    guard let start = utf8.firstIndex(where: { !isBlank($0) }) else { return self[endIndex...] }
    var end = start
    for place in utf8.indices where place >= start && !isBlank(utf8[place]) {
      end = utf8.index(after: place)
    }
    return self[start..<end]
  }

  /// The text with the letters of ASCII in lower case, and all others as they are.
  package var lowercasedASCII: String {
    String(
      decoding: utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  /// The text with the letters of ASCII in upper case, and all others as they are.
  package var uppercasedASCII: String {
    String(
      decoding: utf8.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }, as: UTF8.self)
  }
}

extension String {
  /// Returns the text with each occurrence of some bytes replaced, from the left.
  package func replacing(bytes old: String, with new: String) -> String {
    var result: [UInt8] = []
    var rest = utf8[...]
    while !old.isEmpty, let found = rest.firstRange(of: old.utf8) {
      result += rest[..<found.lowerBound]
      result += new.utf8
      rest = rest[found.upperBound...]
    }
    return String(decoding: result + rest, as: UTF8.self)
  }
}

extension UInt8 {
  /// True if a token of HTTP, such as a field's name, may contain the byte (RFC 9110 §5.6.2).
  package var isTokenByte: Bool {
    switch self {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}
