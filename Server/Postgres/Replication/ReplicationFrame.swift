/// A message of the stream from the server to a reader of the log (PostgreSQL manual, "Streaming
/// Replication Protocol"); pure.
package enum ReplicationFrame: Sendable, Equatable {
  /// A message of the output plugin.
  case data(start: PostgresLSN, message: ArraySlice<UInt8>)
  /// The server has read the log up to a position, and sent all of it.
  case keepalive(end: PostgresLSN, wantsReply: Bool)

  package init(_ bytes: [UInt8]) throws(ReplicationFault) {
    var reader = ReplicationBytes(bytes[...])
    switch try reader.byte() {
    case UInt8(ascii: "w"):
      let start = try reader.position()
      // The end of the log, and the server's clock.
      _ = try reader.position()
      _ = try reader.integer(Int64.self)
      self = .data(start: start, message: reader.rest())
    case UInt8(ascii: "k"):
      let end = try reader.position()
      _ = try reader.integer(Int64.self)
      self = .keepalive(end: end, wantsReply: try reader.byte() != 0)
      try reader.end()
    case let kind:
      throw ReplicationFault("a frame has the unknown kind \(kind)")
    }
  }

  /// Returns the report of a reader to the server.
  ///
  /// - Parameters:
  ///   - received: the end of the received log.
  ///   - confirmed: the server may forget the log before it.
  ///   - asksReply: whether the server has to answer at once.
  static func status(
    received: PostgresLSN, confirmed: PostgresLSN, asksReply: Bool = false
  ) -> [UInt8] {
    var bytes: [UInt8] = [UInt8(ascii: "r")]
    bytes.append(bigEndian: max(received, confirmed).value)
    bytes.append(bigEndian: confirmed.value)
    bytes.append(bigEndian: confirmed.value)
    // The reader's clock is of no use to the server.
    bytes.append(bigEndian: Int64(0))
    bytes.append(asksReply ? 1 : 0)
    return bytes
  }
}
