import FerryPlatform

/// The host and the framing of a request, by the headers (RFC 9112 §3.2, §6). Pure.
///
/// Requests that two servers could read differently are refused: the way here may lead through
/// another server.
struct RequestFraming: Equatable {
  /// Bytes of content; `nil` for chunks.
  var declaredLength: Int?
  var expectsContinue = false

  /// - Parameters:
  ///   - version: `HTTP/1.1`, `HTTP/1.0`, …
  ///   - authority: The authority of an absolute target.
  init(
    headers: HTTPHeaders, version: String, authority: String?
  ) throws(HTTPFailure) {
    let isFirst = version == "HTTP/1.0"
    var hosts = 0
    var lengths: [String] = []
    var codings: [String] = []
    var singles = Set<Int>()
    for field in headers.fields {
      guard Self.isToken(field.name), Self.isClean(field.value) else { throw .malformedHeader }
      switch field.name.utf8.count {
      case 4 where field.isNamed("Host"):
        hosts += 1
        try Self.check(host: field.value, authority: authority)
      case 14 where field.isNamed("Content-Length"): lengths.append(field.value)
      case 17 where field.isNamed("Transfer-Encoding"): codings.append(field.value)
      case 6 where field.isNamed("Expect"):
        expectsContinue = expectsContinue || field.value.lowercasedASCII == "100-continue"
      default:
        guard let single = Self.singles.firstIndex(where: field.isNamed) else { continue }
        guard singles.insert(single).inserted else { throw .repeatedHeader }
      }
    }
    guard hosts == 1 || hosts == 0 && isFirst else { throw .malformedHost }
    declaredLength = try Self.length(lengths, codings, allowsChunks: !isFirst)
  }

  private static func length(
    _ lengths: [String], _ codings: [String], allowsChunks: Bool
  ) throws(HTTPFailure) -> Int? {
    guard lengths.count + codings.count <= 1 else { throw .ambiguousLength }
    if let coding = codings.first {
      guard allowsChunks, coding.lowercasedASCII == "chunked" else { throw .ambiguousLength }
      return nil
    }
    guard let text = lengths.first else { return 0 }
    // `Int` takes a sign as well.
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw .ambiguousLength
    }
    return Int(text) ?? .max
  }

  private static func check(host: String, authority: String?) throws(HTTPFailure) {
    let allowed = host.utf8.allSatisfy { byte in
      byte > 0x20 && byte < 0x7F && !Self.notInHosts.contains(byte)
    }
    guard allowed else { throw .malformedHost }
    guard let authority else { return }
    guard !authority.isEmpty, Self.bare(authority) == Self.bare(host) else {
      throw .malformedHost
    }
  }

  /// Other headers that may occur once (RFC 9110 §5.3). Of two of them, each reader could use
  /// another one. Headers with lists, such as `Content-Encoding`, are read with all their lines.
  private static let singles = [
    "Authorization", "Content-Type", "Content-Range", "Range", "If-Range", "If-Modified-Since",
    "If-Unmodified-Since", "Origin", "Sec-Fetch-Site", "Last-Event-ID",
    "Access-Control-Request-Method",
  ]

  private static let notInHosts = Array("/?#@,\\\"<>".utf8)

  /// Returns the authority without case and without the default port of `http`.
  private static func bare(_ authority: String) -> String {
    let lowered = authority.lowercasedASCII
    return lowered.start(before: ":80").map(String.init) ?? lowered
  }

  /// Returns whether a name is a token (RFC 9110 §5.6.2). `Content-Length : 5` would be another
  /// header to the next reader.
  private static func isToken(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.allSatisfy(\.isTokenByte)
  }

  private static func isClean(_ value: String) -> Bool {
    value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }
}
