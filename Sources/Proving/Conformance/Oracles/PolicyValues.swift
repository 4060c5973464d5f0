import FerryProtocol

/// Checks that columns with the policies `max`, `min` and `set-union` follow from all writes in the
/// history, in any order (SPEC.md §6).
///
/// Judged are records without a delete in the history: edits that win over a delete depend on the
/// knowledge of its author.
package struct PolicyValues: Oracle {
  package static let name = "policy-values"

  /// The writes to one record.
  private struct Written {
    var numbers: [Name: [Int64]] = [:]
    var tags: Set<String> = []
    var isDeleted = false

    mutating func absorb(_ entry: HistoryEntry) {
      if entry.kind == .delete { isDeleted = true }
      for column in entry.columns {
        switch column.value {
        case .integer(let number): numbers[column.name, default: []].append(number)
        case .text(let text) where column.name == "tags": tags.formUnion(Workload.elements(text))
        default: break
        }
      }
    }
  }

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] { [] }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var records: [RecordKey: Written] = [:]
    var walk = HistoryWalk(final.server)
    walk.advance { entry in
      guard entry.key.table == Workload.sheets, entry.kind != .batch else { return }
      records[entry.key, default: Written()].absorb(entry)
    } forget: { key in
      records[key] = nil
    }
    return records.sorted { $0.key < $1.key }.filter { !$0.value.isDeleted }.flatMap {
      key, written in
      let columns = final.server.records[key]?.columns ?? []
      return Self.faults(of: columns, written).map {
        Violation(oracle: Self.name, "the server's record \(key.table)/\(key.record) \($0)")
      }
    }
  }

  private static func faults(of columns: [ColumnState], _ written: Written) -> [String] {
    func value(_ name: Name) -> Value? { columns.first { $0.name == name }?.value }
    var found: [String] = []
    let limits = [("high", written.numbers["high"]?.max()), ("low", written.numbers["low"]?.min())]
    for (name, limit) in limits {
      guard let limit, value(Name(name)) != .integer(limit) else { continue }
      let held = value(Name(name)).map { "\($0)" } ?? "nothing"
      found.append("has \(held) in \(name), but \(limit) was written")
    }
    guard !written.tags.isEmpty else { return found }
    var held: Set<String> = []
    if case .text(let text)? = value("tags") { held = Workload.elements(text) }
    if held != written.tags {
      found.append("has the tags \(held.sorted()), but \(written.tags.sorted()) were written")
    }
    return found
  }
}
