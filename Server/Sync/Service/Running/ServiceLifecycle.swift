import Synchronization

/// Whether the server is on its way out.
final class ServiceLifecycle: Sendable {
  private let stopping = Atomic(false)

  var isStopping: Bool { stopping.load(ordering: .acquiring) }

  func beginStopping() { stopping.store(true, ordering: .releasing) }
}
