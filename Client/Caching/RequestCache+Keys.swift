import FerryNetworking

extension RequestCache {
  /// Returns the answer under a key, fresh or stale; its `origin` has its age. `nil` if there is
  /// none.
  ///
  /// ``put(_:for:contentType:lifetime:)`` stored it, or a request with this key
  /// (``CacheOptions/key``).
  ///
  /// ```swift
  /// await cache.put(Array("draft".utf8), for: "note/7", contentType: "text/plain")
  /// let draft = await cache.get("note/7")?.body
  /// await cache.remove("note/7")
  /// ```
  ///
  /// Keys belong to the cache's partition. With ``CachePartition/credentials`` it is that of requests
  /// without credentials.
  public func get(_ key: String) async -> NetworkResponse? { await entry(.own(key)) }

  /// Stores bytes under a key, in place of an earlier answer.
  ///
  /// - Parameter lifetime: how long they are fresh; `nil` until the limits remove them.
  /// - Returns: Whether the cache's limits permit bytes of this size.
  @discardableResult
  public func put(
    _ bytes: [UInt8], for key: String, contentType: String = "application/octet-stream",
    lifetime: Duration? = nil
  ) async -> Bool {
    await put(bytes, under: .own(key), contentType, lifetime)
  }

  /// Removes the answers under a key.
  public func remove(_ key: String) async { await remove(under: .own(key)) }

  // MARK: Keys of both kinds

  /// A key of the caller's own, or an address.
  enum EntryKey {
    case own(String)
    case address(String)

    var request: CacheableRequest {
      switch self {
      case .own(let key): CacheableRequest(endpoint: "", options: CacheOptions(key: key))
      case .address(let url):
        CacheableRequest(endpoint: String(Substring(url.utf8.prefix { $0 != 0x23 })))
      }
    }
  }

  func entry(_ key: EntryKey) async -> NetworkResponse? {
    let now = now()
    let found = await store.find(CacheKey(key.request, partition: partition), now: now) { heads in
      heads.max { ($0.received, $0.id) < ($1.received, $1.id) }.map { ($0, true) }
    }
    guard let found, let body = found.body else { return nil }
    let judgement = CachePolicy(options: CacheOptions()).judge(found.head, now: now)
    return response(found.head, body, age: judgement.age, isStale: !judgement.isFresh)
  }

  func put(
    _ bytes: [UInt8], under key: EntryKey, _ contentType: String, _ lifetime: Duration?
  ) async -> Bool {
    guard bytes.count <= limits.bodyBytesMax else {
      await remove(under: key)
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
    await remove(under: key)
    await store.keep(
      bytes, as: head, under: CacheKey(key.request, partition: partition), now: now)
    return true
  }

  func remove(under key: EntryKey) async {
    await store.remove(CacheKey(key.request, partition: partition), now: now()) { $0 }
  }
}
