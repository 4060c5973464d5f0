import FerryProtocol
import FerrySQLite

/// Records returning with a row that refers to them (SPEC.md §6, §28).
extension ReplicaFile {
  /// The most records returning with one row.
  private static let returnsMax = 100

  /// A row that may return, and the records it refers to.
  struct ReferringRow {
    let columns: [Column]
    let parents: [RecordKey]
  }

  /// Returns the row of a record; `nil` if it has none.
  func referringRow(_ key: RecordKey) throws -> ReferringRow? {
    guard let table = try? schema(of: key.table), let columns = try row(key, table) else {
      return nil
    }
    let links = try plans.parentRules(in: self).parents(of: table.local)
    return ReferringRow(columns: columns, parents: try parents(of: key.record, by: links))
  }

  /// Stores a row for an answer that restores it, with the rows it refers to, directly or through
  /// others: the same list may delete them.
  func storeFormerRow(_ row: ReferringRow, of key: RecordKey, deletedBy stamp: Stamp) throws {
    try formerRows.store(FormerRow(columns: row.columns, deleted: stamp), of: key)
    var (seen, open) = (Set([key]), row.parents)
    while let key = open.popLast(), seen.count <= Self.returnsMax {
      guard seen.insert(key).inserted, let row = try referringRow(key) else { continue }
      try formerRows.store(FormerRow(columns: row.columns, deleted: stamp), of: key)
      open += row.parents
    }
  }

  /// Inserts missing records again before a row refers to them, as this device had them last.
  ///
  /// - Parameter columns: the new values of the row.
  /// - Throws: ``ReplicaError/cannotAnswer(_:advice:)`` if the device does not have the values of
  ///   such a record.
  func returnParents(of key: RecordKey, _ columns: [Column]) throws {
    for (parent, columns) in try missingParents(of: key, columns) {
      let plan = try plainPlan(for: parent.table)
      try plan.upsert(parent.record, plan.unstamped(columns), isWhole: false, kept: [])
      try log(
        "returned",
        "\(parent.table)/\(parent.record) is here again: \(key.table)/\(key.record), which refers to it, "
          + "comes back")
    }
  }

  /// Returns the missing records that a row refers to, as this device had them last, each after the parents
  /// of the record.
  ///
  /// - Parameter columns: the new values of the row.
  /// - Throws: ``ReplicaError/cannotAnswer(_:advice:)`` if the device does not have the values of
  ///   such a record.
  func missingParents(
    of key: RecordKey, _ columns: [Column]
  ) throws -> [(key: RecordKey, columns: [Column])] {
    let links = try foreignKeyLinks()
    if !links.contains(where: { $0.child == key.table }) { return [] }
    var order: [(RecordKey, [Column])] = []
    var seen: Set<RecordKey> = [key]
    try addParents(of: key, columns, links, &seen, to: &order)
    return order
  }

  /// Adds the missing records that a row refers to, each after the parents of the record.
  private func addParents(
    of key: RecordKey, _ columns: [Column], _ links: [ForeignKeyLink], _ seen: inout Set<RecordKey>,
    to order: inout [(RecordKey, [Column])]
  ) throws {
    for link in links where link.child == key.table {
      guard let parent = link.parent(of: key.record, columns), seen.insert(parent).inserted,
        try !plainPlan(for: parent.table).exists(parent.record)
      else { continue }
      guard seen.count <= Self.returnsMax, let former = try conflictLog.formerRow(of: parent) else {
        throw ReplicaError.cannotAnswer(
          "\(key.table) \(key.record) refers to \(parent.table) \(parent.record), which does not exist, and "
            + "this device does not have its former values",
          advice:
            "insert \(parent.table) \(parent.record) first, or choose another record with --set")
      }
      try addParents(of: parent, former.columns, links, &seen, to: &order)
      order.append((parent, former.columns))
    }
  }
}
