import FerryProtocol

/// A table of a mirror in PostgreSQL, and the parts of SQL about the rows. Names are quoted, and values
/// are parameters.
struct MirrorSQL: Sendable {
  /// The schema with the tables of all mirrors' ledgers.
  static let ledger = "ferry_mirror"

  var table: MirrorTable
  let schema: String
  /// The mirror's number in the ledger.
  let mirror: Int64
  /// True if rows of an adopted table may not be in the space yet.
  var isAdopting = false
  var capture = TableCapture.triggers

  /// The table, qualified by the schema. For rows that a mirror only reads, it is the copy.
  var target: String {
    if mirror != 0, table.adoption?.view != nil { return "\(Self.ledger).view_\(tag)" }
    return view ?? "\(quoted(Name(schema))).\(quoted(table.name))"
  }
  /// The function of the capturing triggers. Marks in PostgreSQL's log name the table by it.
  var function: String {
    capture.group.map { GroupCapture.function($0, table.name) }
      ?? Self.function(of: mirror, table.name.text)
  }
  /// Names the table of a single mirror.
  static func function(of mirror: Int64, _ table: String) -> String {
    "\(ledger).capture_\(mirror)_\(digest(table))"
  }
  /// The beginning of a statement that captures rows.
  var head: String {
    "INSERT INTO \(Self.ledger).captured(mirror, tab, kind, key, names, vals, olds)"
  }
  /// The table's name as a literal.
  var literal: String { quoted(postgres: table.name.text) }

  /// Names what belongs to the table, as long as it is in the plan, wherever.
  private var tag: String { "\(mirror)_\(Self.digest(table.name.text))" }

