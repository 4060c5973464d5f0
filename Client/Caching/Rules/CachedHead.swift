import Networking

/// All of a kept answer but its body.
package struct CachedHead: Sendable, Equatable {
  /// What the storage calls it: never given to another answer of the same storage.
  package var id: Int64
  /// The status code.
  package var status: Int
  /// The fields that may be kept (RFC 9111 §3.1).
  package var headers: TransportHeaders
  /// When the request was made, in milliseconds since 1970.
  package var requested: Int64
  /// When the answer came or was last confirmed, in milliseconds since 1970.
  package var received: Int64
  /// For which requests, of those with the same key, it was given.
  package var variant: Variant

  /// An answer that is kept, or (with `id` 0) is to be.
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
