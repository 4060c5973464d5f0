import Caching
import Missions

/// What missions brought answers in the caches of requests and images (seed row S4.10).
extension MissionManager: PinnedContent {
  /// What a version in use brought for an address.
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
