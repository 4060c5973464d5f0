import FerryProtocol

/// The content of one replica's file, in one snapshot.
package struct ReplicaEvidence: Sendable {
  package var device: DeviceID
  package var rows: ReplicaRows
  /// The cursor: everything up to here is applied, in this epoch.
  package var applied: SequenceNumber
  package var epoch: Epoch?
  /// The cursor's anchor: the newest point of the history that the replica received.
  package var anchor: Cursor.Anchor?
  /// Whether a pull from the start is under way that will replace the rows. These still belong to
  /// the refused cursor.
  package var isReplacing = false
  /// Whether the pull began because the server lost history, so that the rows may be of lost
  /// operations.
  package var isRescuing = false
  /// Grows each time that a server refuses its cursor.
  package var refusals: Int64 = 0
  /// Grows with each row that the replica gave up. The server lost the row or another device
  /// deleted it, and pruning left no evidence of which.
  package var losses: Int64 = 0
  /// The newest point of the history that its own confirmed packets reported, if it is past the
  /// anchor.
  package var confirmed: Cursor.Anchor?
  /// Identifiers of operations that wait or are not yet covered by the cursor, in order.
  package var pending: [OperationID]
  /// The number of pending operations; present also if only the progress is read.
  package var pendingCount: Int
  /// Identifiers of confirmed operations that the file keeps, in order. Read only on request.
  package var archived: [OperationID] = []
  /// Identifiers of operations that the server rejected, and of those quarantined with them, in
  /// order.
  package var quarantined: [OperationID] = []
  /// Operations that the server has not confirmed.
  package var unconfirmed: Int
  /// Changes pulled and not applied: staged pages, or kept for a table or column not known here.
  package var waiting: Int
  /// Changes that violate the local schema.
  package var refused: Int
  /// Those of them for records whose rows belong to another space here, or to none: they wait until the row is
  /// gone (SPEC.md §29).
  package var blocked = 0
  /// Records whose rows belong to another space here, or to none.
  package var elsewhere: Set<RecordKey> = []
  /// Records that are to be fetched whole: until then, rows may differ from the cursor's state.
  package var refreshing = 0
  /// Tables with unrecorded writes: a sync has to compare them with the server.
  package var unreconciled = 0
  /// Questions that the user has not answered.
  package var questions: [OpenQuestion] = []

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
  /// The written columns; not used for a delete.
  package var columns: [Column]
  /// The newest change that its author had seen; `nil` if the harness does not know.
  package var base: SequenceNumber?
  /// Columns whose value is added to the present value.
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
