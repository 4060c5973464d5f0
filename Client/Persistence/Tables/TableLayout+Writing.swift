import FerryProtocol
import FerrySQLite

/// The INSERT for a table and a list of columns.
struct Insertion {
  let table: Name
  let names: [Name]
  let statement: SQLiteStatement

  func fits(_ columns: RecordColumns, _ part: TableInfo) -> Bool {
    names.count == columns.all.count && table == part.name
      && zip(names, columns.all).allSatisfy { $0 == $1.name }
  }
}

/// Writes to the parts of a table. Keys and values are checked by the caller.
extension TableLayout {
  /// Returns the writable columns for a record.
  func info(in database: Database) throws -> TableInfo {
    if !isDivided, let info = try database.table(name) { return info }
    return try source(in: database).info
  }

  func insert(_ columns: RecordColumns, _ database: Database) throws {
    let infos = try infos(in: database)
    if isDivided { try checkKey(columns, infos[0]) }
    switch division {
    case .none: try insert(columns, into: infos[0], database)
    case .columns:
      let known = try source(in: database).info
      for name in columns.names { _ = try known.column(name) }
      for part in infos { try insert(columns.filter(part.accepts), into: part, database) }
    case .rows(let rule):
      let target = try chosen(infos, by: rule, for: columns)
      let keyed = columns.filter { name in infos[0].key.contains { $0.folded == name.folded } }
      if !keyed.isEmpty, let part = try part(with: keyed, database), part.name != target.name {
        throw DatabaseError(
          "UNIQUE constraint failed: table \(part.name) has a row with this key already",
          code: SQLiteError.constraintCode | 6 << 8)
      }
      try insert(columns, into: target, database)
    }
  }

  /// Throws if a record of a split table has no key. SQLite would give each part a different
  /// number.
  private func checkKey(_ columns: RecordColumns, _ first: TableInfo) throws {
    for name in try first.checkedKey() where columns[name] ?? .null == .null {
      throw RecordError(
        .noKey, table: first.name, column: name,
        "table \(first.name) is split, so that a record needs a value for its key \(name)")
    }
  }

  /// Returns true if there is a row with the key.
  func update(_ key: RecordColumns, _ values: RecordColumns, _ database: Database) throws -> Bool {
    let infos = try infos(in: database)
    switch division {
    case .none: return try update(key, values, in: infos[0], database)
    case .columns:
      let known = try source(in: database).info
      for name in values.names { _ = try known.column(name) }
      guard try update(key, values.filter(infos[0].accepts), in: infos[0], database) else {
        return false
      }
      for part in infos.dropFirst() {
        let values = values.filter(part.accepts)
        if values.isEmpty { continue }
        if try !update(key, values, in: part, database) {
          try insert(key.merged(with: values), into: part, database)
        }
      }
      return true
    case .rows(let rule):
      guard let part = try part(with: key, database) else { return false }
      let row = try row(with: key, in: part, database).merged(with: values, override: true)
      let target = try chosen(infos, by: rule, for: row)
      if target.name == part.name { return try update(key, values, in: part, database) }
      _ = try delete(key, from: part, database)
      try insert(row, into: target, database)
      return true
    }
  }

  /// Returns true if there was a row with the key.
  func delete(_ key: RecordColumns, _ database: Database) throws -> Bool {
    var isFound = false
    // A later part may reference the first one.
    for part in try infos(in: database).reversed() {
      isFound = try delete(key, from: part, database) || isFound
    }
    return isFound
  }

  /// Returns the part with the row of a key: the first part, or of a table split by rows the row's
  /// own.
  func part(with key: RecordColumns, _ database: Database) throws -> TableInfo? {
    let infos = try infos(in: database)
    let candidates = if case .rows = division { infos[...] } else { infos.prefix(1) }
    return try candidates.first { part in
      let condition = try Self.condition(key, part)
      return try database.statement(
        "SELECT 1 FROM \(quoted(part.name)) WHERE \(condition)"
      ).exists(SQLiteList(key.all.map(\.value)))
    }
  }

  // MARK: One part

  private func insert(_ columns: RecordColumns, into part: TableInfo, _ database: Database) throws {
    if database.insertion?.fits(columns, part) != true {
      let names = try columns.names.map { quoted(try part.column($0).name) }
      let marks = names.map { _ in "?" }.joined(separator: ", ")
      let sql =
        "INSERT INTO \(quoted(part.name))(\(names.joined(separator: ", "))) VALUES (\(marks))"
      database.insertion = Insertion(
        table: part.name, names: columns.names,
        statement: try database.statement(sql))
    }
    _ = try database.insertion?.statement.run(SQLiteList(columns.all.lazy.map(\.value)))
  }

  private func update(
    _ key: RecordColumns, _ values: RecordColumns, in part: TableInfo, _ database: Database
  ) throws -> Bool {
    let condition = try Self.condition(key, part)
    guard !values.isEmpty else {
      return try database.statement(
        "SELECT 1 FROM \(quoted(part.name)) WHERE \(condition)"
      ).exists(SQLiteList(key.all.map(\.value)))
    }
    let assignments = try values.names.map { "\(quoted(try part.column($0).name)) = ?" }
    let sql =
      "UPDATE \(quoted(part.name)) SET \(assignments.joined(separator: ", ")) WHERE \(condition)"
    return try database.run(sql, (values.all + key.all).map(\.value)) > 0
  }

  private func delete(
    _ key: RecordColumns, from part: TableInfo, _ database: Database
  ) throws -> Bool {
    let sql = "DELETE FROM \(quoted(part.name)) WHERE \(try Self.condition(key, part))"
    return try database.run(sql, key.all.map(\.value)) > 0
  }

  /// Returns the writable values of a row.
  private func row(
    with key: RecordColumns, in part: TableInfo, _ database: Database
  ) throws -> RecordColumns {
    let names = part.columns.filter { !$0.isGenerated }.map { quoted($0.name) }
    let sql =
      "SELECT \(names.joined(separator: ", ")) FROM \(quoted(part.name)) WHERE "
      + (try Self.condition(key, part))
    let statement = try database.statement(sql)
    let row = RecordRow(statement, of: part.name)
    return try statement.first(SQLiteList(key.all.map(\.value))) { _ in row.columns } ?? key
  }

  private static func condition(_ key: RecordColumns, _ part: TableInfo) throws -> String {
    try key.names.map { "\(quoted(try part.column($0).name)) = ?" }.joined(separator: " AND ")
  }

  private func chosen(
    _ infos: [TableInfo], by rule: (RecordColumns) throws -> Name, for columns: RecordColumns
  ) throws -> TableInfo {
    let chosen = try rule(columns)
    guard let part = infos.first(where: { $0.name == chosen }) else {
      throw RecordError(
        .invalid, table: name,
        "the rule of table \(name) chose \(chosen), which is not one of its parts: "
          + infos.map(\.name.text).joined(separator: ", "))
    }
    return part
  }
}
