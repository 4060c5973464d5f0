import FerryProtocol

/// Decides which operations of upload-only tables leave the queue after a failure, and which return
/// to it (SPEC.md §17).
///
/// A transaction stays whole. If it also wrote to another table, it is retried by itself, as
/// operations of the other table are. Later operations on a record with a failed one wait with it.
///
/// A pure machine over operations in the order of their places; the replica's file loads them once.
struct UploadQueue {
  /// An operation, as far as it matters here.
  struct Operation: Equatable {
    let order: Int64
    let group: Int64
    let key: RecordKey

    /// True for a batch, which has no record: two batches on one table are on other records.
    var isBatch: Bool { key.record.isEmpty }
  }

  let operations: [Operation]
  private let groups: [Int64: [Operation]]

  init(_ operations: [Operation]) {
    self.operations = operations
    groups = Dictionary(grouping: operations, by: \.group)
  }

  /// Returns the places of operations that count as failed, because the sync that should have sent
  /// them failed.
  ///
  /// - Parameters:
  ///   - orders: the places reached by the sync and not confirmed by the server.
  ///   - tables: the upload-only tables with operations that wait for the user.
  func failed(in orders: ClosedRange<Int64>, of tables: Set<Name>) -> [Int64] {
    let whole = transactions(onlyOf: tables)
    return operations.filter { orders.contains($0.order) && whole.contains($0.group) }
      .map(\.order)
  }

  /// Returns the places of operations that wait with failed ones, and so on.
  ///
  /// - Parameters:
  ///   - failed: the records with a failed operation.
  ///   - frozen: the last place in a packet. An operation in a packet is no reason to wait.
  ///   - tables: all upload-only tables.
  func followers(of failed: Set<RecordKey>, after frozen: Int64, of tables: Set<Name>) -> [Int64] {
    let whole = transactions(onlyOf: tables)
    var (failed, waiting) = (failed, Set<Int64>())
    var grew = true
    while grew {
      grew = false
      for operation in operations
      where operation.order > frozen && !operation.isBatch && failed.contains(operation.key)
        && whole.contains(operation.group) && waiting.insert(operation.group).inserted
      {
        failed.formUnion(groups[operation.group, default: []].map(\.key))
        grew = true
      }
    }
    return operations.filter { waiting.contains($0.group) }.map(\.order)
  }

  /// Returns the places of operations that return to the queue with those chosen by a condition:
  /// the rest of their transactions, other operations on the same records, and so on.
  func returning(where isChosen: (Operation) -> Bool) -> [Int64] {
    let records = Dictionary(grouping: operations.filter { !$0.isBatch }, by: \.key)
    var chosen = Set<Int64>()
    var waiting = operations.filter(isChosen)
    while let next = waiting.popLast() {
      guard chosen.insert(next.order).inserted else { continue }
      waiting += groups[next.group, default: []].filter { !chosen.contains($0.order) }
      waiting += records[next.key, default: []].filter { !chosen.contains($0.order) }
    }
    return chosen.sorted()
  }

  /// Returns the transactions with writes only to these tables.
  private func transactions(onlyOf tables: Set<Name>) -> Set<Int64> {
    Set(operations.map(\.group)).subtracting(
      operations.lazy.filter { !tables.contains($0.key.table) }.map(\.group))
  }
}
