import FerryProtocol

/// Decides about the syncs of a watch: the need for one, and the step after it; pure.
struct WatchRules: Equatable {
  /// The work for a sync in the file.
  struct Work: Equatable {
    /// The end of the applied changes; `nil` before the first pull.
    var applied: SequenceNumber?
    /// True if operations are pending.
    var hasOperations = false
    /// True if the server does not have this device's name.
    var hasUnsentName = false
    /// True if the next pull has to fetch records whole.
    var hasRefreshes = false
    /// True if the next sync has to pull a table's changes again.
    var hasReturning = false
    /// True if tables may have unrecorded writes.
    var hasUnrecorded = false

    /// Returns true if a sync is needed.
    ///
    /// - Parameter head: the server's newest place, known from the live connection.
    func isDue(at head: SequenceNumber) -> Bool {
      guard let applied, head <= applied else { return true }
      return hasOperations || hasUnsentName || hasRefreshes || hasReturning || hasUnrecorded
    }
  }

  /// The step after a sync.
  enum Step: Equatable {
    /// Waits for the next wakeup.
    case wait
    /// Syncs again after a pause.
    case retry
    /// Ends the watch with the failure.
    case fail
    /// Ends the watch: the program itself stopped the sync.
    case stop
  }

  private var hasSynced = false

  /// Returns the step after a successful sync.
  mutating func succeed(_ report: SyncReport) -> Step {
    hasSynced = true
    return report.left > 0 || report.unreconciled > 0 ? .retry : .wait
  }

  /// Returns the step after a failed sync.
  func fail(_ failure: ReplicaError) -> Step {
    if failure.isStop { return .stop }
    if failure.isTransient || failure.isOverQuota { return .retry }
    // A server trusted before may be behind a portal's page now, or renew its certificate soon.
    // If it was never trusted, the setup is wrong.
    return hasSynced && failure.isUntrusted ? .retry : .fail
  }
}
