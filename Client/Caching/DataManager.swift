import FerryNetworking
import FerryPlatform
import Foundation

/// The source of an application's data: missions, caches and the network behind one interface.
///
/// A kept, still valid answer is returned at once. Otherwise the manager sends the request and
/// stores the answer. Concurrent requests for the same data share one fetch.
///
/// ```swift
/// var configuration = NetworkConfiguration("https://api.example.org/v1")
/// configuration.cache = .use(CacheOptions(staleWhenOffline: true))
/// let manager = DataManager(configuration, folder: "/path/to/caches", partition: .named("ada"))
/// let request = NetworkRequest("/shops", query: [QueryItem("page", "2")])
/// let shops = try await manager.data(for: request)
/// let logo = try await manager.image(for: "https://example.org/logo.png")
/// ```
public struct DataManager: Sendable {
  /// The client for the requests; also for uploads, downloads and streams.
  public let client: NetworkClient
  /// The cache of images.
  public let images: ImageCache
  /// The cache of requests.
  public let requests: any EntryCache

  /// The envelope of the server's responses; `nil` if they are the values themselves.
  let envelope: Envelope?
  /// Makes the decoder of ``value(_:for:)``.
  let decoder: @Sendable () -> JSONDecoder
  private let flights = SingleFlight<Question, NetworkResponse>()

  /// Creates a manager with both caches.
  ///
  /// - Parameters:
  ///   - configuration: of the client; the `cache` in it is the rule of requests without one.
  ///     Images ignore the bases and the filter.
  ///   - folder: of the caches, created when needed; `nil` keeps everything in memory.
  ///   - partition: separates the data of users: others do not find it.
  ///   - pinned: content that answers first, such as the missions of this device.
  ///   - envelope: of the server's responses; the manager unwraps them.
  ///   - decoder: makes the decoder of values.
  public init(
    _ configuration: NetworkConfiguration, folder: String?,
    requestLimits: CacheLimits = CacheLimits(), imageLimits: CacheLimits = .images,
    partition: CachePartition = .credentials, pinned: (any PinnedContent)? = nil,
    envelope: Envelope? = nil, decoder: @escaping @Sendable () -> JSONDecoder = { JSONDecoder() },
    transport: any Transport = SystemTransport(),
    connectivity: any Connectivity = SystemConnectivity()
  ) {
    self.init(
      configuration,
      requests: RequestCache(
        folder: folder.map { $0 + "/requests" }, limits: requestLimits, partition: partition,
        pinned: pinned),
      images: RequestCache(
        folder: folder.map { $0 + "/images" }, limits: imageLimits, partition: partition),
      pinned: pinned, envelope: envelope, decoder: decoder, transport: transport,
      connectivity: connectivity)
  }

  /// Creates a manager with caches of the application, one for requests and one for images.
  ///
  /// - Parameters:
  ///   - requests: stores the answers to requests. If pinned content shall answer requests first,
  ///     this cache asks it, as ``RequestCache`` does.
  ///   - images: stores the images, by their addresses.
  ///   - pinned: content that answers first for images.
  public init(
    _ configuration: NetworkConfiguration, requests: any EntryCache, images: any EntryCache,
    pinned: (any PinnedContent)? = nil, envelope: Envelope? = nil,
    decoder: @escaping @Sendable () -> JSONDecoder = { JSONDecoder() },
    transport: any Transport = SystemTransport(),
    connectivity: any Connectivity = SystemConnectivity()
  ) {
    // Images are on any server: the bases and the filter do not apply.
    var imageConfiguration = configuration
    (imageConfiguration.main, imageConfiguration.alternatives) = (nil, [:])
    imageConfiguration.filter = SuccessFilter()
    imageConfiguration.accepts = nil
    var configuration = configuration
    if let envelope {
      // As a filter, so the cache stores no errors.
      configuration.filter = FilterChain(configuration.filter, EnvelopeFilter(envelope: envelope))
    }
    self.init(
      client: NetworkClient(
        configuration, transport: transport, connectivity: connectivity, cache: requests),
      requests: requests, envelope: envelope, decoder: decoder,
      images: ImageCache(
        cache: images, configuration: imageConfiguration, transport: transport,
        connectivity: connectivity, pinned: pinned))
  }

  /// Creates a manager from existing parts; `client` stores answers in `requests`.
  package init(
    client: NetworkClient, requests: any EntryCache, envelope: Envelope? = nil,
    decoder: @escaping @Sendable () -> JSONDecoder = { JSONDecoder() }, images: ImageCache
  ) {
    self.client = client
    self.requests = requests
    self.envelope = envelope
    self.decoder = decoder
    self.images = images
  }

  /// Returns the answer to a request from any source; the answer's `origin` names the source.
  public func data(for request: NetworkRequest) async throws(NetworkError) -> NetworkResponse {
    guard let question = Question(request) else { return try await client.send(request) }
    return try await flights.run(question) { () async throws(NetworkError) -> NetworkResponse in
      try await client.send(request)
    }
  }

  /// Returns the image at an absolute address.
  public func image(
    for url: String, options: CacheOptions = ImageCache.standardOptions
  ) async throws(NetworkError) -> CachedImage {
    try await images.image(for: url, options: options)
  }

  /// Removes all kept answers, of all partitions; the content of missions stays.
  public func removeAll() async {
    await requests.removeAll()
    await images.removeAll()
  }

  /// The properties shared by requests with one common answer.
  private struct Question: Hashable, Sendable {
    let base: BaseAddress
    let path: String
    let query: [QueryItem]
    let fields: [String]
    let rule: String
    let limits: [String]

    /// Creates a question; `nil` for requests that are never shared: those other than a plain GET,
    /// and those with their own filter.
    init?(_ request: NetworkRequest) {
      guard request.method == .get, request.body == nil, request.filter == nil else { return nil }
      base = request.base
      path = request.path
      query = request.query
      fields = request.headers.fields.map { $0.name.lowercasedASCII + ":" + $0.value }
      rule = String(describing: request.cache)
      limits = [
        String(describing: request.timeout), String(describing: request.connectTimeout),
        String(describing: request.responseLimit), String(describing: request.retry),
        String(describing: request.isRepeatable), String(describing: request.accepts),
      ]
    }
  }
}
