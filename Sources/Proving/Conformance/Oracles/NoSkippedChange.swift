import FerryProtocol

/// Checks that a replica shows exactly the merged history up to its cursor.
///
/// This holds for a replica with no pending or rejected change and no record to fetch whole. It
/// misses no change before the cursor, and shows none after it. Compared are the tables and columns
/// known to the replica at the moment of each read. Tables whose values depend on the authors'
/// knowledge are left out.
///
/// Not judged is a read with a cursor in a history that is gone since the server's rollback, or
/// made up by a hostile server. Not judged is also a read before the new pull from the start is
/// complete.
package struct NoSkippedChange: Oracle {
  package static let name = "no-skipped-change"

  /// The tables and columns known to a replica.
  private struct Shape {
    var tables: [(name: Name, columns: [Name])]

    func fits(_ rows: ReplicaRows) -> Bool {
      tables.count == rows.tables.count
        && tables.indices.allSatisfy {
          tables[$0].name == rows.tables[$0].name && tables[$0].columns == rows.tables[$0].columns
        }
    }
  }

  /// The content of one read: of each table the sum of all records, then of each column.
  private struct Sight {
    var device: String
    var cursor: SequenceNumber
    var epoch: Epoch?
    var anchor: Cursor.Anchor?
    var shape: Int
    var sums: [UInt64]
  }

  private var shapes: [Shape] = []
  private var sights: [Sight] = []
  /// The newest sight of each device: most reads show the same as the read before.
  private var newest: [String: Int] = [:]
  private var lineage = Lineage()

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .read(let device, let evidence): record(device, evidence)
    case .lostPower(let device, let survivors): record(device, survivors)
    case .copied(let device, _, let evidence): record(device, evidence)
    case .serverWentBack(let before, let survivors): lineage.goBack(from: before, to: survivors)
    case .serverLies: lineage.doubt()
    case .committed, .confirmed: break
    }
    return []
  }

  private mutating func record(_ device: String, _ evidence: ReplicaEvidence) {
    guard evidence.pending.isEmpty, evidence.refused == 0, evidence.refreshing == 0,
      !evidence.isReplacing
    else { return }
    let last = newest[device].map { sights[$0] }
    let shape = shape(of: evidence.rows, asBefore: last?.shape)
    let sums = Self.sums(evidence.rows)
    if let last, last.cursor == evidence.applied, last.epoch == evidence.epoch,
      last.anchor == evidence.anchor, last.shape == shape, last.sums == sums
    {
      return
    }
    newest[device] = sights.count
    sights.append(
      Sight(
        device: device, cursor: evidence.applied, epoch: evidence.epoch, anchor: evidence.anchor,
        shape: shape, sums: sums))
  }

  private mutating func shape(of rows: ReplicaRows, asBefore last: Int?) -> Int {
    if let last, shapes[last].fits(rows) { return last }
    if let known = shapes.firstIndex(where: { $0.fits(rows) }) { return known }
    shapes.append(Shape(tables: rows.tables.map { ($0.name, $0.columns) }))
    return shapes.count - 1
  }

  /// Leaves out tables with values that depend on the authors' knowledge.
  private static func judged(_ shape: Shape) -> [(name: Name, columns: [Name])] {
    shape.tables.filter { !Workload.dependsOnKnowledge($0.name) }
  }

  private static func sums(_ rows: ReplicaRows) -> [UInt64] {
    var sums: [UInt64] = []
    for table in rows.tables where !Workload.dependsOnKnowledge(table.name) {
      let start = sums.count
      let width = table.columns.count
      sums.append(contentsOf: repeatElement(0, count: width + 1))
      for (row, record) in table.records.enumerated() {
        let digest = RowDigest.record(record)
        sums[start] &+= digest
        for column in 0..<width {
          sums[start + 1 + column] &+= RowDigest.value(table.value(row, column), in: digest)
        }
      }
    }
    return sums
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    for (name, replica) in final.replicas.sorted(by: { $0.key < $1.key }) { record(name, replica) }
    var model = SumModel()
    let slots = shapes.map { shape in
      Self.judged(shape).flatMap { table in
        [model.slot(table.name, nil)] + table.columns.map { model.slot(table.name, $0) }
      }
    }
    var found: [Violation] = []
    var walk = HistoryWalk(final.server)
    let order = sights.indices.sorted { (sights[$0].cursor, $0) < (sights[$1].cursor, $1) }
    let history = final.server.history
    for index in order {
      let sight = sights[index]
      guard sight.epoch ?? final.server.epoch == final.server.epoch,
        sight.anchor.map({ lineage.holds($0, in: history) }) ?? true
      else { continue }
      walk.advance(to: sight.cursor) {
        model.absorb($0)
      } forget: {
        model.forget($0)
      }
      let places = slots[sight.shape]
      guard let wrong = places.indices.first(where: { sight.sums[$0] != model[places[$0]] })
      else { continue }
      found.append(violation(sight, wrong))
    }
    return found
  }

  private func violation(_ sight: Sight, _ index: Int) -> Violation {
    let names = Self.judged(shapes[sight.shape]).flatMap { table in
      ["the records of \(table.name)"] + table.columns.map { "\(table.name).\($0)" }
    }
    return Violation(
      oracle: Self.name,
      "a read of \(sight.device) at \(sight.cursor) shows other content in \(names[index]) "
        + "than the history up to that point")
  }
}

/// The sums of a history's records, moved on operation by operation.
private struct SumModel {
  private var slots: [RecordKey: Int] = [:]
  private var sums: [UInt64] = []
  private var records: [RecordKey: ReferenceRecord] = [:]

  subscript(slot: Int) -> UInt64 { sums[slot] }

  /// Returns the slot for the sum of a table's records, or of one column of the table.
  mutating func slot(_ table: Name, _ column: Name?) -> Int {
    let name = RecordKey(table: table, record: column.map { ".\($0)" } ?? "")
    if let slot = slots[name] { return slot }
    slots[name] = sums.count
    sums.append(0)
    return sums.count - 1
  }

  mutating func absorb(_ entry: HistoryEntry) {
    var record = records[entry.key] ?? ReferenceRecord()
    add(record, entry.key) { $0 &-= $1 }
    record.absorb(entry)
    add(record, entry.key) { $0 &+= $1 }
    records[entry.key] = record
  }

  /// Removes a record no longer known to the server.
  mutating func forget(_ key: RecordKey) {
    if let record = records.removeValue(forKey: key) { add(record, key) { $0 &-= $1 } }
  }

  private mutating func add(
    _ record: ReferenceRecord, _ key: RecordKey, _ change: (inout UInt64, UInt64) -> Void
  ) {
    guard record.exists else { return }
    let digest = RowDigest.record(key.record)
    change(&sums[slot(key.table, nil)], digest)
    for (name, write) in record.columns {
      change(&sums[slot(key.table, name)], RowDigest.value(write.value, in: digest))
    }
  }
}
