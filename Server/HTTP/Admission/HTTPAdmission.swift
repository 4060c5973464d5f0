/// A request whose headers are complete and whose content has not been read.
package struct HTTPArrival: Sendable {
  /// Without content.
  package var request: HTTPRequest
  /// Bytes of announced content; `nil` for chunks of unknown size.
  package var declaredLength: Int?
  /// True if it came over one of the connections reserved for probes and administration.
  package var isOnReserve: Bool
  /// True if the client has reached the limit of requests in progress: only probes and
  /// administration go on.
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

  /// True if content follows the headers.
  package var hasContent: Bool { declaredLength != 0 }
}

/// The decision about reading the content of a request.
package enum HTTPAdmission: Sendable {
  /// Read up to `limit` bytes of content, before and after decoding, and call the handler. The
  /// memory of the content counts for `account`, if the sender is known.
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
