import FerryProtocol

/// The part of an upload in a request: `Content-Range: bytes a-b/total` (RFC 9110 §14.4); pure.
struct UploadRange: Sendable, Equatable {
  /// The offset of the part.
  let offset: Int64
  /// Bytes of the whole.
  let total: Int64

  /// - Parameters:
  ///   - header: The header; without it the body is the whole.
  ///   - count: Bytes of the body.
  init(
    _ header: String?, bodyCount count: Int, limits: MissionLimits = .standard
  ) throws(Problem) {
    guard let header else {
      (offset, total) = (0, Int64(count))
      return
    }
    guard let range = ContentRange(header), let bytes = range.bytes, let total = range.total else {
      throw Problem(
        .malformedMessage, "Content-Range of an upload is `bytes FIRST-LAST/TOTAL` with numbers")
    }
    guard bytes.count == count else {
      throw Problem(
        .malformedMessage,
        "Content-Range names \(bytes.count) bytes, but the body has \(count)")
    }
    guard total <= limits.itemBytes else {
      throw Problem(
        .limitExceeded,
        "content may have \(limits.itemBytes) bytes at most, and this content has \(total)")
    }
    (offset, self.total) = (bytes.lowerBound, total)
  }
}
