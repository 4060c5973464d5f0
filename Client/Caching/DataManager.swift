import Networking

/// Where an application asks for its data, without having to know whether it comes from a mission,
/// from a cache or from the network (seed rows S6.1, S6.3).
///
/// What is kept and still valid answers at once; otherwise the request is sent, and its answer
/// kept. The same data asked for by several at a time is fetched once.
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
  /// What sends the requests; for uploads, downloads and streams.
  public let client: NetworkClient
  /// The images.
  public let images: ImageCache

  private let requests: RequestCache
  private let flights = SingleFlight<Question, NetworkResponse>()

  /// A manager with both caches.
  ///
  /// - Parameters:
  ///   - configuration: of the client; its `cache` is the rule of requests that name none. For
  ///     images its bases and its filter do not count.
  ///   - folder: of the caches, made at need; nil keeps everything in memory.
  ///   - partition: whose data it is: others do not find it.
  ///   - pinned: what answers first, such as the missions of this device.
  public init(
    _ configuration: NetworkConfiguration, folder: String?,
    requestLimits: CacheLimits = CacheLimits(), imageLimits: CacheLimits = .images,
    partition: CachePartition = .credentials, pinned: (any PinnedContent)? = nil,
    transport: any Transport = CurlTransport(),
    connectivity: any Connectivity = SystemConnectivity()
  ) {
    let requests = RequestCache(
      folder: folder.map { $0 + "/requests" }, limits: requestLimits, partition: partition,
      pinned: pinned)
    // Images are on whatever server: neither the bases nor the filter speak of it.
    var imageConfiguration = configuration
    (imageConfiguration.main, imageConfiguration.alternatives) = (nil, [:])
    imageConfiguration.filter = SuccessFilter()
    self.init(
      client: NetworkClient(
        configuration, transport: transport, connectivity: connectivity, cache: requests),
      requests: requests,
      images: ImageCache(
        folder: folder.map { $0 + "/images" }, limits: imageLimits, partition: partition,
        configuration: imageConfiguration, transport: transport, connectivity: connectivity,
        pinned: pinned))
  }

  /// A manager of parts that are there; `client` keeps its answers in `requests`.
  package init(client: NetworkClient, requests: RequestCache, images: ImageCache) {
    self.client = client
    self.requests = requests
    self.images = images
  }

  /// The answer to a request, wherever it comes from; its `origin` tells those who want to know.
  public func data(for request: NetworkRequest) async throws(NetworkError) -> NetworkResponse {
    guard let question = Question(request) else { return try await client.send(request) }
    return try await flights.run(question) { () async throws(NetworkError) -> NetworkResponse in
      try await client.send(request)
    }
  }

  /// The image at an absolute address.
  public func image(
    for url: String, options: CacheOptions = ImageCache.standardOptions
  ) async throws(NetworkError) -> CachedImage {
    try await images.image(for: url, options: options)
  }

  /// Forgets all that is kept, of all partitions; what missions brought stays.
  public func removeAll() async {
    await requests.removeAll()
    await images.removeAll()
  }

  /// What has to be alike in requests that share one answer.
  private struct Question: Hashable, Sendable {
    let base: BaseAddress
    let path: String
    let query: [QueryItem]
    let fields: [String]
    let rule: String
    let limits: [String]

    /// Nil for what is never shared: what sends something, and what a filter of its own judges.
    init?(_ request: NetworkRequest) {
      guard request.method == .get, request.body == nil, request.filter == nil else { return nil }
      base = request.base
      path = request.path
      query = request.query
      fields = request.headers.fields.map { $0.name.lowercased() + ":" + $0.value }
      rule = String(describing: request.cache)
      limits = [
        String(describing: request.timeout), String(describing: request.connectTimeout),
        String(describing: request.responseLimit), String(describing: request.retry),
        String(describing: request.isRepeatable),
      ]
    }
  }
}
