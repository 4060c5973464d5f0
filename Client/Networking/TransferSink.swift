/// Where a transfer's response goes: into memory, to a consumer that sets the pace.
///
/// The transfer calls from the transport's thread, in the order head, bytes, finish; `finish`
/// may also come from a cancelling task, and only the first one counts.
protocol TransferSink: Sendable {
  /// Takes the head of the final response.
  func receive(_ head: ResponseHead)

  /// Takes the next bytes of the decoded body.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Reception

  /// The transfer is over; nil means that the response is whole.
  func finish(_ failure: TransportError?)
}

/// What a sink made of the bytes it was offered.
enum Reception {
  /// It took them.
  case taken
  /// It has no room: the same bytes are offered again once it has asked to go on.
  case full
  /// It wants none of them: the transfer fails with the error, unless it was cancelled.
  case refused(TransportError)
}
