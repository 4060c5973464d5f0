/// The limit of a client's slowness. Pure: the caller brings the time.
///
/// A limit on silence alone is none: one byte every few seconds would hold a connection, and the
/// memory of a request, for hours.
package struct TransferPace: Sendable, Equatable {
  /// From the first moment of a connection, or from the request line, to the end of the headers.
  package var headers: Duration
  /// The time allowed for every transfer of content, of any size.
  package var grace: Duration
  /// Bytes of content a second, on average, after the grace.
  package var bytesPerSecond: Int

  package init(
    headers: Duration = .seconds(10), grace: Duration = .seconds(60),
    bytesPerSecond: Int = 16 << 10
  ) {
    self.headers = headers
    self.grace = grace
    self.bytesPerSecond = bytesPerSecond
  }

  /// Files cost no memory while they are sent, so their readers may be this many times slower.
  static let fileFactor = 16

  /// Returns the end of the time for a transfer from `start` on, after `count` bytes.
  func deadline(start: Duration, count: Int, slowness: Int = 1) -> Duration {
    let rate = Double(max(bytesPerSecond, 1)) / Double(max(slowness, 1))
    return start + grace + .seconds(Double(max(count, 0)) / rate)
  }
}
