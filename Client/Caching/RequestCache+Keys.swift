import FerryNetworking

// The entries for callers to read and write.
extension RequestCache {
  /// Returns the newest answer under a request's key, fresh or stale; `nil` if there is none.
  public func entry(for request: CacheableRequest) async -> NetworkResponse? {
    let now = now()
    let found = await store.find(CacheKey(request, partition: partition), now: now) { heads in
      heads.max { ($0.received, $0.id) < ($1.received, $1.id) }.map { ($0, true) }
    }
    guard let found, let body = found.body else { return nil }
    let judgement = CachePolicy(options: CacheOptions()).judge(found.head, now: now)
    return response(found.head, body, age: judgement.age, isStale: !judgement.isFresh)
  }

  /// Stores bytes under a request's key, in place of all earlier answers. Returns true if the
  /// limits permit bytes of this size.
  public func put(
    _ bytes: [UInt8], for request: CacheableRequest, contentType: String, lifetime: Duration?
  ) async -> Bool {
    guard bytes.count <= limits.bodyBytesMax else {
      await remove(request)
      return false
    }
    let now = now()
    let age = (lifetime ?? limits.age).milliseconds / 1000
    let head = CachedHead(
      status: 200,
      headers: [
        "Content-Type": contentType, "Content-Length": "\(bytes.count)",
        "Cache-Control": "max-age=\(age)",
      ], requested: now, received: now)
    // Answers to requests with other fields must not win over these bytes.
    await remove(request)
    await store.store(bytes, as: head, under: CacheKey(request, partition: partition), now: now)
    return true
  }

  /// Removes the answers under a request's key.
  public func remove(_ request: CacheableRequest) async {
    await store.remove(CacheKey(request, partition: partition), now: now()) { $0 }
  }
}
