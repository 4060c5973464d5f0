/// A file, or a part of it, as the body of a request.
public struct FileSlice: Sendable, Equatable {
  /// The file's path.
  public var path: String
  /// Which bytes of it; nil for all that it has when the request starts.
  public var range: Range<Int>?

  /// A slice.
  public init(path: String, range: Range<Int>? = nil) {
    self.path = path
    self.range = range
  }
}
