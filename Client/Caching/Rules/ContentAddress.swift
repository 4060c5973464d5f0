import FerryPlatform

/// Addresses in one canonical form for comparison (RFC 3986 §6.2).
public enum ContentAddress {
  /// Returns the address in canonical form: scheme and host in lower case, no default port, no
  /// fragment. Unreserved characters and delimiters are plain, all others percent-encoded.
  ///
  /// The two ways to write a character give one address, so `a,b` and `a%2Cb` are equal. Only
  /// delimiters (`/` in a path, `&`, `=` and `+` in a query) remain different from their `%XX`.
  ///
  /// It splits by the bytes of UTF-8, as servers do: a combining mark after a delimiter does not
  /// change the delimiter.
  public static func canonical(_ url: String) -> String {
    let whole = url.utf8.prefix { $0 != UInt8(ascii: "#") }
    guard let schemeEnd = schemeEnd(in: whole) else { return encoded(whole) }
    let rest = whole[schemeEnd.upperBound...]
    let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
    let tail = rest[authority.endIndex...]
    let scheme = Substring(whole[..<schemeEnd.lowerBound]).lowercasedASCII
    let path = tail.first == UInt8(ascii: "/") ? encoded(tail) : "/" + encoded(tail)
    return scheme + "://" + host(authority, scheme: scheme) + path
  }

  /// Returns scheme, host and port of a canonical address.
  static func origin(of canonical: String) -> String {
    guard let schemeEnd = schemeEnd(in: canonical.utf8[...]) else { return "" }
    let end = canonical.utf8[schemeEnd.upperBound...].firstIndex {
      $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?")
    }
    return String(canonical[..<(end ?? canonical.endIndex)])
  }

  /// Returns the canonical form of a field's address, relative to `base`: an absolute address, or
  /// one with a slash at the beginning. `nil` for others.
  static func resolved(_ reference: String, against base: String) -> String? {
    if schemeEnd(in: reference.utf8[...]) != nil { return canonical(reference) }
    guard reference.utf8.starts(with: "/".utf8), !reference.utf8.starts(with: "//".utf8) else {
      return nil
    }
    return canonical(origin(of: base) + reference)
  }

  /// Returns the range of the first `://`.
  private static func schemeEnd(in text: Substring.UTF8View) -> Range<String.Index>? {
    text.firstRange(of: Array("://".utf8))
  }

  private static func host(_ authority: Substring.UTF8View, scheme: String) -> String {
    let parts = authority.split(
      separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
    let user = parts.count == 2 ? String(Substring(parts[0])) + "@" : ""
    var host = Array(Substring(parts.last ?? authority).lowercasedASCII.utf8)
    let ordinary = scheme == "https" ? ":443" : scheme == "http" ? ":80" : ":"
    for ending in [ordinary, ":"] where host.reversed().starts(with: ending.utf8.reversed()) {
      host.removeLast(ending.utf8.count)
    }
    return user + String(decoding: host, as: UTF8.self)
  }

  private static func encoded(_ text: Substring.UTF8View) -> String {
    let bytes = Array(text)
    var result: [UInt8] = []
    var isQuery = false
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      if byte == UInt8(ascii: "%"), let value = hexadecimal(bytes, at: index + 1) {
        append(value, isDelimiter: false, to: &result)
        index += 3
        continue
      }
      let isDelimiter = isQuery ? "&=+".utf8.contains(byte) : "/?".utf8.contains(byte)
      append(byte, isDelimiter: isDelimiter, to: &result)
      isQuery = isQuery || byte == UInt8(ascii: "?")
      index += 1
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func append(_ byte: UInt8, isDelimiter: Bool, to result: inout [UInt8]) {
    let isPlain: Bool =
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
      default: "-._~".utf8.contains(byte)
      }
    if isPlain || isDelimiter { return result.append(byte) }
    let digits = Array("0123456789ABCDEF".utf8)
    result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
  }

  private static func hexadecimal(_ bytes: [UInt8], at index: Int) -> UInt8? {
    guard index + 1 < bytes.count, let high = digit(bytes[index]),
      let low = digit(bytes[index + 1])
    else { return nil }
    return high << 4 | low
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x37
    case 0x61...0x66: byte - 0x57
    default: nil
    }
  }
}
