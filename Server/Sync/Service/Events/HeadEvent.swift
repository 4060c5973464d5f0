import FerryProtocol

/// Server-Sent Events of a space (WHATWG HTML §9.2), as bytes.
enum HeadEvent {
  /// The media type of a stream of events.
  static let mediaType = "text/event-stream"

  /// A comment to keep the connection and the proxies on the way awake.
  static let heartbeat = Array(":\n\n".utf8)

  /// Encodes an event. The `id` is the head, so a reconnecting client reports the last head
  /// received.
  static func encode(epoch: Epoch, head: SequenceNumber) -> [UInt8] {
    Array(
      """
      id: \(head)
      event: head
      data: {"epoch":"\(epoch)","head":"\(head)"}


      """.utf8)
  }
}
