import FerryPlatform

/// A set of media types, such as `application/json`, `image/*` or `*/*` (RFC 9110 §12.5.1).
public struct MediaRange: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The text as it is sent in `Accept`, parameters such as `q=0.5` included.
  public let description: String
  private let type: String
  private let subtype: String

  /// Reads a range; `nil` if the text is not one.
  public init?(_ text: String) {
    guard text.utf8.allSatisfy({ 0x20...0x7E ~= $0 && $0 != UInt8(ascii: ",") }) else { return nil }
    let names = Self.names(text)
    guard names.count == 2, names.allSatisfy({ !$0.isEmpty && !$0.has(" ") }),
      names[0] != "*" || names[1] == "*"
    else { return nil }
    (description, type, subtype) = (text, names[0], names[1])
  }

  /// Creates a range from a text of the program; a text other than a range is a mistake of the
  /// program.
  public init(stringLiteral text: String) {
    guard let range = MediaRange(text) else {
      preconditionFailure("“\(text)” is not a media range")
    }
    self = range
  }

  /// Returns true if the range has the type in a `Content-Type`, with any parameters.
  public func contains(_ contentType: String) -> Bool {
    let names = Self.names(contentType)
    guard names.count == 2 else { return false }
    return (type == "*" || type == names[0]) && (subtype == "*" || subtype == names[1])
  }

  /// Returns type and subtype in lower case, without parameters and the blanks around both.
  private static func names(_ text: String) -> [String] {
    text.until(";").trimmedBlanks.lowercasedASCII.parts(at: "/", most: 2).map(String.init)
  }
}

/// Rejects the content of a successful response, if the caller does not accept its media type.
struct AcceptedTypes: Sendable, Equatable {
  let ranges: [MediaRange]

  /// The value of `Accept`.
  var field: String { ranges.map(\.description).joined(separator: ", ") }

  /// Checks a response accepted by the filters of the client.
  ///
  /// - Parameter hasBody: true if `response` has the body; the body of a stream arrives later.
  /// - Throws: kind ``NetworkError/Kind/unacceptable(contentType:)``.
  func check(_ response: NetworkResponse, hasBody: Bool) throws(NetworkError) {
    guard response.isSuccess, response.status != 204, response.status != 205 else { return }
    let isEmpty = hasBody ? response.body.isEmpty : response.headers["Content-Length"] == "0"
    if isEmpty { return }
    let type = response.headers.values(of: "Content-Type").first
    // Without a type, the content is any bytes (RFC 9110 §8.3).
    guard !ranges.contains(where: { $0.contains(type ?? "application/octet-stream") }) else {
      return
    }
    let shown = type.map { "“\($0.prefix(80))”" } ?? "without a type"
    throw NetworkError(
      .unacceptable(contentType: type),
      "the response is \(shown), and the request accepts \(field)", response: response)
  }
}
