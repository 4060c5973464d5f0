import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The triggers to record the changes of a user's transaction to a tracked table (SPEC.md §4).
///
/// They call functions registered only by this library. So a write from any other connection fails
/// ("no such function: ferry_records") instead of being unrecorded, unless ``HostRecording`` has
/// registered them there. The functions themselves write to `ferry_operations`, so the triggers
/// stay short. Every connection to the file parses the triggers, and every statement with a write
/// to the table compiles them.
enum CaptureTriggers {
  /// The version of the triggers' text; raised when it changes.
  static let version = 9
  /// SQLite allows 127 arguments for a function; a row with more columns is captured in parts.
  private static let argumentsMax = 120

  /// Returns the statements to create the triggers of one table.
  ///
  /// - Parameters:
  ///   - space: the names of the space's ledger.
  ///   - isGuarded: true if the user's triggers must not write to the table while remote changes
  ///     are applied.
  static func statements(
    for table: TableSchema, _ rules: TableRules, in space: SQLNamespace, isGuarded: Bool
  ) -> [String] {
    // The rekey trigger records a changed key as a delete and an insert.
    let isSame = table.keyList.map { "OLD.\($0) IS NEW.\($0)" }.joined(separator: " AND ")
    let stays = table.own(table.own(isSame, in: "OLD"), in: "NEW")
    // A remote change costs no arguments. Guards and numbers of rows still need it.
    let hasNumbers =
      table.identity == .mapped || table.keys.contains { $0.numbers != nil }
      || table.columns.contains { $0.numbers != nil }
    let unless = isGuarded || hasNumbers ? "" : "ferry_records() AND "
    return [
      trigger(
        "insert", table, space, when: unless + ownRow(table, "NEW", inserted(table))),
      trigger("update", table, space, when: "\(unless)\(stays) AND " + difference(table, rules)),
      trigger("delete", table, space, when: deletedRow(table)),
      rekey(table, space),
    ] + (isGuarded ? guards(table, space) : []) + limits(table, space)
  }

  /// Returns a condition, evaluated for rows of the space only.
  private static func ownRow(
    _ table: TableSchema, _ side: String, _ condition: String
  ) -> String {
    table.share.map { "\($0.isOwn(side)) AND \(condition)" } ?? condition
  }

  /// Returns the condition that records a deleted row. A number is released with the row, in any
  /// space.
  private static func deletedRow(_ table: TableSchema) -> String {
    guard let share = table.share, let released = released(table) else {
      return ownRow(table, "OLD", deleted(table))
    }
    return "CASE WHEN \(share.isOwn("OLD")) THEN \(deleted(table)) ELSE \(released) IS 0 END"
  }

  /// Returns the call to release a row's number; `nil` if the table's rows have none.
  private static func released(_ table: TableSchema) -> String? {
    table.identity == .mapped ? table.recorded("OLD", by: "ferry_deleted") : nil
  }

  /// Returns the triggers that reject remote changes of rows of another space: a member of one
  /// space must not change them.
  private static func limits(_ table: TableSchema, _ space: SQLNamespace) -> [String] {
    guard let share = table.share else { return [] }
    let sides = [("insert", ["NEW"]), ("update", ["OLD", "NEW"])]
    return sides.map { kind, rows in
      """
      CREATE TRIGGER \(quoted(triggerName("limit_\(kind)", table.name, space)))
      BEFORE \(kind.uppercasedASCII) ON \(quoted(table.local))
      WHEN NOT (\(rows.map(share.isOwn).joined(separator: " AND ")))
        AND ferry_applying(\(quoted(literal: table.name.text)), \(table.record(of: rows[0])))
      BEGIN SELECT RAISE(ABORT, 'the row belongs to another space of this file'); END
      """
    }
  }

  /// Returns the names of one table's triggers.
  ///
  /// - Parameter space: the names of the space's ledger.
  static func names(
    for table: Name, in space: SQLNamespace, isGuarded: Bool, isShared: Bool = false
  ) -> [Name] {
    var kinds = ["insert", "update", "delete", "rekey"]
    if isGuarded { kinds += ["nested_insert", "nested_update", "nested_delete"] }
    if isShared { kinds += ["limit_insert", "limit_update"] }
    return kinds.map { triggerName($0, table, space) }
  }

