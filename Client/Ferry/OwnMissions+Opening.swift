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
  ///   - options: the limits, as for published missions.
  ///   - key: 32 bytes; they encrypt content at rest, from the first fetched byte. Names, addresses
  ///     and payloads are not encrypted. ``MissionParts/files`` have their own key.
  ///   - transport: carries requests; libcurl by default.
  ///   - parts: replace parts; a ``MissionParts/catalogue`` has no effect, the app is the catalogue.
  /// - Throws: ``MissionError/Kind/busy`` if another process has the folder open;
  ///   ``MissionError/Kind/wrongKey`` if the content has another key, or none.
  public static func open(
    _ folder: String, options: MissionOptions = MissionOptions(), key: [UInt8]? = nil,
    transport: any Transport = SystemTransport(), parts: MissionParts = MissionParts()
  ) async throws(MissionError) -> OwnMissions {
    try await open(
      folder, options, key, parts,
      ChunkedDownloader.requests(over: transport, server: "", timeout: options.silence))
  }

  /// Opens the composed missions in a folder, and sends requests through a client with its fields
  /// and filters.
  public static func open(
    _ folder: String, options: MissionOptions = MissionOptions(), key: [UInt8]? = nil,
    client: NetworkClient, parts: MissionParts = MissionParts()
  ) async throws(MissionError) -> OwnMissions {
    try await open(
      folder, options, key, parts,
      ChunkedDownloader.requests(through: client, timeout: options.silence))
  }

  private static func open(
    _ folder: String, _ options: MissionOptions, _ key: [UInt8]?, _ parts: MissionParts,
    _ requests: @escaping DownloadOpening
  ) async throws(MissionError) -> OwnMissions {
    try await open(folder, options: options) { (root) async throws(MissionError) in
      OwnParts(
        files: try parts.files(in: root, key: key), store: try await parts.store(in: root),
        downloader: parts.downloader?(requests) ?? OwnParts.downloader(requests))
    }
  }
}

/// Offers the content of composed missions to the caches of requests and images.
extension OwnMissions: PinnedContent {
  /// Returns the content for an address from a version in use, or `nil`.
  public func content(for url: String) async -> PinnedFile? { await manager.content(for: url) }
}
