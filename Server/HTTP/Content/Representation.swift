/// A file as HTTP sees it: the selected representation of RFC 9110 §3.2.
package struct Representation: Sendable, Equatable {
  /// In bytes.
  package let size: Int
  /// Must change with every change of the bytes.
  package let tag: EntityTag
  package let mediaType: String
  /// The value of `Cache-Control`, or nil to leave it out.
  package let cacheControl: String?

  /// Creates a representation. A media type not possible in a header becomes
  /// `application/octet-stream`.
  package init(size: Int, tag: EntityTag, mediaType: String, cacheControl: String? = nil) {
    self.size = size
    self.tag = tag
    let isSound = !mediaType.isEmpty && mediaType.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    self.mediaType = isSound ? mediaType : "application/octet-stream"
    self.cacheControl = cacheControl
  }

  /// Returns the value of `Content-Range` for some of the bytes.
  func contentRange(_ range: Range<Int>) -> String {
    "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
  }

  /// The separator of a multipart answer's parts. The same request gets the same bytes.
  ///
  /// It is made from the tag: a digest of the content cannot itself be in the content.
  var boundary: String {
    let marks = tag.opaque.utf8.filter { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
    // A boundary has 70 characters at most (RFC 2046 §5.1.1).
    return "ferry-part-" + String(decoding: marks.prefix(48), as: UTF8.self)
  }
}
