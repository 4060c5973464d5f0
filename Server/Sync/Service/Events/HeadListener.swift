import HTTPServer

/// A listener to a space: the part of a stream that ``HeadHub`` needs.
package protocol HeadListener: Sendable {
  /// Queues bytes; must not block. `false` when the listener has gone.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool
  /// Ends the stream after the queued bytes.
  func finish()
  /// Calls the observer once when the listener has gone; at once when it has already.
  func onClose(_ observer: @escaping @Sendable () -> Void)
}

extension HTTPStream: HeadListener {}