  private static func triggerName(_ kind: String, _ table: Name, _ space: SQLNamespace) -> Name {
    Name(space.name("ferry_\(kind)_\(table)"))
  }

  /// Returns the triggers that ignore writes of the user's triggers while a remote change is
  /// applied.
  ///
  /// The origin of the change has recorded such writes to tracked tables, and they arrive by
  /// themselves. A second, unrecorded write here would make the replicas differ. The user's
  /// triggers may write to other tables, such as a search index.
  private static func guards(_ table: TableSchema, _ space: SQLNamespace) -> [String] {
    [("insert", "NEW"), ("update", "OLD"), ("delete", "OLD")].map { kind, side in
      """
      CREATE TRIGGER \(quoted(triggerName("nested_\(kind)", table.name, space)))
      BEFORE \(kind.uppercasedASCII) ON \(quoted(table.local))
      WHEN \(ownRow(table, side, nested(kind, table, side)))
      BEGIN SELECT RAISE(IGNORE); END
      """
    }
  }

  private static func nested(_ kind: String, _ table: TableSchema, _ side: String) -> String {
    "ferry_nested(\(quoted(literal: table.name.text)), \(table.record(of: side)), '\(kind)')"
  }

  /// Returns the statement to record one existing row of a table as an insert; the key is the
  /// parameter. The base is 0: the author had seen no change from the server. So a value overruled
  /// by the row is kept as a conflict.
  ///
  /// - Parameter counters: columns with integers to record as 0.
  static func recordExisting(_ table: TableSchema, counters: [Name] = []) -> String {
    recordRow(table, by: "ferry_existing", counters: counters)
  }

  /// Returns the statement to record one row of a table as an insert of now; the key is the
  /// parameter.
  static func recordRow(
    _ table: TableSchema, by function: String = "ferry_insert", counters: [Name] = []
  ) -> String {
    let name = quoted(table.local)
    let recorded = row(function, table, name, record: table.recorded(name), counters: counters)
    return "SELECT \(recorded) FROM \(name) WHERE \(table.has(record: "?1", in: name))"
  }

  /// Returns the statement to record differences of one row from the server's values as an update.
  /// The parameters are those values, in the table's order of columns, and then the row's key.
  static func recordDifference(
    _ table: TableSchema, _ rules: TableRules, of columns: Set<Name>
  ) -> String {
    let name = quoted(table.local)
    let narrowed = TableSchema(
      name: table.name, local: table.local, keys: table.keys, identity: table.identity,
      columns: table.columns.filter { columns.contains($0.name) })
    let recorded = calls("ferry_update", narrowed, table.recorded(name)) { column in
      [jsonName(column.name, column.capture(rules).mark), "?", table.recorded(column, of: name)]
    }
    return "SELECT \(recorded) FROM \(name) "
      + "WHERE \(table.has(record: "?\(narrowed.columns.count + 1)", in: name))"
  }

  /// Returns a trigger with a condition that records the row and returns 0. The trigger's body
  /// could abort the statement, so SQLite keeps the data to undo the statement, also if the
  /// function fails.
  private static func trigger(
    _ kind: String, _ table: TableSchema, _ space: SQLNamespace, when: String
  ) -> String {
    """
    CREATE TRIGGER \(quoted(triggerName(kind, table.name, space)))
    AFTER \(kind.uppercasedASCII) ON \(quoted(table.local))
    WHEN \(when)
    BEGIN SELECT RAISE(ABORT, 'ferry: not recorded'); END
    """
  }

