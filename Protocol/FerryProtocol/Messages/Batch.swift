/// The effect of a batch operation, and the predicate for its records (SPEC.md §14). The server
/// evaluates it at the operation's place in the order, also for records that its author never saw.
public struct Batch: Sendable, Equatable {
  /// The effect on each record that matches.
  public enum Effect: String, Sendable, CaseIterable {
    /// Its columns are set to the operation's.
    case set
    /// It is deleted.
    case delete
  }

  /// The effect on each record that matches.
  public var effect: Effect
  /// The condition that selects the records of the operation's table.
  public var predicate: RecordPredicate

  /// Creates a batch from its parts.
  public init(_ effect: Effect, where predicate: RecordPredicate) {
    self.effect = effect
    self.predicate = predicate
  }
}

extension SyncOperation {
  /// Creates a batch operation: sets `columns` of each record of `table` that matches, or deletes
  /// it.
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

  /// Returns the effect of a batch on one record that matches: an update or a delete as any other.
  package func effect(on record: Name, id: OperationID, of batch: Batch) -> SyncOperation {
    SyncOperation(
      id: id, key: RecordKey(table: key.table, record: record),
      kind: batch.effect == .delete ? .delete : .update, time: time, columns: columns, base: base)
  }
}
