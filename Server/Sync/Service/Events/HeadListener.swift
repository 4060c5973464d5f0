import HTTPServer

/// One who listens to a space: what ``HeadHub`` needs of a stream.
package protocol HeadListener: Sendable {
  /// Queues bytes; must not block. `false` when the listener has gone.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool
  /// Ends the stream after what is queued.
  func finish()
  /// Calls the observer once when the listener has gone; at once when it has already.
  func onClose(_ observer: @escaping @Sendable () -> Void)
}

extension HTTPStream: HeadListener {}
