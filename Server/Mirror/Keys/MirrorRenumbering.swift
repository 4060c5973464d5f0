import FerryProtocol
import FerrySyncClient

/// Rows of programs have the numbers of devices' records that the table has not had yet. The
/// records get other ones.
struct NumbersTaken: Error {
  var table: Name
  var records: [String]
}

/// Other numbers for devices' records whose numbers rows of programs have. So no two rows become
/// one.
///
/// A sequence gives a number once. But a program may insert a row with a number of its own, before the
/// table gets the device's row.
struct MirrorRenumbering: Sendable {
  let parts: MirrorParts

  /// Renumbers the records in the way of captured rows.
  func separate(_ writes: [CapturedWrite]) async throws {
    guard let numbers = parts.sides.numbers else { return }
    for table in parts.file.plan.tables where table.isMapped {
      let rows = Self.firstRows(of: table, writes)
      if rows.isEmpty { continue }
      guard let keys = numbers.keys(table.name) else { continue }
      let devices = try await parts.replica.read { database in
        try MirrorRecords(parts.file.plan, database.connection)
          .devices(rows, in: table, keys.derived)
      }
      if devices.isEmpty { continue }
      let lacking = try await parts.pool.run { try keys.lacking(devices, $0) }
      try await renumber(lacking, of: table.name)
    }
  }

  /// Returns the keys of the rows of a table, unless a write before has deleted the row.
  static func firstRows(of table: MirrorTable, _ writes: [CapturedWrite]) -> [[String?]] {
    var (seen, rows): (Set<[String?]>, [[String?]]) = ([], [])
    for write in writes where Name(write.table) == table.name {
      if write.kind == .rekey { seen.insert(write.former) }
      let isFirst = seen.insert(write.key).inserted
      guard isFirst, !write.isDelete, write.kind != .update else { continue }
      rows.append(write.key)
    }
    return rows
  }

  /// Gives the next numbers of the table's sequence to records, on both sides.
  func renumber(_ records: [String], of table: Name) async throws {
    guard !records.isEmpty, let keys = parts.sides.numbers?.keys(table) else { return }
    let new = try await parts.pool.run { try keys.numbers(of: records, isTaken: true, $0) }
    try await parts.replica.renumber(
      zip(records, new).map { record, number in
        (key: RecordKey(table: table, record: Name(record)), number: number)
      }
    ) { [file = parts.file] table, former, database in
      try file.unmark(former, of: table, database)
    }
    for (record, number) in zip(records, new) {
      parts.log("renumbered", "\(table) \(record): \(number)")
    }
  }
}
