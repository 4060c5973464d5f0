/// The kind of an operation's effect on the record (SPEC.md §4).
public enum OperationKind: String, Sendable, CaseIterable {
  case insert
  case update
  case delete
  /// Sets columns of all records of a table that match a predicate, or deletes them: see
  /// ``SyncOperation/batch``.
  case batch
}

/// One change by a user to one record, in the six parts of SPEC.md §4. The data is separate from
/// the operation and never SQL text.
///
/// The sixth part, the operation it depends on, is the one before it in the packet; the first
/// operation depends on the packet's ``Packet/dependency``.
public struct SyncOperation: Sendable, Equatable {
  /// The identifier of the operation, assigned when the user's data was written.
  public var id: OperationID
  /// The record it changes. A batch names the table alone: the record is empty.
  public var key: RecordKey
  /// Insert, update, delete or batch.
  public var kind: OperationKind
  /// When the user did it, by the device's hybrid clock.
  public var time: HybridTimestamp
  /// The columns written; empty for a delete.
  public var columns: [Column]
  /// The newest change the author had seen: later changes in the space are concurrent with it.
  public var base: SequenceNumber
  private var box: RareBox?

  /// The times of columns written before ``time``. Operations on one record are merged before they
  /// are sent, and each column keeps a separate time.
  public var columnTimes: [Name: HybridTimestamp] {
    get { rare?.columnTimes ?? [:] }
    set { change { $0.columnTimes = newValue } }
  }
  /// Columns of an update whose integer is added to the present value and does not replace it.
  public var increments: Set<Name> {
    get { rare?.increments ?? [] }
    set { change { $0.increments = newValue } }
  }
  /// The former values in the author's row, for the text-merge columns of an update.
  public var originals: [Column] {
    get { rare?.originals ?? [] }
    set { change { $0.originals = newValue } }
  }
  /// Why the author overrules the present values, in words for their authors; `nil` if the operation
  /// gives none. Has 1 to ``Limits/reasonBytes`` bytes; a batch has none.
  public var reason: String? {
    get { rare?.reason }
    set { change { $0.reason = newValue } }
  }
  /// The effect and the predicate of a batch; `nil` for all other kinds.
  public var batch: Batch? {
    get { rare?.batch }
    set { change { $0.batch = newValue } }
  }

  /// Creates an operation from the given parts.
  public init(
    id: OperationID, key: RecordKey, kind: OperationKind, time: HybridTimestamp,
    columns: [Column] = [], columnTimes: [Name: HybridTimestamp] = [:],
    base: SequenceNumber = 0, increments: Set<Name> = [], originals: [Column] = []
  ) {
    self.id = id
    self.key = key
    self.kind = kind
    self.time = time
    self.columns = columns
    self.base = base
    let parts = Rare(columnTimes: columnTimes, increments: increments, originals: originals)
    box = parts.isEmpty ? nil : .parts(parts)
  }

  private var rare: Rare? { if case .parts(let parts) = box { parts } else { nil } }

  private mutating func change(_ change: (inout Rare) -> Void) {
    var parts = rare ?? Rare()
    change(&parts)
    box = parts.isEmpty ? nil : .parts(parts)
  }

  /// True if all columns were written at ``time``.
  package var hasOneTime: Bool { box == nil || columnTimes.isEmpty }

  /// Returns the time at which `column` was written.
  package func time(of column: Name) -> HybridTimestamp {
    rare?.columnTimes[column] ?? time
  }
}

extension SyncOperation {
  /// The parts that few operations have.
  private struct Rare: Sendable, Equatable {
    var columnTimes: [Name: HybridTimestamp] = [:]
    var increments: Set<Name> = []
    var originals: [Column] = []
    var reason: String?
    var batch: Batch?

    var isEmpty: Bool {
      columnTimes.isEmpty && increments.isEmpty && originals.isEmpty && reason == nil
        && batch == nil
    }
  }

  /// Rare parts in one reference: a copy of any other operation has none to count.
  private indirect enum RareBox: Sendable, Equatable { case parts(Rare) }
}

/// Operations of one device, applied by the server whole, exactly once and in the order of the
/// device's chain (SPEC.md §4).
public struct Packet: Sendable, Equatable {
  /// The author device.
  public var device: DeviceID
  /// The last operation of the device's previous packet; `nil` for the first packet.
  public var dependency: OperationID?
  /// True if the transaction of the last operation goes on in the next packet. Such packets are
  /// kept until the last part is there, and are applied together.
  public var continues: Bool
  /// True if the author is an authority: the space's rules give way to the operations, if the sender
  /// is an admin.
  public var isAuthoritative: Bool
  /// One at least, ``Limits/operationsPerPacket`` at most.
  public var operations: [SyncOperation]

  /// Creates a packet from the given parts.
  public init(
    device: DeviceID, dependency: OperationID?, operations: [SyncOperation],
    continues: Bool = false, isAuthoritative: Bool = false
  ) {
    self.isAuthoritative = isAuthoritative
    self.device = device
    self.dependency = dependency
    self.operations = operations
    self.continues = continues
  }

  /// The last operation, on which the next packet depends. A packet holds one operation at least.
  public var tail: OperationID? { operations.last?.id }
}
