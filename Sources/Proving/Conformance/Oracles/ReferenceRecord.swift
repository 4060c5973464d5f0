import FerryProtocol

/// A record by the rules of SPEC.md §6, in their plainest form.
///
/// Of all inserts the latest counts, of all deletes the latest, and of all writes to a column the
/// latest. Writes older than the delete are gone. Amounts added to a counter are summed up. It
/// shares no code with the product's merging.
struct ReferenceRecord {
  struct Write {
    var value: Value
    var stamp: Stamp
  }

  private(set) var inserted: Stamp?
  private(set) var deleted: Stamp?
  /// The latest write to each column, also if a delete has erased it.
  private(set) var latest: [Name: Write] = [:]

  var exists: Bool {
    guard let inserted else { return false }
    return deleted.map { inserted > $0 } ?? true
  }

  /// True if the record exists by the rules of any table: no policy lets an insert lose if there
  /// was no delete.
  var wasNeverDeleted: Bool { inserted != nil && deleted == nil }

  /// The writes not erased by a delete.
  var columns: [Name: Write] {
    guard let deleted else { return latest }
    return latest.filter { $0.value.stamp >= deleted }
  }

  /// True if the record has no content.
  var isBlank: Bool { inserted == nil && deleted == nil && columns.isEmpty }

  mutating func absorb(_ entry: HistoryEntry) {
    switch entry.kind {
    case .insert: inserted = max(inserted ?? entry.insertStamp, entry.insertStamp)
    case .delete: deleted = max(deleted ?? entry.stamp, entry.stamp)
    case .update, .batch: break
    }
    for column in entry.columns {
      let stamp = entry.stamp(of: column.name)
      if let write = latest[column.name], entry.isSummand(column.name),
        case (.integer(let total), .integer(let amount)) = (write.value, column.value)
      {
        latest[column.name] = Write(
          value: .integer(total &+ amount), stamp: max(write.stamp, stamp))
        continue
      }
      if let write = latest[column.name], write.stamp > stamp { continue }
      latest[column.name] = Write(value: column.value, stamp: stamp)
    }
  }

  /// Returns all records of a history, and those among the forgotten ones that existed when they
  /// went. If the knowledge of authors decides a table's deletes and inserts, a record that was
  /// ever deleted may have been gone.
  static func all(
    _ server: ServerEvidence
  ) -> (records: [RecordKey: ReferenceRecord], forgottenAlive: [RecordKey]) {
    var records: [RecordKey: ReferenceRecord] = [:]
    var alive: [RecordKey] = []
    var walk = HistoryWalk(server)
    walk.advance { entry in
      // A batch's effects are entries of their own.
      if entry.kind == .batch { return }
      records[entry.key, default: ReferenceRecord()].absorb(entry)
    } forget: { key in
      guard let record = records.removeValue(forKey: key) else { return }
      let existed =
        Workload.dependsOnKnowledge(key.table) ? record.wasNeverDeleted : record.exists
      if existed { alive.append(key) }
    }
    return (records, alive)
  }
}

extension HistoryEntry {
  var stamp: Stamp { Stamp(time: time, device: device) }

  /// Returns a column's own stamp, which is never later than the operation's.
  func stamp(of column: Name) -> Stamp {
    Stamp(time: min(columnTimes[column] ?? time, time), device: device)
  }

  /// An insert is as old as the oldest column of it.
  var insertStamp: Stamp { columns.map { stamp(of: $0.name) }.min() ?? stamp }

  /// For messages.
  var place: String { "#\(sequence) \(kind) of \(key.table)/\(key.record) by \(device)" }
}
