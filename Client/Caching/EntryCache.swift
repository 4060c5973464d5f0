import FerryNetworking

/// A cache with entries for callers to read and write: the seam below ``DataManager`` and
/// ``ImageCache``. ``RequestCache`` is the built-in cache.
///
/// No call fails: a cache that cannot read has no entries, and one that cannot write stores none.
/// The key of a request is ``CacheOptions/key`` if it has one, or else the endpoint with the
/// identifying parameters.
public protocol EntryCache: ResponseCache {
  /// Returns the newest answer under a request's key, fresh or stale; `origin` has the answer's
  /// age. `nil` if there is none.
  func entry(for request: CacheableRequest) async -> NetworkResponse?

  /// Stores bytes under a request's key, in place of all earlier answers.
  ///
  /// - Parameter lifetime: how long they are fresh; `nil` until the limits remove them.
  /// - Returns: True if the cache's limits permit bytes of this size.
  func put(
    _ bytes: [UInt8], for request: CacheableRequest, contentType: String, lifetime: Duration?
  ) async -> Bool

  /// Removes the answers under a request's key.
  func remove(_ request: CacheableRequest) async

  /// Removes all answers of the present user, for example when the user signs out. A cache without
  /// partitions removes all answers.
  func removePartition() async

  /// Removes all answers, of all users.
  func removeAll() async

  /// The bytes of all kept answers.
  var size: Int { get async }
}

extension EntryCache {
  /// Removes all answers: the default for a cache without partitions.
  public func removePartition() async { await removeAll() }

  /// Returns the answer under a key, fresh or stale; `origin` has the answer's age. `nil` if there
  /// is none.
  ///
  /// A `put` with this key stored it, or a request with this ``CacheOptions/key``.
  ///
  /// ```swift
  /// await cache.put(Array("draft".utf8), for: "note/7", contentType: "text/plain")
  /// let draft = await cache.get("note/7")?.body
  /// await cache.remove("note/7")
  /// ```
  ///
  /// Keys belong to the cache's partition. With ``CachePartition/credentials``, it is the partition
  /// of requests without credentials.
  public func get(_ key: String) async -> NetworkResponse? {
    await entry(for: CacheableRequest(key: key))
  }

  /// Stores bytes under a key, in place of an earlier answer.
  ///
  /// - Parameter lifetime: how long they are fresh; `nil` until the limits remove them.
  /// - Returns: True if the cache's limits permit bytes of this size.
  @discardableResult
  public func put(
    _ bytes: [UInt8], for key: String, contentType: String = "application/octet-stream",
    lifetime: Duration? = nil
  ) async -> Bool {
    await put(
      bytes, for: CacheableRequest(key: key), contentType: contentType, lifetime: lifetime)
  }

  /// Removes the answers under a key.
  public func remove(_ key: String) async { await remove(CacheableRequest(key: key)) }
}

extension CacheableRequest {
  /// Creates the request of a key of the caller's own.
  fileprivate init(key: String) { self.init(endpoint: "", options: CacheOptions(key: key)) }
}
