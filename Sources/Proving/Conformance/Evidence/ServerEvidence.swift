import FerryProtocol

/// One operation as the server's history holds it.
package struct HistoryEntry: Sendable, Equatable {
  package var sequence: SequenceNumber
  package var id: OperationID
  /// The device of the chain by which it came.
  package var device: DeviceID
  package var key: RecordKey
  package var kind: OperationKind
  /// As the server clamped it.
  package var time: HybridTimestamp
  package var base: SequenceNumber
  package var columns: [Column]
  package var columnTimes: [Name: HybridTimestamp]
  package var outcome: Outcome
  /// Columns whose value is added to the present value.
  package var increments: Set<Name>
  /// Why it overrules values; `nil` without a reason.
  package var reason: String?
  /// True if the server stores the columns elsewhere: it is an insert that created the record.
  package var hasColumnsElsewhere = false
  /// The inserted columns of the record, if this is the first operation after such an insert.
  package var former: [Column]?
  /// The head at which it was pruned; `nil` while the server has it.
  package var prunedAt: SequenceNumber?

  package init(
    sequence: SequenceNumber, id: OperationID, device: DeviceID, key: RecordKey,
    kind: OperationKind, time: HybridTimestamp, base: SequenceNumber = 0, columns: [Column] = [],
    columnTimes: [Name: HybridTimestamp] = [:], outcome: Outcome = .applied,
    increments: Set<Name> = []
  ) {
    self.sequence = sequence
    self.id = id
    self.device = device
    self.key = key
    self.kind = kind
    self.time = time
    self.base = base
    self.columns = columns
    self.columnTimes = columnTimes
    self.outcome = outcome
    self.increments = increments
  }
}

/// The content of one space of a store.
package struct ServerEvidence: Sendable {
  package var head: SequenceNumber
  package var epoch: Epoch
  /// By sequence, with the pruned operations stored by the harness.
  package var history: [HistoryEntry]
  /// Records whose tombstones were pruned, by head.
  package var forgotten: [ForgottenRecord] = []
  package var records: [RecordKey: RecordState]
  /// Buffered packets.
  package var buffered: Int

  package init(
    head: SequenceNumber, epoch: Epoch, history: [HistoryEntry],
    records: [RecordKey: RecordState], buffered: Int
  ) {
    self.head = head
    self.epoch = epoch
    self.history = history
    self.records = records
    self.buffered = buffered
  }

  /// Adds the columns to inserts that created their record. The server stores them elsewhere: with
  /// the next operation on the record, or with the record.
  mutating func findColumns() {
    var latest: [RecordKey: Int] = [:]
    for index in history.indices {
      let key = history[index].key
      if let former = history[index].former, let place = latest.removeValue(forKey: key) {
        history[place].columns = former
      }
      if history[index].hasColumnsElsewhere { latest[key] = index }
    }
    for (key, place) in latest {
      guard let state = records[key], state.soleInsert?.sequence == history[place].sequence
      else { continue }
      history[place].columns = state.columns.map { Column($0.name, $0.value) }
    }
  }
}
