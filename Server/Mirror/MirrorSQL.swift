import FerryProtocol

/// SQL of a mirrored table in PostgreSQL. Names are quoted, and values are parameters.
struct MirrorSQL: Sendable {
  /// The schema with the tables of all mirrors' ledgers.
  static let ledger = "ferry_mirror"

  var table: MirrorTable
  let schema: String
  /// The mirror's number in the ledger.
  let mirror: Int64
  /// True if rows of an adopted table may not be in the space yet.
  var isAdopting = false
  /// True if the mirror reads PostgreSQL's log, and marks its own writes there.
  var isLogged = false
  /// The partitions of the table; `nil` if it is not divided.
  var partitions: MirrorPartitions?

  /// The group whose triggers capture for the mirror; `nil` if it has own ones.
  var group: Int64?

  /// The table, qualified by the schema.
  var target: String { "\(quoted(Name(schema))).\(quoted(table.name))" }
  var function: String {
    group.map { GroupCapture.function($0, table.name) } ?? "\(Self.ledger).capture_\(tag)"
  }

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

  func list(_ elements: [String]) -> String {
    "ARRAY[" + elements.joined(separator: ", ") + "]::text[]"
  }

  func keyText(_ row: String) -> String {
    list(table.key.map { $0.type.keyEncoded(row + quoted($0.name)) })
  }

  // MARK: Applying

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

  /// Locks the rows of given keys, so a writer waits until their new values are visible.
  var lock: String {
    "SELECT FROM \(target) t JOIN \(source(keysOnly: true)) ON \(matches) FOR UPDATE OF t"
  }

  /// Returns a row if a write to one of the keys is captured.
  var isWritten: String {
    let key = table.key.indices.map { "x.k\($0)" }.joined(separator: ", ")
    // Of others: a step may capture the delete of a row before it comes to the row itself.
    let written = { (condition: String) in
      """
      SELECT FROM \(Self.ledger).captured t JOIN \(source(keysOnly: true))
      ON t.mirror = \(mirror) AND t.tab = \(quoted(postgres: table.name.text))
        AND \(condition) = ARRAY[\(key)]::text[] AND t.xid <> pg_current_xact_id()
      """
    }
    // An unrecorded write may be a write to these rows.
    let stop = "SELECT FROM \(Self.ledger).stops WHERE mirror = \(mirror)"
    return "\(written("t.key")) UNION ALL \(written("t.kind = 'K' AND t.olds"))"
      + " UNION ALL \(stop) LIMIT 1"
  }

  var delete: String {
    "DELETE FROM \(target) t USING \(source(keysOnly: true)) WHERE \(matches)"
      + isShared(keyParameters)
  }

  /// Gives one column of each unique key another value, for rows that exchange theirs; `nil` if
  /// there is nothing to vacate. Rows referenced by such a column keep it: the references could be
  /// lost.
  var vacate: String? {
    // The row could leave the condition.
    if table.adoption?.condition != nil { return nil }
    var values: [Name: String] = [:]
    for unique in table.unique where unique.allSatisfy({ values[$0] == nil }) {
      let columns = table.columns.filter { unique.contains($0.name) }
      if let column = columns.first(where: { !$0.isRequired }) {
        values[column.name] = "NULL"
        continue
      }
      // A text may be too long for the column.
      let places = columns.sorted { $1.type == .text && $0.type != .text }.compactMap { column in
        column.type.placeholder.map { (column.name, $0) }
      }
      if let (name, value) = places.first { values[name] = value }
    }
    if values.isEmpty { return nil }
    let sets = values.sorted { $0.key < $1.key }.map { "\(quoted($0)) = \($1)" }
    return """
      UPDATE \(target) t SET \(sets.joined(separator: ", "))
      FROM \(source(keysOnly: true)) WHERE \(matches) AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_attribute a
          ON a.attrelid = k.confrelid AND a.attnum = ANY(k.confkey)
        WHERE k.contype = 'f' AND k.confrelid = \(quoted(postgres: target))::regclass
          AND a.attname = ANY(\(list(values.keys.map { quoted(postgres: $0.text) }))))
      \(isShared(keyParameters))
      """
  }

  /// Names the table of the step's next statement. A delete of a parent may change rows of the same
  /// table as well. So all rows are captured, and ``forget(areDeleted:)`` removes those of the
  /// step.
  func begin(isDelete: Bool) -> String {
    if let open { return open }
    let relation = "\(quoted(postgres: target))::regclass"
    let own = "\(relation)::oid::text"
    guard isDelete else { return "SELECT set_config('ferry.table', \(own), true)" }
    return """
      SELECT set_config('ferry.table', CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_constraint
        WHERE contype = 'f' AND confrelid = \(relation) AND confdeltype IN ('c', 'n', 'd'))
        THEN '' ELSE \(own) END, true)
      """
  }

  /// Removes the step's own rows from the capture: all of deleted rows, or the deletes of rows that
  /// are there again.
  func forget(areDeleted: Bool) -> String {
    if isLogged { return forgetLogged(areDeleted: areDeleted) }
    return """
      DELETE FROM \(Self.ledger).captured c USING \(source(keysOnly: true))
      WHERE c.xid = pg_current_xact_id() AND c.mirror = \(mirror)
        AND c.tab = \(quoted(postgres: table.name.text)) AND c.key = \(keyParameters)
        \(areDeleted ? "" : "AND c.kind = 'D'")
      """
  }
}
