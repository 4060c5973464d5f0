/// Content that stays on the device, and answers before any cache and without a network (SPEC.md
/// §21). Caches never remove it.
public protocol PinnedContent: Sendable {
  /// Returns the content for an address.
  ///
  /// - Parameter url: in the form of ``ContentAddress/canonical(_:)``, with all parameters in the
  ///   order of travel. The address in the list of content must have the same form.
  func content(for url: String) async -> PinnedFile?
}

/// One pinned file.
public struct PinnedFile: Sendable {
  /// The location of the file's bytes.
  public enum Content: Sendable {
    /// A file at this path.
    case file(String)
    /// A function that reads the bytes, such as from a sealed file; it returns `nil` if it cannot.
    case bytes(@Sendable () async -> [UInt8]?)
  }

  /// The location of the bytes.
  public var content: Content
  /// The media type, such as `image/png`.
  public var mediaType: String
  /// The size in bytes.
  public var size: Int

  /// Creates a file.
  public init(content: Content, mediaType: String, size: Int) {
    self.content = content
    self.mediaType = mediaType
    self.size = size
  }
}
