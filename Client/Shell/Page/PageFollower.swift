import Synchronization

/// Passes the events of a shell's pages to ``PageWatch``, and confirms or fails their versions as it
/// decides.
package final class PageFollower: Sendable {
  private let source: any BundleSource
  private let surroundings: ShellSurroundings
  private let log: @Sendable (ShellEvent) -> Void
  private let reload: @Sendable (PageVersion) -> Void
  private let watch = Mutex(PageWatch())

  /// - Parameters:
  ///   - log: gets each confirmed or failed version.
  ///   - reload: called with a failed version if its pages should show another one now.
  package init(
    _ source: any BundleSource, _ surroundings: ShellSurroundings,
    log: @escaping @Sendable (ShellEvent) -> Void,
    reload: @escaping @Sendable (PageVersion) -> Void
  ) {
    (self.source, self.surroundings) = (source, surroundings)
    (self.log, self.reload) = (log, reload)
  }

  /// Records an event of a page, and executes the watch's decisions.
  package func handle(_ event: PageWatch.Event, of page: Int) async {
    let now = surroundings.now()
    let effects = watch.withLock { $0.handle(event, of: page, at: now) }
    if case .loaded = event {
      Task(executorPreference: surroundings.executor) { [weak self, surroundings] in
        try await surroundings.sleep(PageWatch.patience)
        await self?.expire()
      }
    }
    await perform(effects)
  }

  private func expire() async {
    let now = surroundings.now()
    await perform(watch.withLock { $0.expired(at: now) })
  }

  private func perform(_ effects: [PageWatch.Effect]) async {
    for effect in effects {
      switch effect {
      case .confirm(_, let version):
        await source.confirm(version)
        log(.confirmed(version))
      case .fail(_, let version, let failure):
        let fallsBack = await source.fail(version, failure)
        log(.failed(version, failure, fallsBack: fallsBack))
        if fallsBack { reload(version) }
      }
    }
  }
}
