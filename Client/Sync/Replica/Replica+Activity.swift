extension Replica {
  /// Returns the activity of this replica's syncs: the present one, and each later one. A slow
  /// consumer gets the newest. The stream ends when the consumer stops, or when the replica is
  /// closed. A local write does not change the phase; ``status()`` counts pending operations.
  ///
  /// ```swift
  /// for await activity in replica.activity() {
  ///   switch activity.phase {
  ///   case .offline(let reason): print("offline: \(reason)")
  ///   case .upToDate: print("the last sync was complete")
  ///   default: break
  ///   }
  /// }
  /// ```
  public func activity() -> AsyncStream<SyncActivity> {
    Task { [engine, thread] in
      guard let needs = try? await thread.run({ try $0.reports.needs() }) else { return }
      engine.activity.update { $0.add(needs) }
    }
    return engine.activity.stream()
  }
}
