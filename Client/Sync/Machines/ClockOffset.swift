/// How far the server's clock is ahead of this device's, judged by one request.
enum ClockOffset {
  /// The server read its clock between sending and receiving. Where the two clocks may be equal
  /// for all that can be seen, they are taken as equal; a slow network is not a wrong clock.
  ///
  /// - Parameters: milliseconds since 1970, the first and the last by this device's clock.
  /// - Returns: the server's clock minus this device's, milliseconds.
  static func estimate(sent: Int64, server: Int64, received: Int64) -> Int64 {
    if server >= sent && server <= received { return 0 }
    let middle = sent + (received - sent) / 2
    let (offset, overflows) = server.subtractingReportingOverflow(middle)
    return overflows ? (server < middle ? .min : .max) : offset
  }
}
