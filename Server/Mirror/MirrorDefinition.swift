import FerryProtocol

/// SQL for a mirror's own table in PostgreSQL, as defined by the schema of the space.
struct MirrorDefinition {
  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }

  /// The statements to make the table as it should be; they may run again.
  var statements: [String] {
    var statements = [
      "CREATE TABLE IF NOT EXISTS \(sql.target) ("
        + (table.all.map(clause) + ["PRIMARY KEY (\(quoted(list: table.key.map(\.name))))"])
        .joined(separator: ", ") + ")"
    ]
    statements += table.columns.map { column in
      var column = column
      // The existing rows of the table would violate it.
      if column.defaultValue == .null, column.currentTime == nil { column.isRequired = false }
      return "ALTER TABLE \(sql.target) ADD COLUMN IF NOT EXISTS \(clause(column))"
    }
    return statements
  }

  /// An index or a constraint, which the rows of a table may not permit.
  struct Part {
    var description: String
    var statement: String
  }

  private func part(_ kind: String, _ columns: [Name], _ statement: String) -> Part {
    let names = columns.map(\.text).joined(separator: ", ")
    return Part(description: "\(kind) (\(names)) of table \(table.name)", statement: statement)
  }

  /// The unique keys and the indexes.
  var parts: [Part] {
    table.unique.map { names in
      part(
        "unique key", names,
        constraint(
          sql.name("unique", names), "UNIQUE (\(quoted(list: names))) DEFERRABLE INITIALLY DEFERRED"
        ))
    }
      + table.indexes.map { names in
        part(
          "index", names,
          "CREATE INDEX IF NOT EXISTS \(sql.name("index", names)) ON \(sql.target) (\(quoted(list: names)))"
        )
      }
  }

  /// The foreign keys, once all tables are there.
  var references: [Part] {
    table.references.map { reference in
      let statement = constraint(
        sql.name("parent", [reference.table] + reference.columns),
        "FOREIGN KEY (\(quoted(list: reference.columns))) REFERENCES "
          + "\(quoted(Name(sql.schema))).\(quoted(reference.table)) "
          + "ON DELETE \(reference.onDelete.sql) ON UPDATE \(reference.onUpdate.sql) "
          + "DEFERRABLE INITIALLY DEFERRED")
      return part("foreign key", reference.columns, statement)
    }
  }

  private func clause(_ column: MirrorColumn) -> String {
    var text = "\(quoted(column.name)) \(column.type.rawValue)"
    let isTextKey = table.key.count == 1 && table.key[0].name == column.name && column.type == .text
    if isTextKey { text += " DEFAULT gen_random_uuid()::text" }
    if column.isRequired { text += " NOT NULL" }
    if let value = try? column.text(of: column.defaultValue) {
      text += " DEFAULT " + column.type.decoded(quoted(postgres: value))
    }
    if let time = column.currentTime { text += " DEFAULT " + time }
    return text
  }

  private func constraint(_ name: String, _ clause: String) -> String {
    let action = "ALTER TABLE \(sql.target) ADD CONSTRAINT \(name) \(clause)"
    return sql.unlessPresent(name, in: "pg_constraint", prefix: "con", action)
  }
}

extension MirrorColumn {
  /// The SQL of the time as devices write it by default; `nil` without such a default.
  fileprivate var currentTime: String? {
    guard type == .text, let now else { return nil }
    let form =
      switch now {
      case .timestamp: "YYYY-MM-DD HH24:MI:SS"
      case .date: "YYYY-MM-DD"
      case .time: "HH24:MI:SS"
      }
    return "to_char(timezone('UTC', now()), '\(form)')"
  }
}

extension DeclaredReference.Action {
  /// The action in PostgreSQL. RESTRICT cannot be deferred there; NO ACTION refuses the same.
  fileprivate var sql: String {
    switch self {
    case .none, .restrict: "NO ACTION"
    case .cascade: "CASCADE"
    case .setNull: "SET NULL"
    case .setDefault: "SET DEFAULT"
    }
  }
}
