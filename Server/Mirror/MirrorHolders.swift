import FerryPersistence
import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// A program's row of an adopted table that the space refuses, since another record has the unique
/// value.
struct HeldRow: Sendable {
  var table: String
  var key: [String?]
  /// The key of the other record.
  var holder: [String?]
}

/// Writes failed in the replica, since other records have their unique values.
struct HeldWrites: Error { var rows: [HeldRow] }

/// Makes records of devices give way to programs' rows with the same unique value: each holder
/// becomes what the company's table has.
struct MirrorHolders: Sendable {
  let parts: MirrorParts

  /// Records that give way at once.
  private static let returnedMax = 1_000

  // MARK: Holders

  /// Returns the writes to the replica that free the values. A holder stays if the company's table
  /// has the value in both rows, or if the table does not have the program's row any more.
  func returns(for rows: [HeldRow]) async throws -> [CapturedWrite] {
    var found: [CapturedWrite] = []
    for row in rows {
      let isFound = found.contains { $0.table == row.table && $0.key == row.holder }
      guard !isFound, let write = try await write(for: row) else { continue }
      var writes = [write]
      var place = 0
      // The company has no rows that refer to a row unknown to it.
      while place < writes.count, writes.count <= Self.returnedMax {
        if writes[place].kind == .delete { writes += try await children(of: writes[place]) }
        place += 1
      }
      if writes.count <= Self.returnedMax { found += writes.reversed() }
    }
    return found
  }

  /// Returns the writes that make the rows referring to a deleted one those of the company's tables.
  private func children(of parent: CapturedWrite) async throws -> [CapturedWrite] {
    var found: [CapturedWrite] = []
    for sql in parts.sql {
      for reference in sql.table.references where reference.table.text == parent.table {
        let columns = reference.columns
        let children = try await parts.replica.read { database in
          try keys(of: sql.table, by: columns, parent, database)
        }
        for key in children where key != parent.key || sql.table.name.text != parent.table {
          let row = try await parts.pool.run { try sql.row(key, $0) }
          let write = CapturedWrite(
            id: 0, tries: 0, transaction: "", table: sql.table.name.text, kind: .delete, key: key,
            reason: parent.reason)
          found.append(row.map { write.changed(columns, to: $0) } ?? write)
        }
      }
    }
    return found
  }

  /// Returns the keys of rows of the replica that refer to a row.
  private func keys(
    of table: MirrorTable, by columns: [Name], _ parent: CapturedWrite, _ database: Database
  ) throws -> [[String?]] {
    guard let other = parts.file.plan.table(parent.table) else { return [] }
    let conditions = columns.map { "\(quoted($0)) = ?" }.joined(separator: " AND ")
    let rows = try database.query(
      """
      SELECT \(MirrorFile.keys(table, "")) FROM \(quoted(table.name)) WHERE \(conditions)
      LIMIT \(Self.returnedMax + 1)
      """, try other.values(ofKey: parent.key))
    return rows.compactMap { row in
      try? table.texts(ofKey: table.key.map { row[$0.name.text] })
    }
  }

  private func write(for row: HeldRow) async throws -> CapturedWrite? {
    guard let sql = parts.sql.first(where: { $0.table.name.text == row.table }) else { return nil }
    let ledger = parts.ledger
    let (own, other, isUnsent) = try await parts.pool.run { connection in
      (
        try sql.row(row.key, connection), try sql.row(row.holder, connection),
        try ledger.unsent.contains(row.table, row.holder, connection)
      )
    }
    guard let own, !isUnsent else { return nil }
    let sets = Self.sets(of: sql.table)
    let isShared = sets.contains { columns in
      columns.allSatisfy { own[$0] != nil && own[$0] == other?[$0] }
    }
    if isShared { return nil }
    let columns = sql.table.columns.map(\.name).filter { name in
      sets.contains { $0.contains(name) }
    }
    let key = row.key.map { $0 ?? "NULL" }.joined(separator: ", ")
    let names = columns.map(\.text).joined(separator: ", ")
    let write = CapturedWrite(
      id: 0, tries: 0, transaction: "", table: row.table, kind: .delete, key: row.holder,
      reason: MirrorAnswers.shown(
        "the company's row \(key) of table \(row.table) has this \(names)"))
    return other.map { write.changed(columns, to: $0) } ?? write
  }

  private static func sets(of table: MirrorTable) -> [[Name]] {
    (table.unique + table.claimed).filter { columns in
      columns.allSatisfy { table.column($0) != nil }
    }
  }

  // MARK: Refused transactions

