/// SQL about any number of keys, written once for both stores: PostgreSQL runs it once, with an
/// array for each column of the keys, and SQLite runs it once for each key.
///
/// The parameters shared by all keys are named `$1`, `$2` … in the order of their first use, and
/// before the columns of the keys; see ``PlainStatement``.
package struct PlainBatch: Sendable {
  /// A column of the keys.
  struct Column: Sendable {
    let name: String
    let type: PlainType

    init(_ name: String, _ type: PlainType) { (self.name, self.type) = (name, type) }
  }

  /// The expressions for the columns of a key.
  struct Key {
    fileprivate let expressions: [String: String]

    func callAsFunction(_ column: String) -> String {
      guard let expression = expressions[column] else {
        preconditionFailure("the keys have no column \(column)")
      }
      return expression
    }
  }

  let columns: [Column]
  /// For one key: its columns follow the shared parameters.
  let single: PlainStatement
  /// For all keys: their arrays follow the shared parameters.
  let many: PlainStatement

  /// - Parameters:
  ///   - shared: The number of shared parameters.
  ///   - many: Gets the expressions for the columns, for the arrays and for their names.
  private init(
    _ name: String, _ columns: [Column], sharing shared: Int, single: (Key) -> String,
    many: (_ key: Key, _ arrays: String, _ names: String) -> String
  ) {
    self.columns = columns
    let names = columns.map(\.name)
    let places = columns.indices.map { "$\(shared + $0 + 1)" }
    self.single = PlainStatement(
      name, single(Key(expressions: Dictionary(uniqueKeysWithValues: zip(names, places)))))
    let arrays = zip(places, columns).map { "\($0)::\($1.type.rawValue)[]" }
    let wanted = names.map { ($0, "wanted.\($0)") }
    self.many = PlainStatement(
      name,
      many(
        Key(expressions: Dictionary(uniqueKeysWithValues: wanted)),
        "unnest(\(arrays.joined(separator: ", ")))", names.joined(separator: ", ")))
  }

  /// Creates a look-up of the rows of each key.
  static func find(
    _ name: String, _ columns: [Column], sharing shared: Int = 1, _ query: (Key) -> String
  ) -> PlainBatch {
    // LATERAL with OFFSET 0 is not turned into anything else: each look-up goes by its key.
    PlainBatch(name, columns, sharing: shared, single: query) { key, arrays, names in
      """
      SELECT wanted.place, found.*
      FROM \(arrays) WITH ORDINALITY AS wanted(\(names), place) CROSS JOIN LATERAL (
        \(query(key)) OFFSET 0
      ) AS found ORDER BY wanted.place
      """
    }
  }

  /// Creates an UPDATE of the rows of each key.
  static func update(
    _ name: String, _ table: String, _ columns: [Column], sharing shared: Int,
    set assignments: String, where condition: (Key) -> String
  ) -> PlainBatch {
    let start = "UPDATE \(table) SET \(assignments)"
    return PlainBatch(name, columns, sharing: shared) { key in
      "\(start) WHERE \(condition(key))"
    } many: { key, arrays, names in
      "\(start) FROM \(arrays) AS wanted(\(names)) WHERE \(condition(key))"
    }
  }

  /// Creates a DELETE of the rows of each key.
  static func delete(
    _ name: String, from table: String, _ columns: [Column], sharing shared: Int,
    where condition: (Key) -> String
  ) -> PlainBatch {
    PlainBatch(name, columns, sharing: shared) { key in
      "DELETE FROM \(table) WHERE \(condition(key))"
    } many: { key, arrays, names in
      "DELETE FROM \(table) USING \(arrays) AS wanted(\(names)) WHERE \(condition(key))"
    }
  }

  /// Creates an INSERT of a row for each key into a table of spaces. The first shared parameter is
  /// the space.
  ///
  /// New rows take the space from its own row: so Citus sends the whole statement to the worker of
  /// the space. If the space were a parameter, the coordinator would compute and copy the rows.
  ///
  /// - Parameters:
  ///   - common: The columns of the other shared parameters.
  ///   - conflict: The clause ON CONFLICT.
  static func insert(
    _ name: String, into table: String, _ columns: [Column], sharing common: [String] = [],
    _ conflict: String
  ) -> PlainBatch {
    let names = (["space"] + common + columns.map(\.name)).joined(separator: ", ")
    let shared = common.indices.map { "$\($0 + 2)" }
    return PlainBatch(name, columns, sharing: common.count + 1) { key in
      let values = ["$1"] + shared + columns.map { key($0.name) }
      return """
        INSERT INTO \(table)(\(names)) VALUES (\(values.joined(separator: ", "))) \(conflict)
        """
    } many: { _, arrays, wanted in
      let values = ["s.id"] + shared + ["wanted.*"]
      return """
        INSERT INTO \(table)(\(names))
        SELECT \(values.joined(separator: ", "))
        FROM spaces AS s CROSS JOIN \(arrays) AS wanted(\(wanted))
        WHERE s.id = $1 \(conflict)
        """
    }
  }
}

/// The type of a column of keys, by the name in PostgreSQL.
enum PlainType: String, Sendable {
  case integer = "bigint"
  case text = "text"
  case bytes = "bytea"
  case flag = "boolean"
  case uuid = "uuid"
}
