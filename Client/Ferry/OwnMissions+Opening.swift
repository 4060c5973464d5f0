import FerryCaching
import FerryMissions
import FerryNetworking
import FerrySyncClient

extension OwnMissions {
  /// Opens the composed missions in a folder, and creates an absent one. Unfinished missions
  /// continue.
  ///
  /// - Parameters:
  ///   - folder: the folder's path.
  ///   - options: the limits; `itemsAtOnce` counts the items of all missions together.
  ///   - key: 32 bytes; they encrypt content at rest, from the first fetched byte. Names, addresses
  ///     and payloads are not encrypted.
  ///   - transport: carries requests; libcurl by default.
  /// - Throws: ``MissionError/Kind/busy`` if another process has the folder open;
  ///   ``MissionError/Kind/wrongKey`` if the content has another key, or none.
  public static func open(
    _ folder: String, options: MissionOptions = MissionOptions(), key: [UInt8]? = nil,
    transport: any Transport = SystemTransport()
  ) async throws(MissionError) -> OwnMissions {
    try await open(
      folder, key: key, options: options,
      requests: ChunkedDownloader.requests(
        over: transport, server: "", timeout: options.silence),
      canonical: ContentAddress.canonical)
  }

  /// Opens the composed missions in a folder, and sends requests through a client with its fields
  /// and filters.
  public static func open(
    _ folder: String, options: MissionOptions = MissionOptions(), key: [UInt8]? = nil,
    client: NetworkClient
  ) async throws(MissionError) -> OwnMissions {
    try await open(
      folder, key: key, options: options,
      requests: ChunkedDownloader.requests(through: client, timeout: options.silence),
      canonical: ContentAddress.canonical)
  }
}

/// Offers the content of composed missions to the caches of requests and images.
extension OwnMissions: PinnedContent {
  /// Returns the content for an address from a version in use, or `nil`.
  public func content(for url: String) async -> PinnedFile? { await manager.content(for: url) }
}
