import FerryProtocol

/// The fan-out of head moves: the head of each space, its listeners, and the events to send; pure.
///
/// Heads supersede each other. The first move of a space is passed on at once and opens the space's
/// window. Moves within the window are passed on at the end of the window, as one event.
///
/// A window is some turns of one timer long: the more listeners the space has, the more turns. So
/// all busy spaces together send about ``eventsOfTurn`` events in a turn. A small space beside a
/// large one has a short window.
struct HeadFanOut<Listener> {
  /// Events for one turn of the timer. At turns of 10 ms it is 16,000 a second, which takes about a
  /// quarter of a core.
  static var eventsOfTurn: Int { 160 }

  /// A comment to keep the connection and the proxies on the way awake.
  static var heartbeat: [UInt8] { Array(":\n\n".utf8) }

  /// Encodes a server-sent event (WHATWG HTML §9.2). The `id` is the head, so a reconnecting client
  /// reports the last head received.
  static func event(epoch: Epoch, head: SequenceNumber) -> [UInt8] {
    Array(
      """
      id: \(head)
      event: head
      data: {"epoch":"\(epoch)","head":"\(head)"}


      """.utf8)
  }

  /// Bytes for some listeners.
  struct Delivery {
    var bytes: [UInt8]
    var listeners: [Listener]
  }

  /// The result of a move.
  struct Step {
    var delivery: Delivery?
    /// Call ``endTurn()`` a little later.
    var startsTurns = false
    /// The head went back: look this space up and ``replace(_:)`` it.
    var suspect: SpaceName?
  }

  private struct Member {
    let number: Int
    let listener: Listener
    /// True if it received the first head; it receives moves from then on.
    var isGreeted = false
  }

  private struct Window {
    /// The turn at which it ends.
    let end: Int
    /// The window's part of ``load``.
    let share: Int
  }

  private struct Channel {
    let name: SpaceName
    var epoch: Epoch
    /// `nil` until the first listener has looked the head up.
    var head: SequenceNumber?
    /// Encoded once for all listeners.
    var event: [UInt8] = []
    /// The open window; `nil` if the space is quiet.
    var window: Window?
    /// True if the head has moved within the window.
    var isDirty = false
    /// By number: the order in which they came.
    var members: [Member] = []

    func index(of number: Int) -> Int? {
      let index = members.partitioningIndex { $0.number >= number }
      return index < members.count && members[index].number == number ? index : nil
    }

    /// The event for all greeted listeners.
    var delivery: Delivery {
      Delivery(bytes: event, listeners: members.filter(\.isGreeted).map(\.listener))
    }
  }

  private var channels: [Int64: Channel] = [:]
  private var nextListener = 0
  /// Spaces whose window is open.
  private var busy: Set<Int64> = []
  /// The events of busy spaces in each turn if no window were longer than one.
  private var load = 0
  private var turn = 0
  /// True if the timer runs.
  private var isTurning = false

  /// Listeners of all spaces.
  var listenerCount: Int { channels.values.reduce(0) { $0 + $1.members.count } }

  func hasListeners(to space: Int64) -> Bool { channels[space] != nil }

  /// All listeners.
  var listeners: [Listener] {
    channels.keys.sorted().flatMap { channels[$0]?.members.map(\.listener) ?? [] }
  }

  /// Adds a listener, which is greeted when the head is known. Returns the listener's number.
  mutating func add(_ listener: Listener, to space: SpaceSummary) -> Int {
    nextListener += 1
    channels[space.id, default: Channel(name: space.name, epoch: space.epoch)]
      .members.append(Member(number: nextListener, listener: listener))
    return nextListener
  }

  /// Returns the newest event for a new listener, unless it has received it.
  mutating func greet(_ number: Int, of space: Int64, heard: SequenceNumber?) -> Delivery? {
    guard let channel = channels[space], let index = channel.index(of: number) else { return nil }
    channels[space]?.members[index].isGreeted = true
    if channel.head == heard { return nil }
    return Delivery(bytes: channel.event, listeners: [channel.members[index].listener])
  }

  /// Reports whether it was the space's last listener.
  @discardableResult
  mutating func remove(_ listener: Int, from space: Int64) -> Bool {
    if let index = channels[space]?.index(of: listener) {
      channels[space]?.members.remove(at: index)
    }
    guard channels[space]?.members.isEmpty == true else { return false }
    closeWindow(of: space)
    channels[space] = nil
    return true
  }

  /// Applies a move from the store's feed. It has no effect before the first look-up of the head.
  mutating func move(_ move: HeadMove) -> Step {
    guard let channel = channels[move.space], let head = channel.head else { return Step() }
    if move.head < head { return Step(suspect: channel.name) }
    return advance(move.space, epoch: channel.epoch, head: move.head)
  }

  /// Applies a head read from the store, unless a newer one is known.
  mutating func see(_ space: SpaceSummary) -> Step {
    guard let channel = channels[space.id] else { return Step() }
    guard let head = channel.head, channel.epoch == space.epoch, head >= space.head else {
      return advance(space.id, epoch: space.epoch, head: space.head)
    }
    return Step()
  }

  /// Applies a head read from the store, even if it is behind the known one: the store was restored
  /// from a backup.
  mutating func replace(_ space: SpaceSummary) -> Step {
    advance(space.id, epoch: space.epoch, head: space.head)
  }

  /// Passes on the moves within the windows that end now. Returns in `goesOn` whether a window is
  /// still open.
  mutating func endTurn() -> (deliveries: [Delivery], goesOn: Bool) {
    turn += 1
    var deliveries: [Delivery] = []
    for id in busy.sorted() {
      guard let channel = channels[id], let window = channel.window, window.end <= turn else {
        continue
      }
      closeWindow(of: id)
      guard channel.isDirty else { continue }
      channels[id]?.isDirty = false
      deliveries.append(channel.delivery)
      openWindow(of: id)
    }
    isTurning = !busy.isEmpty
    return (deliveries, isTurning)
  }

  /// Opens a window with the length for the events just sent.
  private mutating func openWindow(of id: Int64) {
    guard let count = channels[id]?.members.count else { return }
    let share = min(count, Self.eventsOfTurn)
    load += share
    busy.insert(id)
    // All busy spaces have equal parts of the events: each turn is for one with many listeners, or
    // for some with few.
    let part = Self.eventsOfTurn * Self.eventsOfTurn
    let events = max(count, Self.eventsOfTurn) * max(load, Self.eventsOfTurn)
    let window = Window(end: turn + (events + part / 2) / part, share: share)
    channels[id]?.window = window
  }

  private mutating func closeWindow(of id: Int64) {
    guard let window = channels[id]?.window else { return }
    load -= window.share
    busy.remove(id)
    channels[id]?.window = nil
  }

  private mutating func advance(_ id: Int64, epoch: Epoch, head: SequenceNumber) -> Step {
    guard var channel = channels[id], channel.head != head || channel.epoch != epoch else {
      return Step()
    }
    channel.epoch = epoch
    channel.head = head
    channel.event = Self.event(epoch: epoch, head: head)
    let isHeard = channel.members.contains(where: \.isGreeted)
    if isHeard && channel.window != nil { channel.isDirty = true }
    channels[id] = channel
    guard isHeard, channel.window == nil else { return Step() }
    let startsTurns = !isTurning
    isTurning = true
    openWindow(of: id)
    return Step(delivery: channel.delivery, startsTurns: startsTurns)
  }
}
