/// The effect of a batch operation, and the predicate for the records (SPEC.md §14). The server
/// evaluates it at the operation's place in the order, also for records that its author never saw.
public struct Batch: Sendable, Equatable {
  /// The effect on each matching record.
  public enum Effect: String, Sendable, CaseIterable {
    /// Sets the columns to the operation's values.
    case set
    /// It is deleted.
    case delete
  }

  /// The effect on each matching record.
  public var effect: Effect
  /// The condition for the records of the operation's table.
  public var predicate: RecordPredicate

  /// Creates a batch from the given parts.
  public init(_ effect: Effect, where predicate: RecordPredicate) {
    self.effect = effect
    self.predicate = predicate
  }
}

extension SyncOperation {
  /// Creates a batch operation: sets `columns` of each matching record of `table`, or deletes it.
  ///
  /// - Parameter columns: One at least to set; none to delete.
  public init(
    id: OperationID, table: Name, batch: Batch, time: HybridTimestamp, columns: [Column] = [],
    base: SequenceNumber = 0
  ) {
    self.init(
      id: id, key: RecordKey(table: table, record: ""), kind: .batch, time: time,
      columns: columns, base: base)
    self.batch = batch
  }

  /// Returns the effect of a batch on one matching record: an ordinary update or delete.
  package func effect(on record: Name, id: OperationID, of batch: Batch) -> SyncOperation {
    SyncOperation(
      id: id, key: RecordKey(table: key.table, record: record),
      kind: batch.effect == .delete ? .delete : .update, time: time, columns: columns, base: base)
  }
}
