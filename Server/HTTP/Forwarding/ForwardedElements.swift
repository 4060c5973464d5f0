import FerryPlatform

/// The addresses in the values of `X-Forwarded-For` and of `Forwarded` (RFC 7239); pure. Every rule
/// is about bytes.
enum ForwardedElements {
  /// Returns the elements of a line of `X-Forwarded-For`, the last one first. Empty ones are left
  /// out (RFC 9110 §5.6.1).
  static func ofList(_ line: some StringProtocol) -> [Substring.UTF8View.SubSequence] {
    Substring(line).utf8.split(separator: comma).map(trimmed).filter { !$0.isEmpty }.reversed()
  }

  /// Returns the `for` parameters of a line of `Forwarded`, the last one first; `nil` in the place
  /// of an element without one. Throws `malformedForwarding`.
  static func ofForwarded(_ line: String) throws(HTTPFailure) -> [[UInt8]?] {
    var rest = Array(line.utf8)[...]
    var elements: [[UInt8]?] = []
    var address: [UInt8]?
    var isEmpty = true
    while true {
      rest = rest.drop { $0 == space || $0 == tab }
      if let first = rest.first, first != comma, first != semicolon {
        let (name, value) = try pair(&rest)
        isEmpty = false
        if name == Array("for".utf8) {
          guard address == nil else { throw .malformedForwarding }
          address = value
        }
        rest = rest.drop { $0 == space || $0 == tab }
      }
      switch rest.popFirst() {
      case semicolon: continue
      case comma, nil:
        if !isEmpty { elements.append(address) }
        if rest.isEmpty { return elements.reversed() }
        (address, isEmpty) = (nil, true)
      default: throw .malformedForwarding
      }
    }
  }

  /// Reads an address: `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1]` or
  /// `[2001:db8::1]:443`. `nil` for any other text, such as `unknown` or `_hidden`.
  static func address(_ text: some Collection<UInt8>) -> IPAddress? {
    let bytes = Array(text)
    if bytes.first == UInt8(ascii: "[") {
      guard let end = bytes.firstIndex(of: UInt8(ascii: "]")),
        isPort(bytes[(end + 1)...]), bytes[1..<end].contains(UInt8(ascii: ":"))
      else { return nil }
      return IPAddress(bytes[1..<end])
    }
    if let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      bytes.lastIndex(of: bytes[colon]) == colon
    {
      guard isPort(bytes[colon...]) else { return nil }
      return IPAddress(bytes[..<colon])
    }
    return IPAddress(bytes)
  }

  private static let comma = UInt8(ascii: ",")
  private static let semicolon = UInt8(ascii: ";")
  private static let quote = UInt8(ascii: "\"")
  private static let space = UInt8(ascii: " ")
  private static let tab = UInt8(ascii: "\t")

  private static func trimmed(
    _ text: Substring.UTF8View.SubSequence
  ) -> Substring.UTF8View.SubSequence {
    let start = text.drop { $0 == space || $0 == tab }
    guard let last = start.lastIndex(where: { $0 != space && $0 != tab }) else { return start }
    return start[...last]
  }

  /// Returns whether a text is empty, or a colon and 1 to 5 digits.
  private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
    guard let first = text.first else { return true }
    let digits = text.dropFirst()
    return first == UInt8(ascii: ":") && (1...5).contains(digits.count)
      && digits.allSatisfy { (0x30...0x39).contains($0) }
  }

  /// Reads `name=value`; the name in lower case, the value without quotes.
  private static func pair(
    _ rest: inout ArraySlice<UInt8>
  ) throws(HTTPFailure) -> (name: [UInt8], value: [UInt8]) {
    let name = token(&rest)
    guard !name.isEmpty, rest.popFirst() == UInt8(ascii: "=") else { throw .malformedForwarding }
    let lowered = name.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    guard rest.first == quote else {
      let value = token(&rest)
      guard !value.isEmpty else { throw .malformedForwarding }
      return (lowered, value)
    }
    return (lowered, try quoted(&rest))
  }

  private static func quoted(_ rest: inout ArraySlice<UInt8>) throws(HTTPFailure) -> [UInt8] {
    rest = rest.dropFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == quote { return value }
      guard byte == UInt8(ascii: "\\") else {
        value.append(byte)
        continue
      }
      guard let escaped = rest.popFirst() else { break }
      value.append(escaped)
    }
    throw .malformedForwarding
  }

  private static func token(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
    // Many proxies write an address with a port, or an IPv6 address, without quotes.
    let token = rest.prefix { $0.isTokenByte || nodeBytes.contains($0) }
    rest = rest.dropFirst(token.count)
    return Array(token)
  }

  private static let nodeBytes = Array(":[]".utf8)
}