  /// Sends transactions of programs again that the space has refused because of unique values, once
  /// the holders have given way. Returns the entries of all refused transactions whose records are
  /// fetched: only these have had their chance.
  func retryRefused() async throws -> Set<Int64> {
    let (fetched, ready) = try await parts.replica.read { database in
      let fetched = Set(try parts.file.refused(database.connection).entries)
      return (fetched, fetched.subtracting(try parts.file.replacedEntries(database.connection)))
    }
    if ready.isEmpty { return fetched }
    var isAny = false
    for entry in try await parts.replica.quarantine.entries() where ready.contains(entry.number) {
      guard let row = try await heldRow(of: entry) else { continue }
      let writes = try await returns(for: [row])
      guard !writes.isEmpty, try await apply(writes), try await isCurrent(entry) else { continue }
      parts.log("retry", "a transaction goes again: other rows have given way to \(row.table)")
      do {
        try await parts.replica.write { try parts.file.recordSentAgain(entry.number, $0) }
        try await parts.replica.quarantine.retry(entry.number)
        isAny = true
      } catch let error as ReplicaError {
        // Its rows are listed as unsent.
        parts.log("retry", "\(error)")
      }
    }
    if isAny { try await parts.replica.send() }
    return fetched
  }

  private func heldRow(of entry: QuarantineEntry) async throws -> HeldRow? {
    guard entry.code == .uniqueTaken, let holder = entry.holder,
      let refused = entry.operations.first(where: { entry.refused.contains($0.id) }),
      let table = parts.file.plan.table(refused.key.table.text), table.adoption != nil
    else { return nil }
    let (own, held) = try await parts.replica.read { database in
      let records = MirrorRecords(parts.file.plan, database.connection)
      return (
        try records.key(of: refused.key.record.text, in: table),
        try records.key(of: holder.text, in: table)
      )
    }
    guard let key = own, let other = held else { return nil }
    // The holder has not given way by the transaction itself.
    let isTried = entry.operations.contains {
      $0.key == RecordKey(table: refused.key.table, record: holder)
    }
    return isTried ? nil : HeldRow(table: table.name.text, key: key, holder: other)
  }

  /// Returns `true` if the replica permits the writes.
  private func apply(_ writes: [CapturedWrite]) async throws -> Bool {
    do {
      try await parts.replica.writeMarked { database, marks in
        let writer = MirrorRowWriter(file: parts.file, database: database)
        for write in writes {
          marks.reason = write.reason
          _ = try writer.apply(write)
        }
      }
      return true
    } catch let error as ReplicaError where error.isConstraint {
      parts.log("retry", "\(error)")
      return false
    } catch let fault as MirrorFault {
      // Others have changed a row meanwhile.
      parts.log("retry", fault.description)
      return false
    }
  }

  /// Returns `true` if the tables have the values of a refused transaction: no later one has written
  /// to the same columns.
  private func isCurrent(_ entry: QuarantineEntry) async throws -> Bool {
    var last: [RecordKey: (isDelete: Bool, values: [Name: Value])] = [:]
    for operation in entry.operations {
      if operation.kind == .delete {
        last[operation.key] = (true, [:])
        continue
      }
      var values = last[operation.key]?.values ?? [:]
      for column in operation.columns where !operation.increments.contains(column.name) {
        values[column.name] = column.value
      }
      last[operation.key] = (false, values)
    }
    for (record, written) in last {
      guard let sql = parts.sql.first(where: { $0.table.name == record.table }) else {
        return false
      }
      let (found, row) = try await parts.replica.read { database in
        let records = MirrorRecords(parts.file.plan, database.connection)
        var row = written
        row.values = try records.values(row.values, in: sql.table)
        return (try records.key(of: record.record.text, in: sql.table), row)
      }
      guard let key = found else { return false }
      let present = try await parts.pool.run { try sql.row(key, $0) }
      guard (present == nil) == row.isDelete else { return false }
      for (name, value) in row.values {
        guard let column = sql.table.columns.first(where: { $0.name == name }) else { continue }
        guard let text = present?[name], column.isExact(value, text) else { return false }
      }
    }
    return true
  }
}

extension CapturedWrite {
  /// Returns an update of columns to the values of a row of the table.
  fileprivate func changed(_ columns: [Name], to row: [Name: String?]) -> CapturedWrite {
    var write = self
    write.kind = .update
    write.names = columns.map(\.text)
    write.values = columns.map { row[$0] ?? nil }
    write.former = write.values
    return write
  }
}

extension MirrorSQL {
  /// Returns the texts of the columns of a travelling row; `nil` if there is none.
  fileprivate func row(
    _ key: [String?], _ connection: PostgresConnection
  ) throws -> [Name: String?]? {
    let found = try connection.query(
      .once(
        """
        SELECT \(columnTexts("t.")) FROM \(travelling) t
        WHERE ROW(\(keyColumns)) = \(row("$1::text[]"))
        """), [.array(PostgresArray(key))])
    guard let texts = try found.first?.array(0, of: String.self) else { return nil }
    var row: [Name: String?] = [:]
    for (column, text) in zip(table.key + table.columns, key + texts) {
      row[column.name] = .some(text)
    }
    return row
  }
}
