/// The reason why bytes could not be coded or decoded.
package enum CompressionError: Error, Equatable, Sendable {
  /// The content would exceed the caller's limit in bytes, or the frame asks for more window memory
  /// than HTTP allows (8 MiB, RFC 9659).
  case tooLarge(limit: Int)
  /// The input is truncated, corrupt, of another coding, or followed by foreign bytes.
  case malformed
  /// The C library could not get memory or refused the parameters.
  case failed(String)
}
