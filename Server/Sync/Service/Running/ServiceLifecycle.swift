import Synchronization

/// Whether the server is stopping.
final class ServiceLifecycle: Sendable {
  private let stopping = Atomic(false)

  var isStopping: Bool { stopping.load(ordering: .acquiring) }

  func beginStopping() { stopping.store(true, ordering: .releasing) }
}
