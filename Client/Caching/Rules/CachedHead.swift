import FerryNetworking

/// A kept answer without the body.
package struct CachedHead: Sendable, Equatable {
  /// The identifier in the storage: no other answer of the same storage ever gets it.
  package var id: Int64
  /// The status code.
  package var status: Int
  /// The fields that a cache may keep (RFC 9111 §3.1).
  package var headers: TransportHeaders
  /// When the request was made, in milliseconds since 1970.
  package var requested: Int64
  /// When the answer arrived or was last confirmed, in milliseconds since 1970.
  package var received: Int64
  /// The variant: the requests with the same key that the answer applies to.
  package var variant: Variant

  /// Creates a kept answer or, with `id` 0, a future one.
  package init(
    id: Int64 = 0, status: Int, headers: TransportHeaders, requested: Int64, received: Int64,
    variant: Variant = .any
  ) {
    self.id = id
    self.status = status
    self.headers = headers
    self.requested = requested
    self.received = received
    self.variant = variant
  }
}
