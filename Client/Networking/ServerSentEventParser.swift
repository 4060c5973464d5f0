/// One event of an event stream.
package struct ServerSentEvent: Sendable, Equatable {
  /// The last event id of the stream so far; `Last-Event-ID` repeats it after a reconnection.
  package var id: String
  /// The type; `message` unless the stream named one.
  package var event: String
  /// The data lines joined by line feeds.
  package var data: String

  /// Creates an event.
  package init(id: String = "", event: String = "message", data: String) {
    self.id = id
    self.event = event
    self.data = data
  }
}

/// Reads `text/event-stream` (WHATWG HTML §9.2.6) from parts that may be split at any byte.
package struct ServerSentEventParser: Sendable {
  /// The id to send as `Last-Event-ID` when the stream is opened again.
  package private(set) var lastEventID = ""
  /// The delay before a reconnection, as requested by the stream.
  package private(set) var reconnectionDelay: Duration?

  /// The longest delay that a stream may request.
  package static let reconnectionDelayMax = Duration.seconds(60)

  private let eventLimit: Int
  private var line: [UInt8] = []
  private var atStart = true
  private var afterCarriageReturn = false
  private var pendingID = ""
  private var event: [UInt8] = []
  private var data: [UInt8] = []
  private var hasData = false

  /// Creates a parser at the start of a stream; `eventLimit` bounds one event in bytes.
  package init(eventLimit: Int = 1 << 20) { self.eventLimit = eventLimit }

  /// Adds the next part of the stream and returns the events completed by it.
  ///
  /// Throws kind `responseTooLarge` if an event exceeds the limit; the stream is then lost.
  package mutating func feed(_ bytes: [UInt8]) throws(TransportError) -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    for byte in bytes {
      let endsCRLF = afterCarriageReturn && byte == UInt8(ascii: "\n")
      afterCarriageReturn = byte == UInt8(ascii: "\r")
      if endsCRLF { continue }
      if byte == UInt8(ascii: "\n") || afterCarriageReturn {
        if let event = endLine() { events.append(event) }
      } else {
        guard line.count + data.count < eventLimit else {
          throw TransportError(.responseTooLarge, "an event is larger than \(eventLimit) bytes")
        }
        line.append(byte)
      }
    }
    return events
  }

  private mutating func endLine() -> ServerSentEvent? {
    defer { line.removeAll(keepingCapacity: true) }
    if atStart {
      atStart = false
      if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
    }
    if line.isEmpty { return dispatch() }
    let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
    var value = line[colon...].dropFirst()
    if value.first == UInt8(ascii: " ") { value.removeFirst() }
    parse(field: line[..<colon], value: value)
    return nil
  }

  private mutating func parse(field: ArraySlice<UInt8>, value: ArraySlice<UInt8>) {
    switch String(decoding: field, as: UTF8.self) {
    case "data":
      if hasData { data.append(UInt8(ascii: "\n")) }
      data.append(contentsOf: value)
      hasData = true
    case "event":
      event = Array(value)
    case "id" where !value.contains(0):
      pendingID = String(decoding: value, as: UTF8.self)
    case "retry" where !value.isEmpty && value.count <= 9 && value.allSatisfy { 48...57 ~= $0 }:
      reconnectionDelay = Int64(String(decoding: value, as: UTF8.self)).map {
        min(.milliseconds($0), Self.reconnectionDelayMax)
      }
    default:
      break  // comments have an empty field name; unknown fields are to be ignored
    }
  }

  private mutating func dispatch() -> ServerSentEvent? {
    lastEventID = pendingID
    defer {
      event.removeAll()
      data.removeAll()
      hasData = false
    }
    guard hasData else { return nil }
    return ServerSentEvent(
      id: lastEventID, event: event.isEmpty ? "message" : String(decoding: event, as: UTF8.self),
      data: String(decoding: data, as: UTF8.self))
  }
}
