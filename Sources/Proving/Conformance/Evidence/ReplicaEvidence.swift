import FerryProtocol

/// The content of one replica's file, in one snapshot.
package struct ReplicaEvidence: Sendable {
  package var device: DeviceID
  package var rows: ReplicaRows
  /// The cursor: everything up to here is applied, in this epoch.
  package var applied: SequenceNumber
  package var epoch: Epoch?
  /// The cursor's anchor: the newest point of the history received by the replica.
  package var anchor: Cursor.Anchor?
  /// True while a pull from the start is under way to replace the rows. These still belong to the
  /// refused cursor.
  package var isReplacing = false
  /// True if the pull began because the server lost history: the rows may be of lost operations.
  package var isRescuing = false
  /// Grows each time a server refuses the cursor.
  package var refusals: Int64 = 0
  /// Grows with each row given up by the replica. The server lost the row or another device deleted
  /// it, and pruning left no evidence of which.
  package var losses: Int64 = 0
  /// The newest point of the history reported by own confirmed packets, if it is past the anchor.
  package var confirmed: Cursor.Anchor?
  /// Identifiers of waiting operations and of those not yet covered by the cursor, in order.
  package var pending: [OperationID]
  /// The number of pending operations; present also if only the progress is read.
  package var pendingCount: Int
  /// Identifiers of stored confirmed operations in the file, in order. Read only on request.
  package var archived: [OperationID] = []
  /// Identifiers of operations rejected by the server, and of those quarantined with them, in
  /// order.
  package var quarantined: [OperationID] = []
  /// Operations not confirmed by the server.
  package var unconfirmed: Int
  /// Changes pulled and not applied: staged pages, or kept for a table or column not known here.
  package var waiting: Int
  /// Changes that violate the local schema.
  package var refused: Int
  /// Those of them for records whose rows belong to another space here, or to none: they wait until
  /// the row is gone (SPEC.md §29).
  package var blocked = 0
  /// Records whose rows belong to another space here, or to none.
  package var elsewhere: Set<RecordKey> = []
  /// Records to be fetched whole: until then, rows may differ from the cursor's state.
  package var refreshing = 0
  /// Tables with unrecorded writes: a sync has to compare them with the server.
  package var unreconciled = 0
  /// Questions without an answer from the user.
  package var questions: [OpenQuestion] = []
  /// The values of ``Workload/branches`` listed as lost. Read only on request.
  package var listed: [ListedLoss] = []
  /// Own values listed as overruled by other devices, also if the user has answered. Read only on
  /// request.
  package var overruled: [OverruledEntry] = []
  /// The place in the space up to which ``overruled`` is forgotten.
  package var overruledAfter: SequenceNumber = 0

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

/// One operation as recorded by a device in the file, before any merging.
package struct LocalOperation: Sendable, Equatable {
  package var id: OperationID
  package var key: RecordKey
  package var kind: OperationKind
  /// The written columns; not used for a delete.
  package var columns: [Column]
  /// The newest change that the author had seen; `nil` if unknown to the harness.
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
