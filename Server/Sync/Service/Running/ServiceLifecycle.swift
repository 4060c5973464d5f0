import Synchronization

/// The state of a server: serving or stopping.
final class ServiceLifecycle: Sendable {
  private let stopping = Atomic(false)

  var isStopping: Bool { stopping.load(ordering: .acquiring) }

  func beginStopping() { stopping.store(true, ordering: .releasing) }
}
