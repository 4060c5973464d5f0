import FerryProtocol

/// SQL to capture the logged rows of a table.
struct LoggedRowsSQL {
  let sql: MirrorSQL
  /// The column by which the reader finds the mirrors of a row; `nil` if it need not.
  private let column: String?

  /// - Parameter isOfGroup: whether the log is a group's.
  init(sql: MirrorSQL, isOfGroup: Bool = false) {
    var sql = sql
    column = isOfGroup ? sql.table.adoption?.space?.name : nil
    // The rows of other spaces are left out before.
    if isOfGroup { sql.table.adoption?.space = nil }
    self.sql = sql
  }

  /// The table as the reader needs it.
  var table: LoggedTable {
    let adoption = sql.table.adoption
    let spaces = [column, adoption?.space?.name].compactMap(\.self)
    return LoggedTable(
      schema: sql.schema, name: sql.table.name.text, target: sql.target,
      isPartitioned: adoption?.isPartitioned == true, column: column,
      needed: sql.table.all.map(\.name.text) + spaces, hasCondition: adoption?.condition != nil,
      writes: writes, merging: OverwriteSQL.merging(of: sql))
  }

  /// The SQL of the captured writes `v` of a logged row `x`.
  private var writes: String {
    let (old, new) = ("(x.o)", "(x.n)")
    let faults = { (row: String) in "CASE \(sql.faults(row + ".").joined(separator: " ")) END" }
    let formerFault =
      sql.table.adoption == nil ? "NULL::text" : "CASE WHEN t.travelled THEN \(faults(old)) END"
    return """
      CROSS JOIN LATERAL (SELECT
        CASE WHEN x.had THEN \(sql.holds(old) ?? "true") ELSE false END AS travelled,
        CASE WHEN x.has THEN \(sql.holds(new) ?? "true") ELSE false END AS travels OFFSET 0) t
      CROSS JOIN LATERAL (SELECT
        CASE WHEN t.travelled THEN \(sql.keyText(old + ".")) END AS former,
        CASE WHEN t.travels THEN \(sql.keyText(new + ".")) END AS key,
        CASE WHEN t.travels THEN \(faults(new)) END AS fault,
        \(formerFault) AS former_fault OFFSET 0) f
      CROSS JOIN LATERAL (\(loggedWrites)) v
      """
  }

  private var loggedWrites: String {
    let all = "\(sql.columnNames), \(sql.columnTexts("(x.n)."))"
    let isOther = "(t.travelled AND f.key IS DISTINCT FROM f.former)"
    let isNew = "(x.adopting OR NOT t.travelled OR f.former_fault IS NOT NULL)"
    let parts = [
      """
      SELECT 0 AS part, 'D'::"char" AS kind, f.former AS key, NULL::text[] AS names,
        NULL::text[] AS vals, NULL::text[] AS olds
      WHERE t.travelled AND (NOT t.travels OR f.fault IS NOT NULL AND \(isOther))
      """,
      """
      SELECT 1, 'X', f.key, '{}', ARRAY[f.fault], NULL WHERE t.travels AND f.fault IS NOT NULL
      """,
      """
      SELECT 2, 'K', f.key, \(all), f.former WHERE t.travels AND f.fault IS NULL AND \(isOther)
      """,
      """
      SELECT 3, 'I', f.key, \(all), NULL
      WHERE t.travels AND f.fault IS NULL AND NOT \(isOther) AND \(isNew)
      """,
    ]
    return (parts + [changedPart(isOther: isOther, isNew: isNew)].compactMap(\.self))
      .joined(separator: "\nUNION ALL ")
  }

  /// An update with the changed columns; `nil` for a table without any.
  private func changedPart(isOther: String, isNew: String) -> String? {
    guard !sql.table.columns.isEmpty else { return nil }
    let rows = sql.table.columns.enumerated().map { place, column in
      let (old, new) = ("(x.o).\(quoted(column.name))", "(x.n).\(quoted(column.name))")
      let isChanged = "\(column.type.compared(new)) IS DISTINCT FROM \(column.type.compared(old))"
      return """
        (\(place), \(quoted(postgres: column.name.text))::text, \(column.type.encoded(new)),
          \(column.type.encoded(old)), \(isChanged))
        """
    }
    return """
      SELECT 4, 'U', f.key, c.names, c.vals, c.olds FROM (
        SELECT array_agg(name ORDER BY n) AS names, array_agg(val ORDER BY n) AS vals,
          array_agg(old ORDER BY n) AS olds
        FROM (VALUES \(rows.joined(separator: ", "))) c(n, name, val, old, changed) WHERE changed) c
      WHERE t.travels AND f.fault IS NULL AND NOT \(isOther) AND NOT \(isNew)
        AND c.names IS NOT NULL
      """
  }
}
