import FerryProtocol

/// Server-Sent Events of a space (WHATWG HTML §9.2), as bytes.
enum HeadEvent {
  /// The media type of a stream of events.
  static let mediaType = "text/event-stream"

  /// A comment, which keeps the connection and the proxies on its way awake.
  static let heartbeat = Array(":\n\n".utf8)

  /// Encodes an event. Its `id` is the head, so that a client that reconnects reports the last head
  /// that it received.
  static func encode(epoch: Epoch, head: SequenceNumber) -> [UInt8] {
    Array(
      """
      id: \(head)
      event: head
      data: {"epoch":"\(epoch)","head":"\(head)"}


      """.utf8)
  }
}