  /// Returns 16 hexadecimal digits of a text (FNV-1a): the text may be too long for a name.
  static func digest(_ text: String) -> String {
    var word: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { word = (word ^ UInt64(byte)) &* 0x100_0000_01B3 }
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Names what belongs to some columns of the table.
  func name(_ kind: String, _ columns: [Name]) -> String {
    "ferry_\(tag)_\(kind)_\(Self.digest(columns.map { quoted($0) }.joined()))"
  }

  // MARK: Parts of the table

  /// Creates a missing part of the table. An existing one stays: to drop it would lock out readers.
  func unlessPresent(
    _ name: String, in catalog: String, prefix: String, of relation: String? = nil,
    _ action: String
  ) -> String {
    let body = """
      BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.\(catalog) WHERE \(prefix)name = \(quoted(postgres: name))
          AND \(prefix)relid = \(quoted(postgres: relation ?? target))::pg_catalog.regclass) THEN
          EXECUTE \(quoted(postgres: action));
        END IF;
      END
      """
    return "DO \(quoted(postgres: body))"
  }

  /// Creates a missing schema: IF NOT EXISTS needs the right to create schemas in any case.
  static func unlessPresent(schema: Name) -> String {
    let action = "CREATE SCHEMA \(quoted(schema))"
    let body = """
      BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace
          WHERE nspname = \(quoted(postgres: schema.text))) THEN
          EXECUTE \(quoted(postgres: action));
        END IF;
      END
      """
    return "DO \(quoted(postgres: body))"
  }

  // MARK: Rows and columns

  func list(_ elements: [String]) -> String {
    "ARRAY[" + elements.joined(separator: ", ") + "]::text[]"
  }

  func keyText(_ row: String) -> String {
    list(table.key.map { $0.type.keyEncoded(row + quoted($0.name)) })
  }

  func keys(_ row: String) -> String {
    table.key.map { "\(row).\(quoted($0.name))" }.joined(separator: ", ")
  }

  func row(_ texts: String) -> String {
    let parts = zip(table.key, 1...).map { $0.type.decoded("(\(texts))[\($1)]") }
    return "ROW(\(parts.joined(separator: ", ")))"
  }

  var keyColumns: String {
    table.key.map { "t.\(quoted($0.name))" }.joined(separator: ", ")
  }

  var columnNames: String { list(table.columns.map { quoted(postgres: $0.name.text) }) }

  func columnTexts(_ row: String) -> String {
    list(table.columns.map { $0.type.encoded(row + quoted($0.name)) })
  }

  /// Returns the SQL of whether two rows differ beside their keys.
  ///
  /// - Parameter columns: the compared ones; `nil` for all.
  func differs(_ one: String, _ other: String, in columns: [MirrorColumn]? = nil) -> String {
    let columns = columns ?? table.columns
    guard !columns.isEmpty else { return "false" }
    let lists = [one, other].map { row in
      columns.map { $0.type.stored("\(row).\(quoted($0.name))") }
        .joined(separator: ", ")
    }
    return "ROW(\(lists[0])) IS DISTINCT FROM ROW(\(lists[1]))"
  }

  /// Returns cases of a row that a device cannot hold, with the part to name. The writer's
  /// statement fails: else the row would vanish later.
  func faults(_ row: String) -> [String] {
    let limits = Limits.standard
    let texts = keySizes(table.key.map { "\(row)\(quoted($0.name))" })
    var sizes = texts
    let size = texts.joined(separator: " + ")
    var cases = ["WHEN \(size) NOT BETWEEN 1 AND \(keyBytesMax) THEN 'the key'"]
    cases += table.key.compactMap { column in
      column.keyFault(row + quoted(column.name)).map { "WHEN \($0) THEN 'the key'" }
    }
    for column in table.columns {
      let value = row + quoted(column.name)
      var conditions = [column.fault(value)].compactMap(\.self)
      if let size = column.type.size(value) {
        sizes.append("coalesce(\(size), 0)")
        conditions.append("\(size) > \(limits.valueBytes)")
      }
      if conditions.isEmpty { continue }
      cases.append(
        "WHEN \(conditions.joined(separator: " OR ")) "
          + "THEN \(quoted(postgres: "column \(column.name)"))")
    }
    let total = sizes.joined(separator: " + ")
    return cases + ["WHEN \(total) > \(limits.operationBytes) THEN 'the row'"]
  }

  /// Returns the SQL of the bytes of a key's parts. Several columns travel as one JSON text.
  func keySizes(_ values: [String]) -> [String] {
    values.map { value in
      let text = "\(value)::text"
      return "octet_length(\(values.count == 1 ? text : "to_json(\(text))::text"))"
    }
  }

  /// The most bytes of all parts of a key.
  var keyBytesMax: Int {
    let most = Limits.standard.recordBytes
    return table.key.count == 1 ? most : most - 16 * table.key.count
  }

  // MARK: Parameters

  /// The parameters' columns: `k0`, `k1` … of the key and `c0`, `c1` … of the others.
  func source(keysOnly: Bool) -> String {
    let names =
      table.key.indices.map { "k\($0)" } + (keysOnly ? [] : table.columns.indices.map { "c\($0)" })
    let parameters = names.indices.map { "$\($0 + 1)::text[]" }.joined(separator: ", ")
    return "unnest(\(parameters)) AS x(\(names.joined(separator: ", ")))"
  }

  /// The values of a row of the parameters.
  var values: [String] {
    zip(table.key, 0...).map { $0.type.decoded("x.k\($1)") }
      + zip(table.columns, 0...).map { $0.type.decoded("x.c\($1)") }
  }

  var matches: String {
    zip(table.key, 0...).map { column, index in
      "t.\(quoted(column.name)) = \(column.type.decoded("x.k\(index)"))"
    }.joined(separator: " AND ")
  }

  /// The key of a row of the parameters, as it is stored.
  var keyParameters: String {
    "ARRAY[\(table.key.indices.map { "x.k\($0)" }.joined(separator: ", "))]::text[]"
  }

  // MARK: The travelling rows

  /// Returns the SQL of the travelling rows' condition; `nil` if all rows travel. The condition
  /// sees the row by the name of the table.
  func holds(_ row: String) -> String? {
    let isOurs = isOfSpace(row)
    guard let condition = table.adoption?.condition else {
      return isOurs.map { "coalesce(\($0), false)" }
    }
    // A comment in the condition ends with the line.
    let holds = """
      (SELECT coalesce((\(condition)
      ), false) FROM (SELECT \(row).*) AS \(quoted(table.name)))
      """
    guard let isOurs else { return holds }
    // A condition may fail for rows of other spaces.
    return "CASE WHEN \(isOurs) THEN \(holds) ELSE false END"
  }

  /// The SQL of whether a row belongs to the mirror's space, in a form for indexes; `nil` if all
  /// do.
  func isOfSpace(_ row: String) -> String? {
    table.adoption?.space.map {
      "\(row).\(quoted(Name($0.name))) = \(quoted(postgres: $0.value))"
    }
  }

  var andIsOfSpace: String { isOfSpace("t").map { " AND \($0)" } ?? "" }

  /// The travelling rows of the table.
  var travelling: String {
    holds("t").map { "(SELECT * FROM \(target) t WHERE \($0)\(andIsOfSpace))" } ?? target
  }

  /// Returns the condition of rows that the space does not have as programs have written or deleted
  /// them.
  func isUnsent(_ key: String) -> String {
    """
    EXISTS (SELECT FROM \(Self.ledger).unsent u WHERE u.mirror = \(mirror)
      AND u.tab = \(literal) AND u.key = \(key))
    """
  }

  /// The number of rows, as a company's table of one space has them about.
  var estimate: String {
    // The first comparison counts the rows of a copy.
    if view != nil { return mirror == 0 ? "(SELECT count(*) FROM \(target) t)" : "0::bigint" }
    if let isOurs = isOfSpace("t") { return "(SELECT count(*) FROM \(target) t WHERE \(isOurs))" }
    return """
      (SELECT CASE WHEN reltuples < 0 THEN (SELECT count(*) FROM \(target)) ELSE reltuples::bigint END
        FROM pg_class WHERE oid = \(quoted(postgres: target))::regclass)
      """
  }

  /// A query to fail if the condition is wrong. It computes no row of a view.
  var check: String { "SELECT FROM \(travelling) t LIMIT \(view == nil ? 1 : 0)" }

  /// The path of ``check``; `nil` for that of the role. The comparisons of a view find names so, too.
  var checkPath: String? { view == nil ? "pg_catalog, pg_temp" : nil }

  /// A query to fail if the table cannot have the space's definition: an administrator of the space
  /// may change it, and a company its table. The functions that capture would record no write then.
  var fits: String {
    """
    SELECT \(keyText("t.")), \(columnTexts("t.")), CASE \(faults("t.").joined(separator: " ")) END
    FROM \(target) t LIMIT 0
    """
  }
}
