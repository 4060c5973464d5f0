extension HTTPResponse {
  /// Answers `GET` or `HEAD` with a file: whole, in parts, or not at all if a condition of the
  /// request requires that.
  ///
  /// A 416 or 412 has no content; the caller may add some. The content of a 304 is not sent and
  /// only states the size (RFC 9110 §8.6). Nothing is read here, so it never blocks.
  package init(
    answering request: HTTPRequest, with content: ContentSegment, tag: EntityTag,
    mediaType: String, cacheControl: String? = nil
  ) {
    let representation = Representation(
      size: content.count, tag: tag, mediaType: mediaType, cacheControl: cacheControl)
    let selection = FileSelection(of: representation, for: request)
    let body: Body =
      switch selection {
      case .whole, .notModified: Body(content)
      case .partial(let range): Body(content[range])
      case .multipart(let ranges, let boundary):
        .segments(
          SegmentedContent(
            ContentPart.multipart(ranges, of: representation, boundary).map { part in
              switch part {
              case .bytes(let bytes): .bytes(bytes)
              case .range(let range): content[range]
              }
            }))
      case .unsatisfiable, .preconditionFailed: .bytes([])
      }
    self.init(
      status: selection.status, headers: selection.headers(of: representation), body: body)
  }

  /// Returns the bytes of content sent to answer `method`; nil while this is unknown.
  package func contentCount(for method: String) -> Int? {
    sendsContent(for: method) ? body.count : 0
  }

  /// Returns whether the content follows the headers (RFC 9110 §6.4.1).
  func sendsContent(for method: String) -> Bool {
    method != "HEAD" && status != 304 && status != 204
  }
}

extension HTTPResponse.Body {
  /// In bytes; nil for a live body.
  package var count: Int? {
    switch self {
    case .bytes(let bytes): bytes.count
    case .file(let content): content.count
    case .segments(let content): content.count
    case .relay(_, let count): count
    case .stream: nil
    }
  }

  fileprivate init(_ segment: ContentSegment) {
    switch segment {
    case .bytes(let bytes): self = .bytes(bytes)
    case .file(let content): self = .file(content)
    }
  }
}
