/// The destination of a transfer's response: memory, or a consumer that sets the pace.
///
/// The transfer calls from the transport's thread, in the order head, bytes, finish. A cancelling
/// task may also call `finish`; only the first call counts.
package protocol TransferSink: Sendable {
  /// Receives the head of the final response.
  func receive(_ head: ResponseHead)

  /// Receives the next bytes of the decoded body.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Reception

  /// Ends the transfer; `nil` means a complete response.
  func finish(_ failure: TransportError?)
}

/// A sink's reaction to the offered bytes.
package enum Reception {
  /// The sink took the bytes.
  case taken
  /// The sink has no room: the transfer offers the same bytes again after it resumes.
  case full
  /// The sink rejects the bytes: the transfer fails with the error, unless it was cancelled.
  case refused(TransportError)
}
