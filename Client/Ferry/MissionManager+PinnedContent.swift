import FerryCaching
import FerryMissions

/// Offers the content of missions to the caches of requests and images (SPEC.md §21).
extension MissionManager: PinnedContent {
  /// Returns the content for an address from a version in use, or `nil`.
  public func content(for url: String) async -> PinnedFile? {
    guard let item = try? await item(for: url) else { return nil }
    let size = Int(item.content.size)
    if let path = item.path {
      return PinnedFile(content: .file(path), mediaType: item.mediaType, size: size)
    }
    let content = item.content
    return PinnedFile(
      content: .bytes { try? await content.readAll() }, mediaType: item.mediaType, size: size)
  }
}
