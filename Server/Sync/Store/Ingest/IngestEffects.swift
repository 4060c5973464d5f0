import FerryProtocol

/// The rows to write for one batch, in one transaction, and the answers.
package struct IngestEffects: Sendable, Equatable {
  /// A row of the history.
  package struct OperationRow: Sendable, Equatable {
    package let id: OperationID
    package let sequence: SequenceNumber
    /// The history hash after it.
    package let historyHash: UInt64
    package let device: DeviceID
    package let key: RecordKey
    package let kind: OperationKind
    /// As it was clamped.
    package let time: HybridTimestamp
    package let base: SequenceNumber
    /// Columns as JSON. For a batch: effect, predicate and columns. `nil` for a delete, and for the
    /// insert of a new record: the columns are the record's state. The next operation on the record
    /// has them as ``former``.
    package let data: [UInt8]?
    /// The record's columns before the operation as JSON, if they are those of such an insert.
    package var former: [UInt8]?
    /// Columns written before `time`, as JSON; `nil` when there are none.
    package let times: [UInt8]?
    /// As JSON; `nil` when the operation was applied and nothing lost.
    package let outcome: [UInt8]?
    /// The increment columns, the former values of texts and the reason, as JSON; `nil` without any.
    package var marks: [UInt8]?
    /// The bytes of columns left out of ``data``.
    package var omittedBytes = 0
    /// The number of operations of the same transaction before it.
    package var ordinal: Int32 = 0
  }

  /// A record's merged state.
  package struct RecordRow: Sendable, Equatable {
    package let key: RecordKey
    package let sequence: SequenceNumber
    /// See ``RecordState/wholeBelow``.
    package let wholeBelow: SequenceNumber
    /// True if it is a tombstone: readers do not get the record, and it may be pruned.
    package let isDead: Bool
    /// The state in stored form.
    package let state: [UInt8]
    /// True if the store has no row of it yet.
    package let isNew: Bool
  }

  /// A notice for a device whose values lost, at one place in the order.
  package struct NoticeRow: Sendable, Equatable {
    /// The device to notify.
    package let device: DeviceID
    package let sequence: SequenceNumber
    /// The notice in wire form.
    package let body: [UInt8]
  }

  /// The holder of a unique key from now on.
  package struct ClaimRow: Sendable, Equatable {
    package let claim: UniqueClaim
    /// `nil` if no record holds it any more.
    package let record: Name?
  }

  /// A new column of a table.
  package struct ColumnRow: Sendable, Equatable {
    package let table: Name
    package let name: Name
    /// True if the schema names it. Then it does not count.
    package let isDeclared: Bool
  }

  /// A packet to keep until the packet before it arrives.
  package struct BufferedRow: Sendable, Equatable {
    package let packet: BufferedPacket
    /// The packet in wire form.
    package let body: [UInt8]
  }

  package var space: SpaceState
  package var operations: [OperationRow] = []
  package var records: [RecordRow] = []
  /// In the order of their sequences; one at most of a device at each.
  package var notices: [NoticeRow] = []
  package var chains: [DeviceID: DeviceChain] = [:]
  /// The new principals of devices, where they changed.
  package var owners: [DeviceID: Principal] = [:]
  /// The use of the space by principals from now on, for those for which it changes.
  package var usage: [Principal: Usage] = [:]
  /// The use of the space by all principals together, if it changes.
  package var total: Usage?
  package var buffered: [BufferedRow] = []
  package var unbuffered: [BufferedKey] = []
  /// Unique keys with a new holder.
  package var claims: [ClaimRow] = []
  /// New columns of tables.
  package var columns: [ColumnRow] = []
  package var results: [IngestResult] = []
  /// Packets with operations that can never be applied. If there are any, nothing else of these
  /// effects counts: the batch is planned again without them.
  package var refused: [IngestPlan.Source: Problem] = [:]
  /// Unique keys whose holders the context lacks. If there are any, nothing else counts.
  package var missingClaims: [UniqueClaim] = []

  package init(space: SpaceState) { self.space = space }

  /// True if there is nothing to write.
  package var isEmpty: Bool {
    operations.isEmpty && chains.isEmpty && buffered.isEmpty && unbuffered.isEmpty && owners.isEmpty
  }

  /// The answer of the store once this is durable.
  package var batch: IngestBatch {
    IngestBatch(head: space.head, epoch: space.epoch, results: results)
  }
}

extension OperationKind {
  /// The number it is stored as.
  package var storedCode: Int16 {
    switch self {
    case .insert: 0
    case .update: 1
    case .delete: 2
    case .batch: 3
    }
  }
}
