import FerryNetworking
import FerryPlatform

/// Images by their address, from the first source with the image: a mission, the cache, or the
/// network.
///
/// It returns the bytes as they were sent; the application draws them. Concurrent requests for one
/// address share one transfer.
///
/// ```swift
/// let images = ImageCache(folder: "/path/to/caches/images")
/// let image = try await images.image(for: "https://example.org/logo.png")
/// ```
public struct ImageCache: Sendable {
  /// The default rule for earlier images: as their fields state, and stale ones while the server is
  /// unreachable.
  public static let standardOptions = CacheOptions(staleWhenOffline: true)

  let cache: any EntryCache
  private let client: NetworkClient
  private let pinned: (any PinnedContent)?
  private let flights = SingleFlight<Question, CachedImage>()

  /// Creates a cache of images in a separate folder.
  ///
  /// - Parameters:
  ///   - folder: created when needed; `nil` keeps everything in memory.
  ///   - configuration: timeouts, fields, retries; a filter that accepts only images joins the
  ///     configured one. Addresses are absolute, so bases have no effect.
  ///   - pinned: content that answers first.
  public init(
    folder: String?, limits: CacheLimits = .images, partition: CachePartition = .credentials,
    configuration: NetworkConfiguration = NetworkConfiguration(),
    transport: any Transport = SystemTransport(),
    connectivity: any Connectivity = SystemConnectivity(), pinned: (any PinnedContent)? = nil
  ) {
    self.init(
      cache: RequestCache(folder: folder, limits: limits, partition: partition),
      configuration: configuration, transport: transport, connectivity: connectivity,
      pinned: pinned)
  }

  /// Creates a cache of images that stores them in a cache of the application.
  ///
  /// - Parameter cache: stores images alone, by their addresses.
  public init(
    cache: any EntryCache, configuration: NetworkConfiguration = NetworkConfiguration(),
    transport: any Transport = SystemTransport(),
    connectivity: any Connectivity = SystemConnectivity(), pinned: (any PinnedContent)? = nil
  ) {
    self.init(
      cache: cache, pinned: pinned,
      client: NetworkClient(
        configuration, transport: transport, connectivity: connectivity, cache: cache))
  }

  /// Creates a cache of images; `client` fetches them through `cache`.
  package init(cache: any EntryCache, pinned: (any PinnedContent)?, client: NetworkClient) {
    self.cache = cache
    self.pinned = pinned
    self.client = client
  }

  /// Returns the image at an absolute address.
  ///
  /// An image with an `ETag` and no lifetime is requested each time, unless the rule decides
  /// otherwise:
  ///
  /// ```swift
  /// let rule = CacheOptions(unstatedLifetime: .seconds(86_400), staleWhenOffline: true)
  /// let image = try await images.image(for: url, options: rule)
  /// ```
  ///
  /// - Throws: the error of the request; an answer that is not an image is `rejected` and not kept.
  public func image(
    for url: String, options: CacheOptions = standardOptions
  ) async throws(NetworkError) -> CachedImage {
    let question = Question(url: url, options: options)
    return try await flights.run(question) { () async throws(NetworkError) -> CachedImage in
      if let pinned = await pinnedImage(url) { return pinned }
      var request = NetworkRequest(url: url)
      (request.cache, request.filter) = (.use(options), ImageFilter())
      if request.headers["Accept"] == nil { request.headers.add("Accept", "image/*,*/*;q=0.5") }
      let response = try await client.send(request)
      return CachedImage(
        content: .bytes(response.body), mediaType: ImageKind.mediaType(of: response) ?? "image/*",
        origin: response.origin)
    }
  }

  /// Removes all images; those of missions stay.
  public func removeAll() async { await cache.removeAll() }

  /// The bytes of all kept images.
  public var size: Int { get async { await cache.size } }

  private func pinnedImage(_ url: String) async -> CachedImage? {
    guard let file = await pinned?.content(for: ContentAddress.canonical(url)) else { return nil }
    let origin = NetworkResponse.Origin.cache(age: .zero, isStale: false)
    switch file.content {
    case .file(let path):
      return CachedImage(content: .file(path), mediaType: file.mediaType, origin: origin)
    case .bytes(let read):
      return await read().map {
        CachedImage(content: .bytes($0), mediaType: file.mediaType, origin: origin)
      }
    }
  }

  /// The properties shared by concurrent calls with one transfer: the same address and the same
  /// rule.
  private struct Question: Hashable, Sendable {
    let url: String
    let lifetime: Duration?
    let unstatedLifetime: Duration?
    let staleWhenOffline: Bool
    let revalidate: Bool
    let key: String?

    init(url: String, options: CacheOptions) {
      self.url = url
      lifetime = options.lifetime
      unstatedLifetime = options.unstatedLifetime
      staleWhenOffline = options.staleWhenOffline
      revalidate = options.revalidate
      key = options.key
    }
  }
}

/// An image as it was sent.
public struct CachedImage: Sendable, Equatable {
  /// The location of an image's bytes.
  public enum Content: Sendable, Equatable {
    /// These bytes.
    case bytes([UInt8])
    /// A mission's file at this path.
    case file(String)
  }

  /// The location of the bytes.
  public var content: Content
  /// The media type, such as `image/png`.
  public var mediaType: String
  /// The origin of the image.
  public var origin: NetworkResponse.Origin
}

/// Rejects answers other than images, such as the login page of a network.
struct ImageFilter: ResponseFilter {
  func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse {
    guard ImageKind.mediaType(of: response) == nil else { return response }
    let type = response.headers["Content-Type"] ?? "without a type"
    throw NetworkError(rejecting: response, "it is not an image (\(type))")
  }
}

/// The kind of image in an answer.
enum ImageKind {
  /// Returns the media type named by the server. If it names none, or only
  /// `application/octet-stream`, the first bytes decide. `nil` if the answer is not an image.
  static func mediaType(of response: NetworkResponse) -> String? {
    let named = (response.headers["Content-Type"] ?? "").until(";", ",")
    let type = FieldList.trimmed(named).lowercasedASCII
    if type.begins(with: "image/") { return type }
    guard type.isEmpty || type == "application/octet-stream" || type == "binary/octet-stream" else {
      return nil
    }
    return shown(by: response.body)
  }

  /// Returns the kind shown by the first bytes (https://mimesniff.spec.whatwg.org, §6.1).
  private static func shown(by body: [UInt8]) -> String? {
    if body.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return "image/png" }
    if body.starts(with: [0xFF, 0xD8, 0xFF]) { return "image/jpeg" }
    if body.starts(with: Array("GIF87a".utf8)) || body.starts(with: Array("GIF89a".utf8)) {
      return "image/gif"
    }
    if body.starts(with: Array("RIFF".utf8)), body.dropFirst(8).starts(with: Array("WEBP".utf8)) {
      return "image/webp"
    }
    let box = body.dropFirst(4)
    if box.starts(with: Array("ftypavif".utf8)) { return "image/avif" }
    if box.starts(with: Array("ftypheic".utf8)) { return "image/heic" }
    return nil
  }
}
