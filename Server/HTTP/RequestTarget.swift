import FerryPlatform

/// The parts of a request target (RFC 9112 §3.2), decoded.
package struct RequestTarget: Equatable {
  package let path: String
  package let segments: [String]
  package let query: [String: String]
  /// The host of a target in the absolute form; `nil` in the other forms.
  package let authority: String?

  /// Throws `malformedTarget` or `repeatedParameter`. Takes the origin form, the absolute form and
  /// `*`.
  package init(parsing raw: String) throws(HTTPFailure) {
    // By bytes: a combining mark makes one character of itself and the delimiter before it.
    guard raw.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { throw .malformedTarget }
    let (authority, origin) = Self.originForm(Substring(raw))
    self.authority = authority
    let target = origin.utf8
    let pathEnd = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
    let path = target[..<pathEnd]
    self.path = String(Substring(path))
    self.query = try Self.parameters(target[pathEnd...].dropFirst())
    if self.path == "*" || self.path == "/" {
      segments = []
      return
    }
    guard path.first == UInt8(ascii: "/") else { throw .malformedTarget }
    var segments: [String] = []
    let names = path.dropFirst()
      .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    for name in names { segments.append(try Self.decoded(name, plusIsSpace: false)) }
    self.segments = segments
  }

  /// `http://host/path` as authority and path.
  private static func originForm(_ target: Substring) -> (authority: String?, path: Substring) {
    guard target.utf8.first != UInt8(ascii: "/"),
      let scheme = ["http://", "https://"].first(where: { target.lowercasedASCII.begins(with: $0) })
    else { return (nil, target) }
    let rest = Substring(target.utf8.dropFirst(scheme.utf8.count))
    let end =
      rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    let authority = String(rest[..<end])
    guard end < rest.endIndex else { return (authority, "/") }
    return (authority, rest.utf8[end] == UInt8(ascii: "/") ? rest[end...] : "/" + rest[end...])
  }

  private static func parameters(
    _ query: Substring.UTF8View
  ) throws(HTTPFailure) -> [String: String] {
    var parameters: [String: String] = [:]
    for pair in query.split(separator: UInt8(ascii: "&")) {
      let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
      let name = try decoded(pair[..<equals], plusIsSpace: true)
      let value = try decoded(pair[equals...].dropFirst(), plusIsSpace: true)
      guard parameters.updateValue(value, forKey: name) == nil else { throw .repeatedParameter }
    }
    return parameters
  }

  private static func decoded(
    _ text: Substring.UTF8View, plusIsSpace: Bool
  ) throws(HTTPFailure) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = text.makeIterator()
    while let byte = rest.next() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = nibble(rest.next()), let low = nibble(rest.next()) else {
          throw .malformedTarget
        }
        bytes.append(high << 4 | low)
      case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
      default: bytes.append(byte)
      }
    }
    // No valid path contains control characters. A zero byte cuts names short wherever C reads
    // them, and no name contains one.
    if bytes.contains(where: { $0 == 0 || !plusIsSpace && ($0 < 0x20 || $0 == 0x7F) }) {
      throw .malformedTarget
    }
    guard let decoded = String(validating: bytes, as: UTF8.self) else { throw .malformedTarget }
    return decoded
  }

  private static func nibble(_ digit: UInt8?) -> UInt8? {
    switch digit {
    case .some(let digit) where (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit):
      digit - UInt8(ascii: "0")
    case .some(let digit) where (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(digit | 0x20):
      (digit | 0x20) - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
