/// An event of a shell, for the program's log.
public enum ShellEvent: Sendable, Equatable {
  /// A page load began with a version.
  case loaded(PageVersion)
  /// A page works.
  case confirmed(PageVersion)
  /// A page failed; whether an earlier version is shown instead.
  case failed(PageVersion, PageFailure, fallsBack: Bool)
  /// There is no version to show.
  case unavailable(BundleSourceError)
  /// A request not from the page got nothing.
  case refused(path: String, reason: String)
  /// A service failed with an error hidden from the page.
  case serviceFailed(ServiceName, String)
}

/// The services of the machine for a shell; tests replace them.
package struct ShellSurroundings: Sendable {
  /// Returns the time since any fixed moment.
  package var now: @Sendable () -> Duration
  /// Waits.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// The executor of the shell's own tasks; `nil` for the pool.
  package var executor: (any TaskExecutor)?

  package init(
    now: @escaping @Sendable () -> Duration,
    sleep: @escaping @Sendable (Duration) async throws -> Void
  ) {
    (self.now, self.sleep) = (now, sleep)
  }

  /// The system's clock.
  package static var system: ShellSurroundings {
    let start = ContinuousClock.now
    return ShellSurroundings(now: { ContinuousClock.now - start }) {
      try await Task.sleep(for: $0)
    }
  }
}
