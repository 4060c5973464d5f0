import FerryHTTPServer

/// A listener to a space: the part of a stream needed by ``HeadHub``.
package protocol HeadListener: Sendable {
  /// Queues bytes; must not block. Returns `false` if the listener is gone.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool
  /// Ends the stream after the queued bytes.
  func finish()
  /// Calls the observer once when the listener is gone; at once if it is already.
  func onClose(_ observer: @escaping @Sendable () -> Void)
}

extension HTTPStream: HeadListener {}
