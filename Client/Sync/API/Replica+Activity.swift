extension Replica {
  /// Returns the activity of this replica's syncs: the present one, and each later one. A consumer
  /// that is slow gets the newest. The stream ends when its consumer stops. A local write does not
  /// change the phase; ``status()`` counts pending operations.
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
      guard let needs = try? await thread.run({ try $0.needs() }) else { return }
      engine.activity.update { $0.note(needs) }
    }
    return engine.activity.stream()
  }
}

extension ReplicaFile {
  /// Returns the reasons for which the user is needed.
  func needs() throws -> Set<SyncActivity.Need> {
    var needs: Set<SyncActivity.Need> = []
    if try connection.exists(
      "SELECT 1 FROM ferry_conflicts WHERE question = 1 AND resolved IS NULL")
    {
      needs.insert(.conflicts)
    }
    if try connection.exists("SELECT 1 FROM ferry_quarantine") { needs.insert(.quarantine) }
    if try connection.exists("SELECT 1 FROM ferry_kept WHERE reason IS NOT NULL") {
      needs.insert(.deferredChanges)
    }
    if try hasFailed() { needs.insert(.failedUploads) }
    return needs
  }
}