  private static func rekey(_ table: TableSchema, _ space: SQLNamespace) -> String {
    var differs = table.keyList.map { "OLD.\($0) IS NOT NEW.\($0)" }.joined(separator: " OR ")
    var columns = table.keyList
    var (before, after) = (deleted(table), inserted(table))
    if let share = table.share {
      // A row moved to another space is deleted in this one, and inserted there.
      differs += " OR \(share.isOwn("OLD")) <> \(share.isOwn("NEW"))"
      columns.append(quoted(share.column))
      let isMoved = table.keyList.map { "OLD.\($0) IS NOT NEW.\($0)" }.joined(separator: " OR ")
      let rest = released(table).map { " WHEN \(isMoved) THEN \($0)" } ?? ""
      if let released = released(table) {
        // A row only moved to another space keeps the number and the record.
        let kept = table.recorded("OLD")
        before = row(
          "ferry_delete", table, "OLD", record: "iif(\(isMoved), \(released), \(kept))")
      }
      before = "CASE WHEN \(share.isOwn("OLD")) THEN \(before)\(rest) END"
      after = "CASE WHEN \(share.isOwn("NEW")) THEN \(after) END"
    }
    return """
      CREATE TRIGGER \(quoted(triggerName("rekey", table.name, space)))
      AFTER UPDATE OF \(columns.joined(separator: ", ")) ON \(quoted(table.local))
      WHEN \(differs)
      BEGIN SELECT \(before), \(after); END
      """
  }

  private static func inserted(_ table: TableSchema) -> String {
    row("ferry_insert", table, "NEW", record: table.recorded("NEW", by: "ferry_inserted"))
  }

  private static func deleted(_ table: TableSchema) -> String {
    row("ferry_delete", table, "OLD", record: table.recorded("OLD", by: "ferry_deleted"))
  }

  /// Returns `ferry_insert(part, table, key, '"name":', value, …)`, a call to record a row's values
  /// as JSON.
  private static func row(
    _ function: String, _ table: TableSchema, _ side: String, record: String, counters: [Name] = []
  ) -> String {
    calls(function, table, record) { column in
      let value = table.recorded(column, of: side)
      let isEmptied = counters.contains(column.name)
      return [
        jsonName(column.name),
        isEmptied ? "iif(typeof(\(value)) = 'integer', 0, \(value))" : value,
      ]
    }
  }

  /// Returns `ferry_update(part, table, key, '"name":', old, new, …)`, a call to record only the
  /// changes. The name of a column that is more than a value begins with a mark.
  private static func difference(_ table: TableSchema, _ rules: TableRules) -> String {
    calls("ferry_update", table, table.recorded("NEW")) { column in
      [
        jsonName(column.name, column.capture(rules).mark), table.recorded(column, of: "OLD"),
        table.recorded(column, of: "NEW"),
      ]
    }
  }

  private static func calls(
    _ function: String, _ table: TableSchema, _ record: String,
    arguments: (TableSchema.ColumnInfo) -> [String]
  ) -> String {
    var calls: [[String]] = [[]]
    for column in table.columns {
      let next = arguments(column)
      if calls[calls.count - 1].count + next.count > argumentsMax { calls.append([]) }
      calls[calls.count - 1] += next
    }
    let parts = calls.enumerated().map { index, arguments in
      let part =
        (index == 0 ? CapturedPart.first : 0) + (index == calls.count - 1 ? CapturedPart.last : 0)
      let head = ["\(part)", quoted(literal: table.name.text), record]
      return "\(function)(\((head + arguments).joined(separator: ", ")))"
    }
    // The left side of + is evaluated first, so the parts are collected in order.
    return parts.count == 1 ? parts[0] : "(" + parts.joined(separator: " + ") + ")"
  }

  private static func jsonName(_ name: Name, _ mark: String = "") -> String {
    var json = JSONWriter()
    json.string(name)
    json.raw(":")
    return quoted(literal: mark + String(decoding: json.finish(), as: UTF8.self))
  }
}

/// The part of a row passed to a function; for a row with few columns, both.
enum CapturedPart {
  static let first: Int64 = 1
  /// The last part: the collected row is recorded.
  static let last: Int64 = 2
}

/// How an update of a column is recorded.
enum ColumnCapture {
  /// The new value.
  case value
  /// The amount added to the old value: concurrent increments add up.
  case increment
  /// The new text; the server merges it with others by means of the old one.
  case text

  /// The character before the column's name in triggers and marks.
  var mark: String {
    switch self {
    case .value: ""
    case .increment: "+"
    case .text: "~"
    }
  }
}

extension TableSchema.ColumnInfo {
  /// Returns how updates are recorded under the space's rules.
  func capture(_ rules: TableRules) -> ColumnCapture {
    switch rules.policy(of: name) {
    case .counter: .increment
    case .textMerge: .text
    default: .value
    }
  }
}
