import FerryProtocol

/// Checks that every counter is the sum of all amounts added to it.
///
/// The amounts are all increments in the server's history and the integers of inserts, in any
/// order. The sum holds on the server and, when all has drained, on every replica;
/// ``NoSkippedChange`` checks replicas before that. Each increment is in the history once, as an
/// increment and with the amount recorded by the author's transaction. ``AcknowledgedOperations``
/// checks that none is lost. An increment counts twice only if it was pruned and a copy of its
/// device's file sends it again under another identity.
///
/// A row re-uploaded to a server restored from a backup adds nothing. Its lost increments come
/// again from their authors, who keep them (SPEC.md §5). If the server has an increment, but lost the
/// insert with all its copies, no replica shows the record.
package struct CounterSums: Oracle {
  package static let name = "counter-sums"

  private var committed: [OperationID: LocalOperation] = [:]

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    guard case .committed(_, let operations) = event else { return [] }
    for operation in operations where operation.key.table == Workload.counter.table {
      committed[operation.id] = operation
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var found: [String] = []
    var sums: [RecordKey: Int64] = [:]
    var met: [OperationID: HistoryEntry] = [:]
    var walk = HistoryWalk(final.server)
    walk.advance { entry in
      guard entry.key.table == Workload.counter.table else { return }
      if let before = met.updateValue(entry, forKey: entry.id), !before.isForgotten(before: entry) {
        found.append("\(entry.place) is added twice")
      }
      found += fault(entry).map { ["\(entry.place) \($0)"] } ?? []
      sums[entry.key, default: 0] &+= entry.amount ?? 0
    } forget: { key in
      sums[key] = nil
    }
    found += Self.faults(of: final.server, sums)
    let shown = sums.filter { final.server.records[$0.key]?.isAlive == true }
    for (name, replica) in final.replicas.sorted(by: { $0.key < $1.key }) {
      found += Self.faults(of: replica.rows, shown).map { "\(name) \($0)" }
    }
    return found.map { Violation(oracle: Self.name, $0) }
  }

  /// Returns the error in one entry of the history.
  private func fault(_ entry: HistoryEntry) -> String? {
    let isIncrement = entry.increments.contains(Workload.counter.column)
    if entry.kind == .update && !isIncrement { return "is a value instead of an increment" }
    if entry.id.isRescue, let amount = entry.amount, amount != 0 {
      return "adds \(amount) with a re-uploaded row"
    }
    guard let own = committed[entry.id] else { return nil }
    if own.amount != entry.amount {
      return "adds \(Self.described(entry.amount)) instead of \(Self.described(own.amount))"
    }
    return nil
  }

  private static func faults(of server: ServerEvidence, _ sums: [RecordKey: Int64]) -> [String] {
    sums.keys.sorted().compactMap { key in
      let value = server.records[key]?.columns.first { $0.name == Workload.counter.column }?.value
      let sum = Value.integer(sums[key] ?? 0)
      if value == sum { return nil }
      return
        "the server's \(key.record) is \(value.map { "\($0)" } ?? "missing"), but \(sum) by the "
        + "history"
    }
  }

  private static func faults(of rows: ReplicaRows, _ sums: [RecordKey: Int64]) -> [String] {
    guard let table = rows[Workload.counter.table] else { return [] }
    return sums.keys.sorted().compactMap { key in
      let value = table[key.record, Workload.counter.column]
      let sum = Value.integer(sums[key] ?? 0)
      if value == sum { return nil }
      return
        "shows \(key.record) as \(value.map { "\($0)" } ?? "missing"), but \(sum) by the history"
    }
  }

  private static func described(_ amount: Int64?) -> String { amount.map(String.init) ?? "nothing" }
}

extension [Column] {
  /// The amount for the counter.
  fileprivate var amount: Int64? {
    guard case .integer(let amount)? = first(where: { $0.name == Workload.counter.column })?.value
    else { return nil }
    return amount
  }
}

extension HistoryEntry {
  fileprivate var amount: Int64? { columns.amount }

  /// Returns whether the value is added to the present value.
  func isSummand(_ column: Name) -> Bool {
    increments.contains(column)
      || kind == .insert && key.table == Workload.counter.table
        && column == Workload.counter.column
  }
}

extension LocalOperation {
  fileprivate var amount: Int64? { columns.amount }
}
