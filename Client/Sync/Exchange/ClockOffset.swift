/// The server's clock minus this device's, estimated from one request.
enum ClockOffset {
  /// Returns the offset of the server's clock, read there between sending and receiving. If the
  /// clocks may be equal, the offset is 0: a slow network is not a wrong clock.
  ///
  /// - Parameters: milliseconds since 1970, the first and the last by this device's clock.
  /// - Returns: The server's clock minus this device's, in milliseconds.
  static func estimate(sent: Int64, server: Int64, received: Int64) -> Int64 {
    if server >= sent && server <= received { return 0 }
    let middle = sent + (received - sent) / 2
    let (offset, overflows) = server.subtractingReportingOverflow(middle)
    return overflows ? (server < middle ? .min : .max) : offset
  }
}
