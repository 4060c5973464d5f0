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
    guard let match = header.wholeMatch(of: /bytes ([0-9]{1,18})-([0-9]{1,18})\/([0-9]{1,18})/),
      let first = Int64(match.1), let last = Int64(match.2), let total = Int64(match.3),
      first <= last, last < total
    else {
      throw Problem(
        .malformedMessage, "Content-Range of an upload is `bytes FIRST-LAST/TOTAL` with numbers")
    }
    guard last - first + 1 == Int64(count) else {
      throw Problem(
        .malformedMessage,
        "Content-Range names \(last - first + 1) bytes, but the body has \(count)")
    }
    guard total <= limits.itemBytes else {
      throw Problem(
        .limitExceeded,
        "content may have \(limits.itemBytes) bytes at most, and this content has \(total)")
    }
    (offset, self.total) = (first, total)
  }
}
