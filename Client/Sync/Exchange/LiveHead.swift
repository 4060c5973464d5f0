import FerryNetworking
import FerryProtocol

/// The head known from the live connection, and whether a sync can rely on it; pure.
///
/// A server restored from a backup, or failed over to a copy with fewer commits, has a lower head
/// or another epoch. So a new connection is trusted only after a complete pull. The same holds if
/// the history of the connection's server changes.
struct LiveHead: Sendable, Equatable {
  /// The newest head received; `nil` without a connection.
  private(set) var head: SequenceNumber?
  /// Counts connections, and histories of the server on each.
  private(set) var history = 0
  private var epoch: Epoch?
  private var trustedHistory = 0

  /// The head, if a sync can rely on it.
  var trusted: SequenceNumber? { trustedHistory == history ? head : nil }

  /// Records a new connection. The server sends the head if it differs from this one.
  mutating func connect(head: SequenceNumber) {
    self.head = head
    epoch = nil
    history += 1
  }

  /// Stores the server's head.
  mutating func move(to event: HeadEvent) {
    let wentBack = head.map { event.head < $0 } ?? false
    let isOther = epoch != nil && event.epoch != nil && epoch != event.epoch
    if wentBack || isOther { history += 1 }
    head = event.head
    epoch = event.epoch ?? epoch
  }

  mutating func disconnect() { head = nil }

  /// Records that everything was pulled since ``history`` had this number.
  mutating func trust(_ history: Int) { trustedHistory = history }
}

/// A head as the server sends it (SPEC.md §7).
struct HeadEvent: Sendable, Equatable {
  let head: SequenceNumber
  /// The epoch; `nil` if the event does not name it.
  let epoch: Epoch?

  init(head: SequenceNumber, epoch: Epoch? = nil) {
    self.head = head
    self.epoch = epoch
  }

  /// Creates a head from an event; `nil` if the event is not a head.
  init?(_ event: ServerSentEvent) {
    guard let head = SequenceNumber(event.id), 0...Limits.sequenceMax ~= head else { return nil }
    self.head = head
    epoch = try? decode(Array(event.data.utf8)) { (reader) throws(MalformedMessage) in
      var epoch: Epoch?
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "epoch": epoch = Epoch(try reader.string())
        default: try reader.skip()
        }
      }
      guard let epoch else { throw reader.malformed("the event names no epoch") }
      return epoch
    }
  }
}
