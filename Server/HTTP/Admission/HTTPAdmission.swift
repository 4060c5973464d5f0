/// A request whose headers are complete and whose content has not been read.
package struct HTTPArrival: Sendable {
  /// Without content.
  package var request: HTTPRequest
  /// Bytes of announced content; `nil` for chunks of unknown size.
  package var declaredLength: Int?
  /// Whether it came over one of the connections that are kept free for probes and
  /// administration.
  package var isOnReserve: Bool
  /// Whether its client has as many requests in progress as it may: only probes and administration
  /// go on.
  package var isBeyondShare: Bool

  package init(
    request: HTTPRequest, declaredLength: Int?, isOnReserve: Bool = false,
    isBeyondShare: Bool = false
  ) {
    self.request = request
    self.declaredLength = declaredLength
    self.isOnReserve = isOnReserve
    self.isBeyondShare = isBeyondShare
  }

  /// Whether content follows the headers.
  package var hasContent: Bool { declaredLength != 0 }
}

/// Whether the content of a request is worth reading.
package enum HTTPAdmission: Sendable {
  /// Read up to `limit` bytes of content, before and after decoding, and call the handler. The
  /// memory that the content takes counts for `account`, if the sender is known.
  case proceed(limit: Int, account: String? = nil)
  /// Answer at once. No handler sees the request.
  case refuse(HTTPResponse)
  /// The connection waits for the answer, which may take a while.
  case decide(@Sendable () async -> HTTPAdmission)

  /// Returns the decision, however long it takes.
  package func decided() async -> HTTPAdmission {
    var admission = self
    while case .decide(let decide) = admission { admission = await decide() }
    return admission
  }
}
