/// Addresses in the one form in which they are compared (RFC 3986 §6.2).
public enum ContentAddress {
  /// The address with scheme and host in lower case, without the scheme's own port and without a
  /// fragment, and with every character encoded that needs not stand for itself.
  ///
  /// Two ways to write a character are one address here, so `a,b` and `a%2Cb` are the same; only
  /// what delimits (`/` in a path, `&`, `=` and `+` in a query) keeps its difference to `%XX`.
  public static func canonical(_ url: String) -> String {
    let whole = url.prefix { $0 != "#" }
    guard let schemeEnd = whole.firstRange(of: "://") else { return encoded(whole) }
    let rest = whole[schemeEnd.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let tail = rest[authority.endIndex...]
    let scheme = whole[..<schemeEnd.lowerBound].lowercased()
    let path = tail.hasPrefix("/") ? encoded(tail) : "/" + encoded(tail)
    return scheme + "://" + host(authority, scheme: scheme) + path
  }

  /// Scheme, host and port of a canonical address.
  static func origin(of canonical: String) -> String {
    guard let schemeEnd = canonical.firstRange(of: "://") else { return "" }
    let end = canonical[schemeEnd.upperBound...].firstIndex { $0 == "/" || $0 == "?" }
    return String(canonical[..<(end ?? canonical.endIndex)])
  }

  /// The canonical form of what a field says, seen from `base`: an absolute address, or one that
  /// begins with a slash. Nil for others.
  static func resolved(_ reference: String, against base: String) -> String? {
    if reference.contains("://") { return canonical(reference) }
    guard reference.hasPrefix("/"), !reference.hasPrefix("//") else { return nil }
    return canonical(origin(of: base) + reference)
  }

  private static func host(_ authority: Substring, scheme: String) -> String {
    let parts = authority.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    let user = parts.count == 2 ? parts[0] + "@" : ""
    var host = (parts.last ?? "").lowercased()
    let ordinary = scheme == "https" ? ":443" : scheme == "http" ? ":80" : ":"
    for ending in [ordinary, ":"] where host.hasSuffix(ending) {
      host.removeLast(ending.count)
    }
    return user + host
  }

  private static func encoded(_ text: Substring) -> String {
    let bytes = Array(text.utf8)
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
    guard index + 1 < bytes.count, bytes[index] != UInt8(ascii: "+") else { return nil }
    return UInt8(String(decoding: bytes[index...index + 1], as: UTF8.self), radix: 16)
  }
}
