/// A part of the content of an answer: separate bytes, or a range of the representation.
package enum ContentPart: Sendable, Equatable {
  case bytes([UInt8])
  case range(Range<Int>)

  /// In bytes.
  package var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .range(let range): range.count
    }
  }

  /// Returns the parts of `multipart/byteranges` (RFC 9110 §14.6).
  static func multipart(
    _ ranges: [Range<Int>], of representation: Representation, _ boundary: String
  ) -> [ContentPart] {
    var parts: [ContentPart] = []
    var separator = "--\(boundary)\r\n"
    for range in ranges {
      let head = """
        \(separator)Content-Type: \(representation.mediaType)\r
        Content-Range: \(representation.contentRange(range))\r
        \r

        """
      parts += [.bytes(Array(head.utf8)), .range(range)]
      separator = "\r\n--\(boundary)\r\n"
    }
    return parts + [.bytes(Array("\r\n--\(boundary)--\r\n".utf8))]
  }
}

/// The answer to `GET` or `HEAD` for content elsewhere: the head, and the parts to fetch. Pure.
package struct RelayPlan: Sendable {
  package let status: Int
  package let headers: HTTPHeaders
  /// In the order in which they are sent; none if no content follows the head.
  package let parts: [ContentPart]
  /// The size of the content in the head, in bytes.
  private let count: Int

  /// Decides as for a file; see ``FileSelection``.
  package init(of representation: Representation, for request: HTTPRequest) {
    let selection = FileSelection(of: representation, for: request)
    status = selection.status
    headers = selection.headers(of: representation)
    let whole = 0..<representation.size
    let parts: [ContentPart] =
      switch selection {
      case .whole, .notModified: [.range(whole)]
      case .partial(let range): [.range(range)]
      case .multipart(let ranges, let boundary):
        ContentPart.multipart(ranges, of: representation, boundary)
      case .unsatisfiable, .preconditionFailed: []
      }
    count = parts.reduce(0) { $0 + $1.count }
    self.parts = request.method == "HEAD" || status == 304 || count == 0 ? [] : parts
  }

  /// Returns the answer, whose content is written to `stream`.
  package func response(_ stream: HTTPStream) -> HTTPResponse {
    HTTPResponse(status: status, headers: headers, body: .relay(stream, count: count))
  }
}
