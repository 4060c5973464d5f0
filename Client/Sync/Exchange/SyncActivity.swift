import FerryProtocol

/// The present work of a replica's syncs, and the reasons to involve the user.
///
/// ```swift
/// for await activity in replica.activity() {
///   if activity.needs.contains(.token) { await signIn() }
/// }
/// ```
public struct SyncActivity: Sendable, Equatable {
  /// The work of a sync.
  public enum Phase: Sendable, Equatable {
    /// This program has not synced yet, or the last sync left work for the next one.
    case idle
    /// A sync is under way; `nil` before the first progress.
    case syncing(SyncProgress?)
    /// The last sync left nothing behind; when it ended, milliseconds since 1970.
    case upToDate(since: Int64)
    /// The server cannot be reached, with the reason. Later syncs may succeed.
    case offline(String)
    /// The last sync failed, with the reason, and will fail again until it is removed.
    case failed(String)
  }

  /// A reason to involve the user.
  public enum Need: String, Sendable, CaseIterable {
    /// Conflicts wait for a decision; see ``Replica/conflicts(limit:openOnly:)``.
    case conflicts
    /// The server rejected operations; see ``Quarantine/entries(limit:)``.
    case quarantine
    /// The tables here reject pulled changes; see ``Replica/waitingChanges(limit:)``.
    case deferredChanges
    /// Operations of upload-only tables failed; see ``Uploads/states(of:limit:)``.
    case failedUploads
    /// The server no longer serves this version of the program.
    case upgrade
    /// The token is missing, or the server rejects it.
    case token
  }

  /// The present phase.
  public private(set) var phase = Phase.idle
  /// The reasons to involve the user, as of the last sync.
  public private(set) var needs: Set<Need> = []
  /// The phase before the present sync.
  private var rest = Phase.idle

  init() {}

  /// Begins a sync.
  mutating func begin() {
    if case .syncing = phase { return }
    rest = phase
    phase = .syncing(nil)
  }

  /// Updates the progress of a sync.
  mutating func advance(_ progress: SyncProgress) {
    if case .syncing = phase { phase = .syncing(progress) }
  }

  /// Ends a sync.
  ///
  /// - Parameters:
  ///   - needs: the reasons found in the file.
  ///   - now: milliseconds since 1970.
  mutating func end(_ report: SyncReport, needs: Set<Need>, now: Int64) {
    let isDone = report.left == 0 && report.unreconciled == 0 && report.buffered == 0
    phase = isDone ? .upToDate(since: now) : .idle
    self.needs = needs
  }

  /// Ends a sync with a failure.
  mutating func fail(_ error: ReplicaError) {
    if error.isStop {
      phase = rest
      return
    }
    phase = error.isTransient ? .offline(error.description) : .failed(error.description)
    if let need = Self.need(error) { needs.insert(need) }
  }

  /// Adds the reasons found in the file before the first sync.
  mutating func add(_ needs: Set<Need>) { self.needs.formUnion(needs) }

  private static func need(_ error: ReplicaError) -> Need? {
    switch error {
    case .tokenMissing: .token
    case .refused(let problem):
      switch problem.code {
      case .unauthorized, .forbidden: .token
      case .upgradeRequired: .upgrade
      default: nil
      }
    default: nil
    }
  }
}
