/// A file, or a part of it, as the body of a request.
public struct FileSlice: Sendable, Equatable {
  /// The file's path.
  public var path: String
  /// The bytes of the slice; `nil` for all bytes of the file when the request starts.
  public var range: Range<Int>?

  /// Creates a slice.
  public init(path: String, range: Range<Int>? = nil) {
    self.path = path
    self.range = range
  }
}

/// One of several parts of a body.
public enum BodyPart: Sendable, Equatable {
  /// These bytes.
  case bytes([UInt8])
  /// A file, or a part of it, read while it is sent.
  case file(FileSlice)
}
