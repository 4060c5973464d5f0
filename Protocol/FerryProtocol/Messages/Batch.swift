/// What a batch operation does (seed row S1.2), and to which records of its table: the server
/// decides at the operation's place in the order, also about records that its author never saw.
public struct Batch: Sendable, Equatable {
  /// What happens to each record that matches.
  public enum Effect: String, Sendable, CaseIterable {
    /// Its columns are set to the operation's.
    case set
    /// It is deleted.
    case delete
  }

  /// What happens to each record that matches.
  public var effect: Effect
  /// Which records of the operation's table it happens to.
  public var predicate: Predicate

  /// A batch from its parts.
  public init(_ effect: Effect, where predicate: Predicate) {
    self.effect = effect
    self.predicate = predicate
  }
}

extension Operation {
  /// A batch operation: sets `columns` of each record of `table` that matches, or deletes it.
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

  /// What a batch does to one record that matches: an update or a delete as any other.
  package func effect(on record: Name, id: OperationID, of batch: Batch) -> Operation {
    Operation(
      id: id, key: RecordKey(table: key.table, record: record),
      kind: batch.effect == .delete ? .delete : .update, time: time, columns: columns, base: base)
  }
}
