import FerryProtocol

/// Checks that replicas converge.
///
/// At the end every replica's rows are exactly the existing records of the server; unwritten
/// columns are NULL. The space's schema has no rows, and ``CatalogueKept`` compares the missions.
/// Every cursor is the head, in the server's epoch. No operation is pending, waiting or rejected on
/// a device. Replicas have had all upgrades by then.
///
/// If a file was lost or went back to an earlier state, orphans may be left. The author of a row
/// may not hold it any more when it learns of the parent's delete, so no device deletes it. SPEC.md
/// promises only that every replica rejects such a row (§5). The same applies to a row whose parent
/// has another value now: no device with the row updates it.
///
/// A record whose key is taken here by a row of another space waits (§29): not judged is this row.
/// ``MovedRows`` checks that no move makes such a pair.
package struct Convergence: Oracle {
  package static let name = "convergence"

  /// Differences reported of each replica.
  private static let reportedMax = 3

  private var mayLeaveOrphans = false

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .lostPower, .copied: mayLeaveOrphans = true
    case .committed, .read, .confirmed, .serverWentBack, .serverLies: break
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var found: [String] = []
    let orphans = mayLeaveOrphans ? final.server.orphans : []
    let expected = Self.rows(of: final.server, besides: orphans)
    for (name, replica) in final.replicas.sorted(by: { $0.key < $1.key }) {
      let faults =
        Self.leftovers(replica, final.server, orphans.count)
        + Self.differences(replica.rows, expected, besides: orphans, replica.elsewhere)
      found += faults.prefix(Self.reportedMax).map { "\(name) \($0)" }
    }
    return found.map { Violation(oracle: Self.name, $0) }
  }

  /// Returns the existing records by table, ascending.
  private static func rows(
    of server: ServerEvidence, besides orphans: Set<RecordKey>
  ) -> [Name: [(Name, RecordState)]] {
    var rows: [Name: [(Name, RecordState)]] = [:]
    for (key, state) in server.records.sorted(by: { $0.key < $1.key })
    where state.isAlive && !orphans.contains(key) && key.table != "ferry_schema"
      && key.table != MissionRecord.table && !Workload.isStray(key.table)
    {
      rows[key.table, default: []].append((key.record, state))
    }
    return rows
  }

  private static func leftovers(
    _ replica: ReplicaEvidence, _ server: ServerEvidence, _ orphans: Int
  ) -> [String] {
    var found: [String] = []
    if replica.epoch ?? server.epoch != server.epoch { found.append("is in another epoch") }
    if replica.applied != server.head {
      found.append("is at \(replica.applied), but the server's head is \(server.head)")
    }
    let counts = [
      (replica.pending.count, "operations left"), (replica.unconfirmed, "operations unconfirmed"),
      (replica.waiting, "waiting changes"), (replica.refreshing, "records to fetch"),
      (replica.unreconciled, "tables to compare"),
      (replica.refused - replica.blocked - orphans, "changes refused"),
    ]
    return found + counts.filter { $0.0 > 0 }.map { "has \($0.0) \($0.1)" }
  }

  /// - Parameter orphans: Records that replicas may hold as they were before they became orphans.
  private static func differences(
    _ rows: ReplicaRows, _ expected: [Name: [(Name, RecordState)]],
    besides orphans: Set<RecordKey>, _ elsewhere: Set<RecordKey>
  ) -> [String] {
    var found: [String] = []
    for table in expected.keys.sorted() where rows[table] == nil {
      found.append("lacks the table \(table)")
    }
    for table in rows.tables {
      let records = expected[table.name] ?? []
      let present = Set(records.map(\.0))
      for (record, state) in records {
        if elsewhere.contains(RecordKey(table: table.name, record: record)) { continue }
        guard let row = table.place(of: record) else {
          found.append("lacks \(table.name)/\(record)")
          continue
        }
        found += differences(table, row, state).map { "\(table.name)/\(record): \($0)" }
      }
      for record in table.records where !present.contains(record) {
        let key = RecordKey(table: table.name, record: record)
        if table.name == Workload.follower.table, orphans.contains(key) { continue }
        found.append("has \(table.name)/\(record), which the server does not have")
      }
    }
    return found
  }

  private static func differences(
    _ table: TableRows, _ row: Int, _ state: RecordState
  ) -> [String] {
    var found: [String] = []
    for (index, name) in table.columns.enumerated() {
      let expected = state.columns.first { $0.name == name }?.value ?? .null
      let value = table.value(row, index)
      if value != expected { found.append("\(name) is \(value), but \(expected) on the server") }
    }
    for column in state.columns
    where !table.columns.contains(column.name)
      && (table.name, column.name) != Workload.renamed
      && !CompanyRules.addedColumns.contains(column.name)
    {
      found.append("has no column \(column.name)")
    }
    return found
  }
}

extension ServerEvidence {
  /// Existing records whose parent does not exist.
  package var orphans: Set<RecordKey> {
    let (table, column, parent) = Workload.follower
    let held = Set(
      records.lazy.filter { key, state in key.table == parent && state.isAlive }
        .compactMap { $0.value.value(of: column) })
    return Set(
      records.lazy.filter { key, state in
        guard state.isAlive else { return false }
        if key.table == table {
          let value = state.value(of: column) ?? .null
          return value != .null && !held.contains(value)
        }
        let parent = Workload.cascades[key.table]?.parent(of: key.record, state.value)
        return parent.map { records[$0]?.isAlive != true } ?? false
      }.map(\.key))
  }
}

extension RecordState {
  fileprivate func value(of column: Name) -> Value? {
    columns.first { $0.name == column }?.value
  }
}
