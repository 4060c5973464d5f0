import FerryPersistence
import FerryProtocol
import FerrySQLite

extension Replica {
  /// Gives other numbers to records of mapped tables here, also in the columns that refer to them.
  /// For the space, nothing changes.
  ///
  /// - Parameters:
  ///   - numbers: free numbers; the records without one here are passed over.
  ///   - body: runs after each, with the former number, in the same transaction.
  package func renumber(
    _ numbers: [(key: RecordKey, number: Int64)],
    _ body: @escaping @Sendable (_ table: Name, _ former: Int64, Database) throws -> Void
  ) async throws {
    try await thread.call { file in
      try file.write { database in
        try Renumbering(file: file).apply(numbers) { try body($0, $1, database) }
      }
    }
    wakeWatchers()
  }
}

/// A change of this device's numbers, within a transaction of the file.
struct Renumbering {
  let file: ReplicaFile

  private var connection: SQLiteConnection { file.connection }

  func apply(
    _ numbers: [(key: RecordKey, number: Int64)],
    _ body: (_ table: Name, _ former: Int64) throws -> Void
  ) throws {
    let wasSuspended = file.capture.isSuspended
    file.capture.isSuspended = true
    defer { file.capture.isSuspended = wasSuspended }
    try connection.deferForeignKeys()
    let tables = try file.tables.tracked.names().map(file.tables.schema(of:))
    for (key, number) in numbers {
      guard let table = tables.first(where: { $0.name == key.table && $0.identity == .mapped }),
        let old = try KeyNumbers(connection: connection)
          .number(of: key.record.text, in: key.table), old != number
      else { continue }
      for child in tables {
        for column in child.referring(to: key.table) { try set(column, of: child, number, old) }
      }
      try set(table.key, of: table, number, old)
      try connection.run(
        "UPDATE ferry_keys SET number = ? WHERE tbl = ? AND number = ?", number, key.table, old)
      try body(key.table, old)
    }
  }

  private func set(
    _ column: Name, of table: TableSchema, _ new: Int64, _ old: Int64
  ) throws {
    let name = quoted(column)
    try connection.run(
      "UPDATE \(quoted(table.local)) SET \(name) = ? WHERE \(name) = ?", new, old)
  }
}

extension TableSchema {
  /// Returns the columns of this file with numbers of a table.
  fileprivate func referring(to table: Name) -> [Name] {
    columns.filter { $0.numbers == table }.map(\.local)
      + keys.filter { $0.numbers == table }.map(\.local)
  }
}
