import FerryProtocol

/// What one sync did.
public struct SyncReport: Sendable, Equatable {
  /// Operations that the server took.
  public var pushed = 0
  /// Operations that it had already: an earlier answer was lost on the way.
  public var duplicates = 0
  /// Operations that wait on the server for an earlier packet.
  public var parked = 0
  /// Operations that the sync was to send and that the server has not confirmed: more came back to
  /// the queue than one sync sends. The next one goes on.
  public var left = 0
  /// Rows that were written while nothing recorded them, such as by another program that created a
  /// table again, and that this sync recorded as edits of this device.
  public var recorded = 0
  /// Tables that the next sync compares with the server once more, since rows of them were pending or
  /// changed meanwhile.
  public var unreconciled = 0
  /// Changes received and applied here.
  public var pulled = 0
  /// Changes that the local schema refuses and that are deferred at the end of the sync.
  public var refused = 0
  /// Operations that the server refuses for good, and what depends on them.
  public var quarantined = 0
  /// Values that lost against others, on either side.
  public var conflicts = 0
  /// The cursor afterwards; `nil` when nothing was ever pulled.
  public var cursor: Cursor?

  /// Nothing done.
  public init() {}

  /// What was done, in a line; `nil` when nothing was.
  public var summary: String? {
    let parts = [
      (pushed, "pushed"), (pulled, "pulled"), (duplicates, "known already"),
      (recorded, "found in migrated tables"),
      (parked, "waiting on the server"), (refused, "kept back"),
      (quarantined, "quarantined"), (left, "left for the next sync"),
      (conflicts, "conflicts settled"),
    ].filter { $0.0 > 0 }
    return parts.isEmpty ? nil : parts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }
}

/// How far a sync is.
public struct SyncProgress: Sendable, Equatable {
  /// What is under way.
  public enum Phase: String, Sendable {
    case pulling
    case applying
    case pushing
  }

  /// What is under way.
  public var phase: Phase
  /// Changes or operations done.
  public var completed: Int
  /// About how many there are.
  public var total: Int
}

/// Where a replica stands, for people and for `ferry status`.
public struct ReplicaStatus: Sendable, Equatable {
  /// This replica's identity.
  public var device: DeviceID
  /// The server it syncs with.
  public var server: ServerAddress?
  /// Tables whose changes are recorded.
  public var tables: [Name]
  /// Operations that the server has not confirmed.
  public var pending: Int
  /// Changes pulled but not applied yet: pages of a pull under way, refused records, and records
  /// whose table or columns are not here.
  public var toApply: Int
  /// Values that lost against others and are kept.
  public var conflicts: Int
  /// Conflicts that the user is to decide.
  public var questions: Int
  /// Records that the local schema refuses; see `ferry to-apply`.
  public var keptBack: Int
  /// Operations that the server refuses for good, and what depends on them; see
  /// ``Replica/quarantine(limit:)``.
  public var quarantined: Int
  /// Records of upload-only tables of which something failed; see ``Replica/uploads(table:limit:)``.
  public var unsent: Int
  /// Operations that wait on the server for an earlier packet.
  public var parked: Int
  /// What has been applied.
  public var cursor: Cursor?
  /// The newest change that the server has told of.
  public var head: SequenceNumber
  /// When the last sync ended, milliseconds since 1970.
  public var lastSync: Int64?
  /// The server's clock minus this machine's, milliseconds.
  public var clockOffset: Int64
  /// The newest entry of the log on a copy or a server that was set back, which the replica got
  /// over by itself; `nil` when that never happened.
  public var lastRecovery: LogEntry?
  /// Tracked tables that cannot be synced as they are; everything else is synced.
  public var tableFaults: [TableFault] = []
  /// Warnings about security, such as a token that travels without encryption.
  public var warnings: [String] = []
}

/// A change that was pulled and waits (seed row S1.4).
public struct WaitingChange: Sendable, Equatable {
  /// Its place in the space's order.
  public var sequence: SequenceNumber
  /// The record.
  public var key: RecordKey
  /// Insert, update or delete, as far as the record is concerned.
  public var kind: OperationKind
  /// The columns it sets.
  public var columns: [Column]
  /// Why it waits.
  public var reason: String
}

/// An entry of the replica's log.
public struct LogEntry: Sendable, Equatable {
  /// Milliseconds since 1970.
  public var at: Int64
  /// What kind of thing happened, one word.
  public var event: String
  /// What happened, for a person.
  public var detail: String
}
