import FerryProtocol

/// The triggers that record what a user's transaction does to a tracked table (seed row S1.3).
///
/// They call functions that only this library registers, so that a write from any other
/// connection fails ("no such function: ferry_nested") instead of going unrecorded.
enum CaptureTriggers {
  /// SQLite allows 127 arguments for a function; a row of more columns is captured in parts.
  private static let argumentsMax = 120

  /// The statements that (re)create the triggers of one table.
  static func statements(for table: TableSchema, _ rules: TableRules) -> [String] {
    drops(for: table.name) + [
      trigger("insert", "AFTER INSERT", table, record: "NEW", values: row(table, "NEW")),
      trigger("update", "AFTER UPDATE", table, record: "NEW", values: difference(table, rules)),
      trigger("delete", "AFTER DELETE", table, record: "OLD", values: row(table, "OLD")),
      rekey(table),
      nested("insert", "NEW", table), nested("update", "OLD", table),
      nested("delete", "OLD", table),
    ]
  }

  /// The names of one table's triggers.
  static func names(for table: String) -> [String] {
    [
      "insert", "update", "delete", "rekey", "nested_insert", "nested_update", "nested_delete",
    ].map { "ferry_\($0)_\(table)" }
  }

  /// The statements that remove them.
  static func drops(for table: String) -> [String] {
    names(for: table).map { "DROP TRIGGER IF EXISTS \(quoted($0))" }
  }

  /// While a remote change is applied, the user's own triggers fire as well. What they would write
  /// to tracked tables was recorded where the change was made, and comes by itself; doing it again
  /// here, unrecorded, would part the replicas. Other tables (a search index) are theirs to write.
  private static func nested(_ kind: String, _ side: String, _ table: TableSchema) -> String {
    """
    CREATE TRIGGER \(quoted("ferry_nested_\(kind)_\(table.name)"))
    BEFORE \(kind.uppercased()) ON \(quoted(table.name))
    WHEN ferry_nested(\(literal(table.name)), \(side).\(quoted(table.key)))
    BEGIN SELECT RAISE(IGNORE); END
    """
  }

  /// Records one row that a table holds already as an insert; its key is the parameter. Its base
  /// is 0: it was written without knowing of what the server has sent, so that a value which it
  /// overrules is kept as a conflict.
  ///
  /// - Parameter counters: columns of which integers are recorded as 0.
  static func recordExisting(_ table: TableSchema, counters: [String] = []) -> String {
    let name = quoted(table.name)
    let collected = row(table, name, counters: counters)
    return """
      INSERT INTO ferry_pending(id, grp, base, tbl, record, kind, data)
      SELECT ferry_operation(), ferry_group(), 0, \(literal(table.name)),
        \(name).\(quoted(table.key)), 'insert', ferry_data()
      FROM \(name) WHERE \(name).\(quoted(table.key)) = ? AND \(collected) > 0
      """
  }

  private static func trigger(
    _ kind: String, _ event: String, _ table: TableSchema, record: String, values: String
  ) -> String {
    let key = quoted(table.key)
    // A changed key is a delete and an insert: that is the rekey trigger's.
    let guardSQL = kind == "update" ? "OLD.\(key) IS NEW.\(key) AND " : ""
    return """
      CREATE TRIGGER \(quoted("ferry_\(kind)_\(table.name)")) \(event) ON \(quoted(table.name))
      WHEN \(guardSQL)\(values) > 0
      BEGIN \(insertion(kind, table.name, "\(record).\(key)")); END
      """
  }

  private static func rekey(_ table: TableSchema) -> String {
    let key = quoted(table.key)
    return """
      CREATE TRIGGER \(quoted("ferry_rekey_\(table.name)")) AFTER UPDATE ON \(quoted(table.name))
      WHEN OLD.\(key) IS NOT NEW.\(key) AND \(row(table, "OLD")) > 0
      BEGIN
        \(insertion("delete", table.name, "OLD.\(key)"));
        SELECT \(row(table, "NEW"));
        \(insertion("insert", table.name, "NEW.\(key)"));
      END
      """
  }

  private static func insertion(_ kind: String, _ table: String, _ key: String) -> String {
    let kept = "FROM ferry_kept WHERE tbl = \(literal(table)) AND record = \(key)"
    // What was kept of a record that is deleted would bring it back in parts; the server has it.
    let (met, forget) =
      kind == "delete" ? ("(SELECT count(*) \(kept))", "; DELETE \(kept)") : ("0", "")
    let (names, values) =
      kind == "update" ? (", was, marks", ", ferry_was(), ferry_marks()") : ("", "")
    return """
      INSERT INTO ferry_pending(id, grp, base, tbl, record, kind, data, met\(names)) VALUES (\
      ferry_operation(), ferry_group(), ferry_base(), \(literal(table)), \(key), \
      \(literal(kind)), ferry_data(), \(met)\(values))\(forget)
      """
  }

  /// `ferry_row(first, table, key, '"name":', value, …)`: collects a row's values as JSON.
  private static func row(
    _ table: TableSchema, _ side: String, counters: [String] = []
  ) -> String {
    calls("ferry_row", table, side) { column in
      let value = "\(side).\(quoted(column.name))"
      let isEmptied = counters.contains(column.name)
      return [
        jsonName(column.name),
        isEmptied ? "iif(typeof(\(value)) = 'integer', 0, \(value))" : value,
      ]
    }
  }

  /// `ferry_difference(first, table, key, '"name":', old, new, …)`: only what changed.
  /// The name of a column that is more than a value begins with its mark.
  private static func difference(_ table: TableSchema, _ rules: TableRules) -> String {
    calls("ferry_difference", table, "NEW") { column in
      let name = quoted(column.name)
      return [jsonName(column.name, column.capture(rules).mark), "OLD.\(name)", "NEW.\(name)"]
    }
  }

  private static func calls(
    _ function: String, _ table: TableSchema, _ side: String,
    arguments: (TableSchema.ColumnInfo) -> [String]
  ) -> String {
    var calls: [[String]] = [[]]
    for column in table.columns {
      let next = arguments(column)
      if calls[calls.count - 1].count + next.count > argumentsMax { calls.append([]) }
      calls[calls.count - 1] += next
    }
    let parts = calls.enumerated().map { index, arguments in
      let head = ["\(index == 0 ? 1 : 0)", literal(table.name), "\(side).\(quoted(table.key))"]
      return "\(function)(\((head + arguments).joined(separator: ", ")))"
    }
    // The left side of + is evaluated first, so the parts are collected in order.
    return parts.count == 1 ? parts[0] : "(" + parts.joined(separator: " + ") + ")"
  }

  private static func jsonName(_ name: String, _ mark: String = "") -> String {
    var json = JSONWriter()
    json.string(name)
    json.raw(":")
    return literal(mark + String(decoding: json.finish(), as: UTF8.self))
  }
}

/// How an update of a column is recorded.
enum ColumnCapture {
  /// The new value.
  case value
  /// What was added to the old one: concurrent increments add up.
  case increment
  /// The new text, to be merged with others by the old one.
  case text

  /// Stands before the column's name in triggers and marks.
  var mark: String {
    switch self {
    case .value: ""
    case .increment: "+"
    case .text: "~"
    }
  }
}

extension TableSchema.ColumnInfo {
  /// How updates are recorded by what the space declares.
  func capture(_ rules: TableRules) -> ColumnCapture {
    switch rules.policy(of: name) {
    case .counter: .increment
    case .textMerge: .text
    default: .value
    }
  }
}
