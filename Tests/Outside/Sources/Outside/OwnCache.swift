import Ferry
import Synchronization

/// Keeps each answer without end, and counts returned ones.
final class OwnCache: EntryCache {
  private struct State {
    var kept: [String: NetworkResponse] = [:]
    var hits = 0
  }

  private let state = Mutex(State())

  /// The number of answers returned by this cache.
  var hits: Int { state.withLock { $0.hits } }

  private static func key(_ request: CacheableRequest) -> String {
    request.options.key ?? request.endpoint
  }

  func lookup(_ request: CacheableRequest) async -> CacheAnswer {
    guard let response = await entry(for: request) else { return .none }
    return .fresh(response)
  }

  func store(
    _ response: NetworkResponse, for request: CacheableRequest
  ) async -> NetworkResponse {
    state.withLock { $0.kept[Self.key(request)] = response }
    return response
  }

  func entry(for request: CacheableRequest) async -> NetworkResponse? {
    state.withLock { state in
      guard let response = state.kept[Self.key(request)] else { return nil }
      state.hits += 1
      return response
    }
  }

  func put(
    _ bytes: [UInt8], for request: CacheableRequest, contentType: String, lifetime: Duration?
  ) async -> Bool {
    let response = NetworkResponse(
      status: 200, headers: ["Content-Type": contentType], body: bytes)
    _ = await store(response, for: request)
    return true
  }

  func remove(_ request: CacheableRequest) async {
    state.withLock { $0.kept[Self.key(request)] = nil }
  }

  func removeAll() async { state.withLock { $0.kept = [:] } }

  var size: Int {
    get async { state.withLock { $0.kept.values.reduce(0) { $0 + $1.body.count } } }
  }
}

/// One image, always here.
struct OwnContent: PinnedContent {
  static let url = "https://example.org/logo.png"

  func content(for url: String) async -> PinnedFile? {
    guard url == Self.url else { return nil }
    return PinnedFile(content: .bytes { [1, 2, 3] }, mediaType: "image/png", size: 3)
  }
}
