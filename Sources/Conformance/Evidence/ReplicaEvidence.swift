import FerryProtocol

/// What one replica's file holds, in one snapshot.
package struct ReplicaEvidence: Sendable {
  package var device: DeviceID
  package var rows: ReplicaRows
  /// The cursor: everything up to here is applied, in this epoch.
  package var applied: SequenceNumber
  package var epoch: Epoch?
  /// The cursor's anchor: the newest point of the history that the replica was told of.
  package var anchor: Cursor.Anchor?
  /// Whether a pull from the start is under way that is to replace the rows: these still belong to
  /// the cursor that was refused.
  package var isReplacing = false
  /// Whether that is since the server lost history, so that the rows may be of what is gone.
  package var isRescuing = false
  /// Grows each time that a server refuses its cursor.
  package var refusals: Int64 = 0
  /// Grows with each row that it gave up, since the server lost it or somebody had deleted it, and
  /// nobody knows which any more.
  package var losses: Int64 = 0
  /// The newest point of the history that its own confirmed packets have told of, where that is past
  /// its anchor.
  package var confirmed: Cursor.Anchor?
  /// Identifiers of operations that wait or are not yet covered by the cursor, in order.
  package var pending: [OperationID]
  /// How many they are; filled in where only the progress is read, too.
  package var pendingCount: Int
  /// Identifiers of confirmed operations that the file keeps, in order. Read where it is asked for.
  package var archived: [OperationID] = []
  /// Identifiers of operations that the server refuses for good, and of what went with them, in
  /// order.
  package var quarantined: [OperationID] = []
  /// Operations that the server has not confirmed.
  package var unconfirmed: Int
  /// Changes pulled and not applied: staged pages, or kept for a table or column not known here.
  package var waiting: Int
  /// Changes that the local schema refuses.
  package var refused: Int
  /// Records that are to be fetched whole: until they are, rows may differ from what the cursor
  /// says.
  package var refreshing = 0
  /// Tables that a sync has to compare with the server, since they were written to unrecorded.
  package var unreconciled = 0

  package init(
    device: DeviceID, rows: ReplicaRows, applied: SequenceNumber, epoch: Epoch?,
    pending: [OperationID], unconfirmed: Int, waiting: Int, refused: Int
  ) {
    self.device = device
    self.rows = rows
    self.applied = applied
    self.epoch = epoch
    self.pending = pending
    pendingCount = pending.count
    self.unconfirmed = unconfirmed
    self.waiting = waiting
    self.refused = refused
  }
}

/// One operation as a device recorded it in its own file, before any merging.
package struct LocalOperation: Sendable, Equatable {
  package var id: OperationID
  package var key: RecordKey
  package var kind: OperationKind
  /// What was written; of a delete nothing is looked at.
  package var columns: [Column]
  /// The newest change its author had seen; `nil` where the harness does not know.
  package var base: SequenceNumber?
  /// Columns whose value is added to what is there.
  package var increments: Set<Name>

  package init(
    id: OperationID, key: RecordKey, kind: OperationKind, columns: [Column],
    base: SequenceNumber? = nil, increments: Set<Name> = []
  ) {
    self.id = id
    self.key = key
    self.kind = kind
    self.columns = columns
    self.base = base
    self.increments = increments
  }

  /// When the user did it: identifiers carry the time (SPEC.md §2).
  package var time: HybridTimestamp { id.value.timestamp }
}
