import FerryProtocol

/// The fan-out of head moves: the head of each space, its listeners, and the events to send; pure.
///
/// Heads supersede each other. The first move of a space is passed on at once and opens a window.
/// Moves within the window are passed on when it ends, as one event.
struct HeadFanOut<Listener> {
  /// Bytes for some listeners.
  struct Delivery {
    var bytes: [UInt8]
    var listeners: [Listener]
  }

  /// The result of a move.
  struct Step {
    var delivery: Delivery?
    /// Call ``endWindow()`` a little later.
    var opensWindow = false
    /// The head went back: look this space up and ``replace(_:)`` it.
    var suspect: SpaceName?
  }

  private struct Member {
    let number: Int
    let listener: Listener
    /// Whether it received the first head; it receives moves from then on.
    var isGreeted = false
  }

  private struct Channel {
    let name: SpaceName
    var epoch: Epoch
    /// `nil` until the first listener has looked the head up.
    var head: SequenceNumber?
    /// Encoded once for all listeners.
    var event: [UInt8] = []
    var sentInWindow = false
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
  private var isWindowOpen = false

  /// Listeners of all spaces.
  var listenerCount: Int { channels.values.reduce(0) { $0 + $1.members.count } }

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

  mutating func remove(_ listener: Int, from space: Int64) {
    if let index = channels[space]?.index(of: listener) {
      channels[space]?.members.remove(at: index)
    }
    if channels[space]?.members.isEmpty == true { channels[space] = nil }
  }

  /// Takes a move from the store's feed. It has no effect before the first look-up of the head.
  mutating func move(_ move: HeadMove) -> Step {
    guard let channel = channels[move.space], let head = channel.head else { return Step() }
    if move.head < head { return Step(suspect: channel.name) }
    return advance(move.space, epoch: channel.epoch, head: move.head)
  }

  /// Takes a head that was read from the store, unless a newer one is known.
  mutating func see(_ space: SpaceSummary) -> Step {
    guard let channel = channels[space.id] else { return Step() }
    guard let head = channel.head, channel.epoch == space.epoch, head >= space.head else {
      return advance(space.id, epoch: space.epoch, head: space.head)
    }
    return Step()
  }

  /// Takes a head that was read from the store, even if it is behind the known one: the store was
  /// restored from a backup.
  mutating func replace(_ space: SpaceSummary) -> Step {
    advance(space.id, epoch: space.epoch, head: space.head)
  }

  /// Passes on the moves within the window. Reports whether another window was opened.
  mutating func endWindow() -> (deliveries: [Delivery], opensWindow: Bool) {
    var deliveries: [Delivery] = []
    for id in channels.keys.sorted() {
      guard var channel = channels[id] else { continue }
      if channel.isDirty { deliveries.append(channel.delivery) }
      channel.sentInWindow = channel.isDirty
      channel.isDirty = false
      channels[id] = channel
    }
    isWindowOpen = !deliveries.isEmpty
    return (deliveries, isWindowOpen)
  }

  private mutating func advance(_ id: Int64, epoch: Epoch, head: SequenceNumber) -> Step {
    guard var channel = channels[id], channel.head != head || channel.epoch != epoch else {
      return Step()
    }
    channel.epoch = epoch
    channel.head = head
    channel.event = HeadEvent.encode(epoch: epoch, head: head)
    defer { channels[id] = channel }
    guard channel.members.contains(where: \.isGreeted) else { return Step() }
    if channel.sentInWindow {
      channel.isDirty = true
      return Step()
    }
    channel.sentInWindow = true
    let opensWindow = !isWindowOpen
    isWindowOpen = true
    return Step(delivery: channel.delivery, opensWindow: opensWindow)
  }
}
