import FerryNetworking
import Foundation

/// Answers to requests, in memory and on disk, by the rules of HTTP for a private cache (RFC 9111)
/// and those of each request.
///
/// A request's key is the endpoint, the identifying parameters, and the fields named by `Vary`. A
/// request that changes an endpoint removes the kept answers of it. Several processes may use one
/// folder.
///
/// ```swift
/// let cache = RequestCache(folder: "/path/to/caches/requests", partition: .named("demo/ada"))
/// let client = NetworkClient(configuration, cache: cache)
/// ```
public struct RequestCache: EntryCache {
  /// The largest content of a mission returned as a body, in bytes. Callers read larger content,
  /// such as a film, from the file.
  static let pinnedBytesMax = 64 << 20

  let store: CacheStore
  let limits: CacheLimits
  let partition: CachePartition
  private let pinned: (any PinnedContent)?
  let now: @Sendable () -> Int64

  /// Creates a cache.
  ///
  /// - Parameters:
  ///   - folder: the cache's own, created when needed; `nil` keeps everything in memory.
  ///   - partition: separates the answers of users: others do not find them.
  ///   - pinned: content that answers first.
  public init(
    folder: String?, limits: CacheLimits = CacheLimits(), partition: CachePartition = .credentials,
    pinned: (any PinnedContent)? = nil
  ) {
    self.init(
      store: CacheStore(folder: folder, limits: limits), limits: limits, partition: partition,
      pinned: pinned, now: CacheClock.milliseconds)
  }

  /// Creates a cache on a given storage; `now` in milliseconds since 1970.
  package init(
    store: CacheStore, limits: CacheLimits, partition: CachePartition = .credentials,
    pinned: (any PinnedContent)? = nil, now: @escaping @Sendable () -> Int64
  ) {
    self.store = store
    self.limits = limits
    self.partition = partition
    self.pinned = pinned
    self.now = now
  }

  /// Returns a cache of another partition on the same storage.
  public func partitioned(by partition: CachePartition) -> RequestCache {
    RequestCache(store: store, limits: limits, partition: partition, pinned: pinned, now: now)
  }

  // MARK: Answering

  /// Returns the kept answer for the request, or pinned content.
  public func lookup(_ request: CacheableRequest) async -> CacheAnswer {
    guard request.method == .get else { return .none }
    if let pinned = await pinnedAnswer(to: request) { return .fresh(pinned) }
    let policy = CachePolicy(options: request.options, headers: request.headers)
    let now = now()
    let found = await store.find(CacheKey(request, partition: partition), now: now) { heads in
      guard let head = CachePolicy.select(heads, for: request.headers) else { return nil }
      let judgement = policy.judge(head, now: now)
      return (head, judgement.isFresh || judgement.servesOffline)
    }
    guard let found else { return .none }
    return answer(found, policy.judge(found.head, now: now))
  }

  private func answer(_ found: CacheStore.Found, _ judgement: CacheJudgement) -> CacheAnswer {
    guard let body = found.body else {
      return judgement.validators.fields.isEmpty
        ? .none : .unconfirmed(validators: judgement.validators)
    }
    let response = response(
      found.head, body, age: judgement.age, isStale: !judgement.isFresh || judgement.isOverdue)
    return judgement.isFresh
      ? .fresh(response) : .stale(response, validators: judgement.validators)
  }

  /// Returns a kept answer with the age of the answer (RFC 9111 §4).
  func response(
    _ head: CachedHead, _ body: [UInt8], age: Int64, isStale: Bool
  ) -> NetworkResponse {
    var headers = head.headers
    headers["Age"] = "\(age / 1000)"
    return NetworkResponse(
      status: head.status, headers: headers, body: body,
      origin: .cache(age: .milliseconds(age), isStale: isStale))
  }

  private func pinnedAnswer(to request: CacheableRequest) async -> NetworkResponse? {
    guard let pinned else { return nil }
    let url = ContentAddress.canonical(request.address)
    guard let file = await pinned.content(for: url), file.size <= Self.pinnedBytesMax,
      let body = await store.bytes(of: file)
    else { return nil }
    return NetworkResponse(
      status: 200, headers: ["Content-Type": file.mediaType, "Content-Length": "\(body.count)"],
      body: body, origin: .cache(age: .zero, isStale: false))
  }

  // MARK: Keeping

  /// Stores an answer, renews a kept one by a 304, or removes answers invalidated by a change.
  public func store(
    _ response: NetworkResponse, for request: CacheableRequest
  ) async -> NetworkResponse {
    let now = now()
    guard request.method == .get else {
      let endpoints = Invalidation.endpoints(after: response, for: request)
      if !endpoints.isEmpty { await store.remove(endpoints: endpoints, now: now) }
      return response
    }
    let key = CacheKey(request, partition: partition)
    if response.status == 304 { return await renew(key, by: response, for: request, now) }
    guard response.body.count <= limits.bodyBytesMax,
      Storability.allows(response, for: request, received: now),
      let variant = Variant(of: response.headers, for: request.headers)
    else {
      // The server has another answer now, so the former ones are not valid.
      await store.remove(key, now: now) { $0.filter { $0.variant.matches(request.headers) } }
      return response
    }
    let head = CachedHead(
      status: response.status, headers: Storability.kept(response.headers), requested: now,
      received: now, variant: variant)
    await store.store(response.body, as: head, under: key, now: now)
    return response
  }

  private func renew(
    _ key: CacheKey, by response: NetworkResponse, for request: CacheableRequest, _ now: Int64
  ) async -> NetworkResponse {
    let found = await store.renew(key, now: now) { heads in
      Confirmation.target(of: response, among: heads, for: request.headers)
        .map { Confirmation.renewed($0, by: response, requested: now, received: now) }
    }
    guard let found, let body = found.body else { return response }
    return self.response(found.head, body, age: 0, isStale: false)
  }

  // MARK: Forgetting

  /// Removes all answers of the partition, for example when a user signs out. For
  /// ``CachePartition/credentials`` these are the answers to requests without credentials.
  public func removePartition() async {
    await store.remove(partition: partition.name(for: [:]), now: now())
  }

  /// Removes all answers, of all partitions.
  public func removeAll() async { await store.removeAll(now: now()) }

  /// The bytes of all kept answers.
  public var size: Int {
    get async { Int(await store.bytes(now: now())) }
  }
}

extension CacheStore {
  /// Returns the bytes of pinned content; `nil` if they cannot be read.
  func bytes(of file: PinnedFile) async -> [UInt8]? {
    switch file.content {
    case .file(let path): contents(ofFile: path, limit: file.size)
    case .bytes(let read): await read()
    }
  }
}

/// The machine's clock.
enum CacheClock {
  /// Milliseconds since 1970.
  @Sendable static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }
}
