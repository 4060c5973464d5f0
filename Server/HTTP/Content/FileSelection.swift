import FerryPlatform

/// The selected parts of a file: a request's conditions and ranges, decided (RFC 9110 §13, §14).
/// Pure.
package enum FileSelection: Sendable, Equatable {
  /// 200
  case whole
  /// 206 with one range.
  case partial(Range<Int>)
  /// 206 with several ranges, two at least, as `multipart/byteranges`.
  case multipart([Range<Int>], boundary: String)
  /// 304
  case notModified
  /// 416
  case unsatisfiable
  /// 412
  case preconditionFailed

  /// Decides in the order of RFC 9110 §13.2.2. A file has a tag and no date of change, so
  /// conditions with a date are ignored, and `If-Range` with one does not hold.
  package init(of representation: Representation, for request: HTTPRequest) {
    let (headers, tag) = (request.headers, representation.tag)
    let isGet = request.method == "GET"
    if let list = headers.list(of: "If-Match"),
      !Self.isAny(list), !EntityTag.list(list).contains(where: tag.equalsStrongly)
    {
      self = .preconditionFailed
    } else if let list = headers.list(of: "If-None-Match"),
      Self.isAny(list) || EntityTag.list(list).contains(where: tag.equalsWeakly)
    {
      self = isGet || request.method == "HEAD" ? .notModified : .preconditionFailed
    } else if isGet, let range = headers.list(of: "Range").flatMap(ByteRanges.init(header:)),
      Self.holds(ifRange: headers.list(of: "If-Range"), tag)
    {
      self.init(range.resolved(size: representation.size), of: representation)
    } else {
      self = .whole
    }
  }

  /// The status code of the answer.
  package var status: Int {
    switch self {
    case .whole: 200
    case .partial, .multipart: 206
    case .notModified: 304
    case .preconditionFailed: 412
    case .unsatisfiable: 416
    }
  }

  /// Returns all header fields of the answer but those added by the server itself.
  package func headers(of representation: Representation) -> HTTPHeaders {
    var headers: HTTPHeaders = [
      "Accept-Ranges": "bytes", "ETag": representation.tag.description,
    ]
    switch self {
    case .whole:
      headers["Content-Type"] = representation.mediaType
    case .partial(let range):
      headers["Content-Type"] = representation.mediaType
      headers["Content-Range"] = representation.contentRange(range)
    case .multipart(_, let boundary):
      headers["Content-Type"] = "multipart/byteranges; boundary=\(boundary)"
    case .unsatisfiable:
      headers["Content-Range"] = "bytes */\(representation.size)"
    case .notModified, .preconditionFailed: break
    }
    // A refusal is about this request only; no cache may keep it.
    if status < 400 { headers["Cache-Control"] = representation.cacheControl }
    return headers
  }

  private init(_ resolution: ByteRanges.Resolution, of representation: Representation) {
    switch resolution {
    case .whole: self = .whole
    case .unsatisfiable: self = .unsatisfiable
    case .ranges(let ranges) where ranges.count == 1: self = .partial(ranges[0])
    case .ranges(let ranges): self = .multipart(ranges, boundary: representation.boundary)
    }
  }

  private static func isAny(_ list: String) -> Bool { list.trimmedBlanks == "*" }

  /// Returns whether `Range` counts: without `If-Range`, or when it names exactly these bytes.
  private static func holds(ifRange header: String?, _ tag: EntityTag) -> Bool {
    guard let header else { return true }
    return EntityTag(header: header).map(tag.equalsStrongly) ?? false
  }
}
