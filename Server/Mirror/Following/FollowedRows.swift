import FerryPostgres
import FerryProtocol
import FerrySQLite

/// The comparison of a table with the mirror's file after a followed change of the definition. Rows
/// changed in the space, and still on their way to the table, keep the space's values; they lack the
/// new columns alone. All calls block.
struct FollowedRows {
  let parts: MirrorParts
  let sql: MirrorSQL
  /// The columns that have not travelled before.
  let added: [Name]

  /// Returns `true` if each row has the default values of the new columns, as the file has.
  func areDefault(_ connection: PostgresConnection) throws -> Bool {
    let others = sql.table.columns.filter { added.contains($0.name) }.map { column in
      let value = column.type.stored("t.\(quoted(column.name))")
      guard let text = try? column.text(of: column.defaultValue) else {
        return "\(value) IS NOT NULL"
      }
      return "\(value) IS DISTINCT FROM "
        + column.type.compared(column.type.decoded(quoted(postgres: text)))
    }
    if others.isEmpty { return true }
    return try connection.query(
      .once(
        "SELECT FROM \(sql.travelling) t WHERE \(others.joined(separator: " OR ")) LIMIT 1")
    ).isEmpty
  }

  /// Gives the rows on their way the table's values, except for new columns, in the copy of the
  /// file's rows. Returns the keys of these rows.
  ///
  /// - Parameter merged: rows on their way with values of programs alone.
  func limit(
    _ source: SQLiteConnection, except merged: Set<[String?]>, _ connection: PostgresConnection
  ) throws -> [[String?]] {
    let keys = try parts.file.unbrought(source)[sql.table.name.text, default: []]
      .sorted { $0.description < $1.description }
    let sets = sql.table.columns.filter { !added.contains($0.name) }.map {
      "\(quoted($0.name)) = t.\(quoted($0.name))"
    }
    if sets.isEmpty { return keys }
    let isSame = sql.table.key.map { "c.\(quoted($0.name)) = t.\(quoted($0.name))" }
    try each(
      keys.filter { !merged.contains($0) },
      """
      UPDATE ferry_copy c SET \(sets.joined(separator: ", "))
      FROM \(sql.target) t JOIN \(sql.source(keysOnly: true)) ON \(sql.matches)
      WHERE \(isSame.joined(separator: " AND "))
      """, connection)
    return keys
  }

  /// Leaves out rows that only one side has, if they are on their way.
  func spare(_ unbrought: [[String?]], _ connection: PostgresConnection) throws {
    try each(
      unbrought,
      """
      DELETE FROM ferry_differing d USING \(sql.source(keysOnly: true))
      WHERE d.key = \(sql.keyParameters) AND NOT (d.here AND d.there)
      """, connection)
  }

  private func each(
    _ keys: [[String?]], _ statement: String, _ connection: PostgresConnection
  ) throws {
    var left = keys[...]
    while !left.isEmpty {
      let part = Array(left.prefix(MirrorStep.batchMax))
      left = left.dropFirst(part.count)
      _ = try connection.query(.once(statement), PostgresParameters(columnsOf: part))
    }
  }
}
