import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

/// Reads the messages of a stream, and lets a test wait for them.
final class ListenerDouble: Sendable {
  private final class Outlet: HTTPStream.Outlet {
    let resumptions = AsyncStream<Void>.makeStream()

    func suspend() -> Bool { true }
    func resume() { resumptions.continuation.yield() }
    func disconnect() {}
    func isPeerGone() -> Bool { false }
  }

  let stream = HTTPStream()
  private let outlet = Outlet()
  private let text = Mutex("")

  init() { stream.attach(outlet) }

  /// The messages so far.
  var received: [String] {
    text.withLock { text in
      var buffer = [UInt8](repeating: 0, count: 4_096)
      while case .bytes(let count) = buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
        text += String(decoding: buffer.prefix(count), as: UTF8.self)
      }
      return text.split(separator: "\n\n").map { $0 + "\n\n" }
    }
  }

  var isFinished: Bool { stream.isClosed }

  /// Closes the connection as a peer that goes away.
  func leave() { stream.connectionEnded() }

  /// Returns when `count` messages have come.
  func wait(for count: Int) async {
    if received.count >= count { return }
    for await _ in outlet.resumptions.stream where received.count >= count { return }
  }
}

@Suite(.hangLimit)
struct ServiceEventsTests {
  let store = ServiceStoreDouble(spaces: ["notes", "other"])
  let hub: HeadHub

  init() { hub = HeadHub(store, turn: .zero, sleep: { _ in }) }

  func listen(_ listener: ListenerDouble, heard: SequenceNumber? = nil) async throws {
    let name = try #require(SpaceName("notes"))
    let space = try #require(try await store.space(named: name))
    try await hub.add(listener.stream, to: space, heard: heard) { () async throws(StoreError) in
      try await store.space(named: name)
    }
  }

  static func event(_ head: SequenceNumber) -> String {
    String(decoding: HeadFanOut<HTTPStream>.event(epoch: Epoch(7), head: head), as: UTF8.self)
  }

  @Test("a listener receives the head at once and then each move of the store's feed")
  func hears() async throws {
    let listener = ListenerDouble()
    try await listen(listener)
    #expect(listener.received == [Self.event(0)])
    let moves = store.heads.stream()
    let feed = Task { await hub.forward(moves) }
    store.move("notes", to: 3)
    await listener.wait(for: 2)
    store.move("other", to: 9)
    store.move("notes", to: 4)
    await listener.wait(for: 3)
    #expect(listener.received == [0, 3, 4].map(Self.event))
    feed.cancel()
  }

  @Test("a move between the look-up of the space and the listening is not missed")
  func noGap() async throws {
    let name = try #require(SpaceName("notes"))
    let space = try #require(try await store.space(named: name))
    store.move("notes", to: 8, tells: false)
    let listener = ListenerDouble()
    try await hub.add(listener.stream, to: space, heard: 0) { () async throws(StoreError) in
      try await store.space(named: name)
    }
    #expect(listener.received == [Self.event(8)])
  }

  @Test("a heartbeat goes to every listener, including one that was sent no head")
  func heartbeat() async throws {
    let listeners = [ListenerDouble(), ListenerDouble()]
    try await listen(listeners[0])
    try await listen(listeners[1], heard: 0)
    hub.heartbeat()
    #expect(listeners[0].received == [Self.event(0), ":\n\n"])
    #expect(listeners[1].received == [":\n\n"])
  }

  @Test("heartbeats come at each interval until they are cancelled")
  func heartbeatInterval() async throws {
    let ticks = AsyncStream<Void>.makeStream()
    let waits = Mutex([Duration]())
    let hub = HeadHub(store) { duration in
      waits.withLock { $0.append(duration) }
      for await _ in ticks.stream { return }
      throw CancellationError()
    }
    let name = try #require(SpaceName("notes"))
    let space = try #require(try await store.space(named: name))
    let listener = ListenerDouble()
    try await hub.add(listener.stream, to: space, heard: 0) { () async throws(StoreError) in space }
    let task = Task { await hub.sendHeartbeats(every: .seconds(15)) }
    ticks.continuation.yield()
    await listener.wait(for: 1)
    ticks.continuation.yield()
    await listener.wait(for: 2)
    ticks.continuation.finish()
    await task.value
    #expect(waits.withLock { $0 } == [.seconds(15), .seconds(15), .seconds(15)])
  }

  @Test("a listener that has left is forgotten, and closing ends the others")
  func closes() async throws {
    let listeners = [ListenerDouble(), ListenerDouble()]
    for listener in listeners { try await listen(listener) }
    #expect(hub.listenerCount == 2)
    listeners[0].leave()
    #expect(hub.listenerCount == 1)
    hub.close()
    #expect(listeners[1].isFinished)
    let late = ListenerDouble()
    try await listen(late)
    #expect(late.isFinished)
  }

  @Test("the store is asked for the moves of a space while the space has listeners")
  func watches() async throws {
    let isWatched = { self.store.heads.needs(1) }
    let listeners = [ListenerDouble(), ListenerDouble(), ListenerDouble()]
    let name = try #require(SpaceName("notes"))
    let space = try #require(try await store.space(named: name))
    try await hub.add(listeners[0].stream, to: space, heard: nil) { () async throws(StoreError) in
      #expect(isWatched(), "the head is read after the watch has begun")
      return space
    }
    try await listen(listeners[1])
    #expect(isWatched())
    listeners[0].leave()
    #expect(isWatched())
    listeners[1].leave()
    listeners[1].leave()
    #expect(!isWatched())
    await #expect(throws: StoreError.unavailable("away")) {
      try await hub.add(listeners[2].stream, to: space, heard: nil) { () async throws(StoreError) in
        throw .unavailable("away")
      }
    }
    listeners[2].leave()
    #expect(!isWatched())
    hub.close()
    try await listen(ListenerDouble())
    #expect(!isWatched(), "a server that stops watches nothing")
  }

  @Test("if the store fails while a listener joins, the listener is removed")
  func failsOnArrival() async throws {
    let name = try #require(SpaceName("notes"))
    let space = try #require(try await store.space(named: name))
    await #expect(throws: StoreError.unavailable("away")) {
      try await hub.add(ListenerDouble().stream, to: space, heard: nil) {
        () async throws(StoreError) in
        throw .unavailable("away")
      }
    }
    #expect(hub.listenerCount == 0)
  }

  @Test("the head of a restored space is sent even if it is lower")
  func restored() async throws {
    let listener = ListenerDouble()
    store.move("notes", to: 9, tells: false)
    try await listen(listener)
    let moves = store.heads.stream()
    let feed = Task { await hub.forward(moves) }
    store.move("notes", to: 2)
    await listener.wait(for: 2)
    #expect(listener.received == [9, 2].map(Self.event))
    feed.cancel()
  }
}
