/// One request and the answer, after the fact: for the access log and for metrics.
package struct HTTPExchange: Sendable, Equatable {
  package var method: String
  /// The path as sent, without the query.
  package var path: String
  /// Nil when the connection ended before there was an answer.
  package var status: Int?
  /// Request line, headers and content, in bytes as received.
  package var requestBytes: Int
  /// Content of the sent answer, in bytes, without headers. For a cut-off answer: the bytes
  /// acknowledged by the client, headers included.
  package var responseBytes: Int
  /// From the request line to the last byte of the answer.
  package var duration: Duration
  package var remoteAddress: String
  /// True if the whole answer was sent.
  package var isComplete: Bool
}
