import FerryPlatform
import FerryProtocol

/// The result of one sync.
public struct SyncReport: Sendable, Equatable {
  /// Operations accepted by the server.
  public var pushed = 0
  /// Operations known to the server already: an earlier answer was lost on the way.
  public var duplicates = 0
  /// Operations buffered by the server until an earlier packet arrives.
  public var buffered = 0
  /// Operations that the sync should have sent and the server has not confirmed. More of them
  /// returned to the queue than one sync sends. The next sync continues.
  public var left = 0
  /// Unrecorded rows recorded by this sync as edits of this device. For example, another program
  /// created a table again.
  public var recorded = 0
  /// Tables for the next sync to compare with the server once more. Some of their rows were pending
  /// or changed meanwhile.
  public var unreconciled = 0
  /// Changes received and applied here.
  public var pulled = 0
  /// Changes rejected by the local schema and deferred at the end of the sync.
  public var refused = 0
  /// Operations rejected by the server, with all dependent ones.
  public var quarantined = 0
  /// Lost values, on either side, with the ``questions``.
  public var conflicts = 0
  /// Lost values with a question to the user; see ``Replica/conflicts(limit:openOnly:)``.
  public var questions = 0
  /// The cursor after the sync; `nil` if the replica has never pulled.
  public var cursor: Cursor?
  /// The trace named by the requests of the sync, 32 hexadecimal digits (W3C Trace Context). `nil`
  /// if they named none.
  public var trace: String?

  /// Creates a report of no work.
  public init() {}

  /// A summary in one line; `nil` if the sync changed nothing.
  public var summary: String? {
    parts.isEmpty ? nil : parts.map { "\($0.count.grouped) \($0.name)" }.joined(separator: ", ")
  }

  /// The counts above zero, with their names.
  package var parts: [(count: Int, name: String)] {
    let resolved = conflicts - questions
    let parts = [
      (pushed, "pushed"), (pulled, "pulled"), (duplicates, "known already"),
      (recorded, "found in migrated tables"),
      (buffered, "buffered by the server"), (refused, "deferred"),
      (quarantined, "quarantined"), (left, "left for the next sync"),
      (resolved, resolved == 1 ? "conflict resolved" : "conflicts resolved"),
      (questions, questions == 1 ? "conflict to decide" : "conflicts to decide"),
    ]
    return parts.filter { $0.0 > 0 }
  }
}

/// The progress of a sync.
public struct SyncProgress: Sendable, Equatable {
  /// A phase of a sync.
  public enum Phase: String, Sendable {
    /// Changes travel to this device.
    case pulling
    /// Pulled changes are written to the tables, in one transaction.
    case applying
    /// Operations travel to the server.
    case pushing
  }

  /// The current phase.
  public var phase: Phase
  /// Changes or operations done.
  public var completed: Int
  /// Approximately how many changes or operations there are.
  public var total: Int
}

/// The status of a replica, for users and for `ferry status`.
public struct ReplicaStatus: Sendable, Equatable {
  /// This replica's identity.
  public var device: DeviceID
  /// This device's name; `nil` if it has none. See ``Replica/setDeviceName(_:)``.
  public var deviceName: String?
  /// The server it syncs with.
  public var server: ServerAddress?
  /// The tracked tables, by their names in the space.
  public var tables: [Name]
  /// Operations not confirmed by the server.
  public var pending: Int
  /// Changes pulled but not applied yet: pages of a current pull, deferred records, and records of
  /// tables or columns absent here.
  public var toApply: Int
  /// Lost values, kept for the user.
  public var conflicts: Int
  /// Conflicts waiting for the user's decision.
  public var questions: Int
  /// Deferred records, rejected by the local schema; see `ferry to-apply`.
  public var deferred: Int
  /// Deferred records waiting because you keep another row with their unique value; see
  /// ``ConflictAnswer/keepLocal``.
  public var keptLocal = 0
  /// Operations rejected by the server, with all dependent ones; see
  /// ``Quarantine/entries(limit:)``.
  public var quarantined: Int
  /// Records of upload-only tables with a failed operation; see ``Uploads/states(of:limit:)``.
  public var unsent: Int
  /// Operations buffered by the server until an earlier packet arrives.
  public var buffered: Int
  /// The cursor of the last applied change.
  public var cursor: Cursor?
  /// The newest change announced by the server.
  public var head: SequenceNumber
  /// When the last sync ended, milliseconds since 1970.
  public var lastSync: Int64?
  /// The server's clock minus this machine's, milliseconds.
  public var clockOffset: Int64
  /// The newest log entry about a copied replica or a rolled-back server, if the replica recovered
  /// by itself; `nil` if there was none.
  public var lastRecovery: LogEntry?
  /// Tracked tables unable to sync in their present form; all others sync.
  public var tableFaults: [TableFault] = []
  /// Warnings about security, such as a token sent without encryption.
  public var warnings: [String] = []
  /// Why the server accepts no operation with the present token, such as a reader's: pending operations
  /// are not sent until it is replaced. `nil` if the server has not refused any.
  public var writesRefused: String?
}

/// A pulled change waiting to be applied (SPEC.md §5).
public struct WaitingChange: Sendable, Equatable {
  /// The change's place in the space's order.
  public var sequence: SequenceNumber
  /// The record.
  public var key: RecordKey
  /// The kind of change: an insert, an update or a delete.
  public var kind: OperationKind
  /// The columns it sets.
  public var columns: [Column]
  /// The time of the change's newest write.
  public var time: HybridTimestamp
  /// The place of the change to apply before this one. `nil` of a deferred change: only the reason
  /// delays it.
  public var dependency: SequenceNumber?
  /// Why it waits.
  public var reason: String
}

/// An entry of the replica's log: a sync with its numbers, a failed sync, a warning, or an event
/// for an application's support.
///
/// The log keeps the last 1,000 entries; ``Replica/log(limit:)`` returns them. If your program has
/// a log, it can also receive each entry as it is stored, in order:
///
/// ```swift
/// let replica = try await Replica.open("notes.db") { entry in
///   logger.log("\(entry.event): \(entry.detail)")
/// }
/// ```
///
/// The closure runs on a separate thread, one call after another. It may block: the replica does
/// not wait for it. If more than 1,000 entries wait, the oldest of them are left out. Entries of
/// other processes on the same file arrive with the next work of this one.
public struct LogEntry: Sendable, Equatable {
  /// Milliseconds since 1970.
  public var at: Int64
  /// The kind of event, in one word.
  public var event: String
  /// A description of the event for the user.
  public var detail: String
}
