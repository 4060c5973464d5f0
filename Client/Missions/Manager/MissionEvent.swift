import FerryProtocol
import Synchronization

/// An event of a manager for observers.
public enum MissionEvent: Sendable, Equatable {
  /// A mission has a new state, with the reason.
  case changed(MissionID, MissionState, MissionError?)
  /// The progress of a mission; a few times a second.
  case progress(MissionProgress)
  /// An item's content is complete.
  case item(MissionID, path: String)
  /// No part of the mission is here any more.
  case removed(MissionID)
}

/// Sends events to any number of listeners.
final class EventHub: Sendable {
  /// The most events waiting for a slow listener; the oldest ones are dropped.
  private static let buffered = 10_000

  private struct State {
    var next = 0
    var listeners: [Int: AsyncStream<MissionEvent>.Continuation] = [:]
  }

  private let state = Mutex(State())

  /// Returns a stream of all events from now on, until the hub ends or the listener leaves.
  func listen() -> AsyncStream<MissionEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: MissionEvent.self, bufferingPolicy: .bufferingNewest(Self.buffered))
    let number = state.withLock { state in
      state.next += 1
      state.listeners[state.next] = continuation
      return state.next
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
    }
    return stream
  }

  func notify(_ event: MissionEvent) {
    let listeners = state.withLock { $0.listeners.sorted { $0.key < $1.key }.map(\.value) }
    for listener in listeners { listener.yield(event) }
  }

  func end() {
    let listeners = state.withLock { state in
      defer { state.listeners = [:] }
      return state.listeners.sorted { $0.key < $1.key }.map(\.value)
    }
    for listener in listeners { listener.finish() }
  }
}

/// The progress of a mission, updated by downloads from any thread.
final class ProgressBoard: Sendable {
  private let meter: Mutex<ProgressMeter>
  private let clock: @Sendable () -> Duration

  /// Creates the progress of a mission.
  ///
  /// - Parameter row: has the progress reported by an earlier process.
  init(_ manifest: MissionManifest, _ row: MissionRow, clock: @escaping @Sendable () -> Duration) {
    meter = Mutex(
      ProgressMeter(manifest, bytesShown: row.bytesDone, itemsShown: row.itemsDone))
    self.clock = clock
  }

  func begin(_ place: Int, _ item: MissionItem, sharers: Int) {
    meter.withLock { $0.begin(place, item, sharers: sharers) }
  }

  func update(_ place: Int, _ progress: DownloadProgress) {
    let now = clock()
    meter.withLock { $0.update(place, progress, at: now) }
  }

  func attemptEnded(_ place: Int) { meter.withLock { $0.attemptEnded(place) } }

  func finish(_ place: Int) {
    let now = clock()
    meter.withLock { $0.finish(place, at: now) }
  }

  func progress() -> MissionProgress {
    let now = clock()
    return meter.withLock { $0.progress(at: now) }
  }
}
