import FerryProtocol

/// The end of a pull: the complete list becomes visible.
extension SyncEngine {
  /// Applies the staged pages and the last one. A large first list is filled in before: calls of this process
  /// and of others run between its slices.
  func apply(
    last body: [UInt8], _ head: PageHead, _ progress: @escaping Progress
  ) async throws -> AppliedPull {
    @Sendable func reporting(of total: Int) -> @Sendable (Int) -> Void {
      { applied in
        progress(SyncProgress(phase: .applying, completed: min(applied, total), total: total))
      }
    }
    let (atOnce, total) = try await thread.runUntilCancelled { file -> (AppliedPull?, Int) in
      // An earlier sync may have staged the list's first pages.
      let total = try file.stagedPages.changeCount() + head.count
      if try file.firstList.begin(last: body, head) { return (nil, total) }
      return (try file.apply(last: body, head, progress: reporting(of: total)), total)
    }
    if let atOnce { return atOnce }
    let report = reporting(of: total)
    do {
      while let pause = try await fillSlice(report) {
        if pause > .zero { try await surroundings.sleep(pause) }
      }
      return try await thread.runUntilCancelled { try $0.apply(last: body, head, progress: report) }
    } catch {
      // The copies would keep their room. If this fails, the next sync drops them.
      if !ReplicaError(error).isBusy { try? await thread.run { try $0.firstList.end() } }
      throw error
    }
  }

  /// Fills the next slice. Returns the pause after it; `nil` if it was the last one.
  private func fillSlice(_ report: @escaping @Sendable (Int) -> Void) async throws -> Duration? {
    let taken = try await thread.runUntilCancelled { file -> Duration? in
      let start = ContinuousClock.now
      return try file.firstList.fillSlice(report) ? ContinuousClock.now - start : nil
    }
    return taken.map(surroundings.firstLists.pause)
  }
}
