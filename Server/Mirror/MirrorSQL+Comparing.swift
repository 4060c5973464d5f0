import FerryProtocol

/// SQL of the comparison of a table with the rows of the replica.
extension MirrorSQL {
  /// Returns the SQL of whether two rows differ beside their keys.
  func differs(_ one: String, _ other: String) -> String {
    guard !table.columns.isEmpty else { return "false" }
    let lists = [one, other].map { row in
      table.columns.map { $0.type.stored("\(row).\(quoted($0.name))") }
        .joined(separator: ", ")
    }
    return "ROW(\(lists[0])) IS DISTINCT FROM ROW(\(lists[1]))"
  }

  /// The statements of a comparison: a table for the replica's rows, and these rows. The types are
  /// the mirror's: a company's type may round a value.
  var makeCopy: String {
    let columns = table.all.map { "NULL::\($0.type.rawValue) AS \(quoted($0.name))" }
    return "CREATE TEMP TABLE ferry_copy ON COMMIT DROP AS SELECT "
      + columns.joined(separator: ", ") + " WITH NO DATA"
  }

  var fillCopy: String {
    return "INSERT INTO ferry_copy SELECT \(values.joined(separator: ", ")) "
      + "FROM \(source(keysOnly: false))"
  }

  /// Captures a row as a write of now: the values, or the absence. The parameter is the key.
  func recapture(isInTable: Bool) -> String {
    let head = "INSERT INTO \(Self.ledger).captured(mirror, tab, kind, key, names, vals) "
    let name = quoted(postgres: table.name.text)
    guard isInTable else {
      let isAbsent = "NOT EXISTS (SELECT FROM \(target) t WHERE \(isAtKey))"
      return head + "SELECT \(mirror), \(name), 'D', $1::text[], NULL, NULL WHERE \(isAbsent)"
    }
    let names = list(table.columns.map { quoted(postgres: $0.name.text) })
    let values = list(table.columns.map { $0.type.encoded("t.\(quoted($0.name))") })
    return head + "SELECT \(mirror), \(name), 'I', $1::text[], \(names), \(values) "
      + "FROM \(target) t WHERE \(isAtKey)"
  }

  /// The condition of a row by key, the parameter.
  private var isAtKey: String {
    zip(table.key, 1...).map { column, index in
      "t.\(quoted(column.name)) = \(column.type.decoded("($1::text[])[\(index)]"))"
    }.joined(separator: " AND ")
  }

  /// Returns the keys of differing rows, whether the table has the row, and whether the copy has.
  ///
  /// - Parameters:
  ///   - withDeferred: whether rows that the table cannot hold count.
  ///   - withCaptured: whether rows count whose writes are on their way.
  func differences(withDeferred: Bool, withCaptured: Bool = false) -> String {
    let keys = table.key.map { quoted($0.name) }
    let on = keys.map { "t.\($0) = c.\($0)" }.joined(separator: " AND ")
    let isOther = "t.\(keys[0]) IS NULL OR c.\(keys[0]) IS NULL OR \(differs("t", "c"))"
    let key = list(
      table.key.map {
        let name = quoted($0.name)
        return $0.type.keyEncoded("coalesce(t.\(name), c.\(name))")
      })
    let found = """
      SELECT \(key) AS key, t.\(keys[0]) IS NOT NULL AS here, c.\(keys[0]) IS NOT NULL AS there
      FROM \(travelling) t FULL JOIN ferry_copy c ON \(on) WHERE (\(isOther))
      """
    var noted = [("unsent", "d.key = f.key")]
    if !withCaptured {
      noted.append(("captured", "(d.key = f.key OR d.kind = 'K' AND d.olds = f.key)"))
    }
    if !withDeferred { noted.append(("deferred", "d.key = f.key")) }
    let conditions = noted.map { name, isRow in
      """
      NOT EXISTS (SELECT FROM \(Self.ledger).\(name) d WHERE d.mirror = \(mirror)
        AND d.tab = \(quoted(postgres: table.name.text)) AND \(isRow))
      """
    }
    return "SELECT * FROM (\(found)) f WHERE "
      + (["true"] + conditions).joined(separator: " AND ")
  }
}
