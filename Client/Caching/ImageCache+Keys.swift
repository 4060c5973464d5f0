import FerryNetworking

extension ImageCache {
  /// Returns the kept image of an address, fresh or stale, without a request; `nil` if there is
  /// none.
  ///
  /// The key of an image is the address: ``image(for:options:)`` finds an image stored by
  /// ``put(_:for:mediaType:lifetime:)``, and the other way around. Missions are not asked.
  public func get(_ url: String) async -> CachedImage? {
    guard let response = await cache.entry(for: CacheableRequest(image: url)) else { return nil }
    return CachedImage(
      content: .bytes(response.body), mediaType: ImageKind.mediaType(of: response) ?? "image/*",
      origin: response.origin)
  }

  /// Stores an image under an address, instead of an earlier one.
  ///
  /// - Parameters:
  ///   - mediaType: such as `image/png`; `nil` for the type shown by the first bytes.
  ///   - lifetime: how long it is fresh; `nil` until the limits remove it.
  /// - Returns: True if it was stored: it is an image, and the limits permit the size.
  @discardableResult
  public func put(
    _ bytes: [UInt8], for url: String, mediaType: String? = nil, lifetime: Duration? = nil
  ) async -> Bool {
    let stated: TransportHeaders = mediaType.map { ["Content-Type": $0] } ?? [:]
    let image = NetworkResponse(status: 200, headers: stated, body: bytes)
    guard let type = ImageKind.mediaType(of: image) else { return false }
    return await cache.put(
      bytes, for: CacheableRequest(image: url), contentType: type, lifetime: lifetime)
  }

  /// Removes the kept image of an address; an image of a mission stays.
  public func remove(_ url: String) async { await cache.remove(CacheableRequest(image: url)) }
}

extension CacheableRequest {
  /// Creates the request of an image, without the fragment of the address.
  fileprivate init(image url: String) {
    self.init(endpoint: String(Substring(url.utf8.prefix { $0 != 0x23 })))
  }
}
