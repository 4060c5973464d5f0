/// Content that was brought to the device to stay, and answers before any cache and without any
/// network (seed row S4.10). Caches never remove it.
public protocol PinnedContent: Sendable {
  /// What was brought for an address.
  ///
  /// - Parameter url: in the form of ``ContentAddress/canonical(_:)``, with all parameters in the
  ///   order in which they travel; what the content is listed under has to be in that form too.
  func content(for url: String) async -> PinnedFile?
}

/// One file that stays.
public struct PinnedFile: Sendable {
  /// Where its bytes are.
  public enum Content: Sendable {
    /// In a file at this path.
    case file(String)
    /// Wherever this function reads them, such as from a sealed file; nil when it cannot.
    case bytes(@Sendable () async -> [UInt8]?)
  }

  /// Where its bytes are.
  public var content: Content
  /// Such as `image/png`.
  public var mediaType: String
  /// In bytes.
  public var size: Int

  /// A file.
  public init(content: Content, mediaType: String, size: Int) {
    self.content = content
    self.mediaType = mediaType
    self.size = size
  }
}
