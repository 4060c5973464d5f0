import FerryPlatform

extension ContentCoding {
  /// Returns the coding of a response, or nil for none, from a request's `Accept-Encoding`.
  ///
  /// The highest weight wins and zstd wins a tie. Returns nil if the header is absent or empty, or
  /// if it names no known coding. Returns nil also if `identity` has a higher weight (RFC 9110
  /// §12.5.3). Malformed elements are ignored.
  package static func negotiate(acceptEncoding: String?) -> ContentCoding? {
    guard let acceptEncoding else { return nil }
    var weights: [ContentCoding: Int] = [:]
    var wildcard = 0
    var identity = 0
    for element in acceptEncoding.words(at: ",") {
      guard let (token, weight) = weighted(element) else { continue }
      switch token {
      case "*": wildcard = weight
      case "identity": identity = weight
      default:
        if let coding = ContentCoding(token: token) { weights[coding] = weight }
      }
    }
    var best: (coding: ContentCoding, weight: Int)?
    for coding in allCases {
      let weight = weights[coding] ?? wildcard
      if weight > (best?.weight ?? 0) { best = (coding, weight) }
    }
    guard let best, best.weight >= identity else { return nil }
    return best.coding
  }

  /// Reads one list element: the coding in lower case and the weight in thousandths.
  private static func weighted(_ element: Substring) -> (token: String, weight: Int)? {
    let parts = element.parts(at: ";")
    let token = parts[0].trimmedBlanks.lowercasedASCII
    guard !token.isEmpty, parts.count <= 2 else { return nil }
    guard parts.count == 2 else { return (token, 1000) }
    let parameter = parts[1].trimmedBlanks
    guard let quality = parameter.rest(after: "q=") ?? parameter.rest(after: "Q="),
      let weight = thousandths(quality)
    else { return nil }
    return (token, weight)
  }

  /// Reads a `qvalue` of RFC 9110 §12.4.2: 0 or 1 with at most three decimals.
  private static func thousandths(_ text: Substring) -> Int? {
    let digits = Array(text.utf8)
    guard let first = digits.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1")
    else { return nil }
    guard digits.count > 1 else { return Int(first - UInt8(ascii: "0")) * 1000 }
    guard digits[1] == UInt8(ascii: "."), digits.count <= 5 else { return nil }
    var value = Int(first - UInt8(ascii: "0")) * 1000
    var scale = 100
    for digit in digits[2...] {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      value += Int(digit - UInt8(ascii: "0")) * scale
      scale /= 10
    }
    return value <= 1000 ? value : nil
  }
}
