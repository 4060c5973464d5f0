/// A whole request, as a handler sees it.
package struct HTTPRequest: Sendable {
  /// As sent: `GET`, `HEAD`, or any other token.
  package var method: String
  /// The path as sent, still percent-encoded, without the query; `*` for `OPTIONS *`.
  package var path: String
  /// The decoded path segments: `/a/b%2Fc` gives `a` and `b/c`, `/` gives none, and a trailing
  /// slash gives an empty last one. Dot segments are left as they are.
  package var segments: [String]
  /// Decoded query parameters; `+` is a space. No name is repeated.
  package var query: [String: String]
  package var headers: HTTPHeaders
  /// The content after `Content-Encoding` was undone.
  package var body: [UInt8]
  /// Bytes of content as they came over the wire.
  package var bodyWireBytes: Int
  /// The peer's address without the port; an IPv4 peer of an IPv6 socket shows as IPv4.
  package var remoteAddress: String

  package init(
    method: String, path: String, segments: [String] = [], query: [String: String] = [:],
    headers: HTTPHeaders = [:], body: [UInt8] = [], bodyWireBytes: Int = 0,
    remoteAddress: String = ""
  ) {
    self.method = method
    self.path = path
    self.segments = segments
    self.query = query
    self.headers = headers
    self.body = body
    self.bodyWireBytes = bodyWireBytes
    self.remoteAddress = remoteAddress
  }
}
