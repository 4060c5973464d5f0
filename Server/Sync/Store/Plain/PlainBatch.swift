/// SQL about any number of keys, written once for both stores: PostgreSQL runs it once, with an
/// array for each column of the keys, and SQLite runs it once for each key.
///
/// The parameters shared by all keys are `$1`, `$2` …
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
  /// The shared parameter with the most rows of all keys together, if there is one.
  private(set) var rowsMax: Int?
  /// The column with the size of a bounded value, if there is one; see ``bounded``.
  private(set) var sizePlace: Int?

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

  // Each look-up goes by a whole key: LATERAL with OFFSET 0 is not turned into anything else. With
  // a join or `id = ANY(…)`, a planner without statistics reads all of a space's rows instead, and
  // a prepared statement keeps this plan.

  /// Creates a look-up of the rows of each key.
  static func find(
    _ name: String, _ columns: [Column], sharing shared: Int = 1, _ query: (Key) -> String
  ) -> PlainBatch {
    PlainBatch(name, columns, sharing: shared, single: query) { key, arrays, names in
      "\(found(arrays, names, query(key))) ORDER BY wanted.place"
    }
  }

  /// Creates a look-up of the first rows of all keys together, in the order of a column.
  ///
  /// - Parameter limit: The shared parameter with the most rows. The query has it as LIMIT.
  static func first(
    _ name: String, _ columns: [Column], sharing shared: Int, order: String, limit: Int,
    _ query: (Key) -> String
  ) -> PlainBatch {
    var batch = PlainBatch(name, columns, sharing: shared, single: query) { key, arrays, names in
      """
      \(found(arrays, names, query(key))) ORDER BY wanted.place, found.\(order) LIMIT $\(limit)
      """
    }
    batch.rowsMax = limit
    return batch
  }

  /// How the bytes of the found values are bounded.
  enum Bound: Equatable {
    /// Values are read while all of them together have fewer bytes; smaller ones than `small` are
    /// always read.
    case total(small: Int = -1)
    /// Values are read until all of them together have as many bytes: at least one.
    case page
  }

  /// Creates a look-up of one row of each key with a value that may be large. Columns are those of
  /// `columns`, the value's number of bytes, and the value; it is NULL if it is out of bounds.
  ///
  /// The shared parameters are the space and the most bytes.
  ///
  /// - Parameter query: Continues `SELECT` and the columns.
  static func bounded(
    _ name: String, _ keys: [Column], _ bound: Bound, columns: [String] = [],
    value: (name: String, type: PlainType), _ query: (Key) -> String
  ) -> PlainBatch {
    let large = value.name
    let list = columns.map { "\($0), " }.joined()
    let small = if case .total(let small) = bound { small } else { -1 }
    let bytes = value.type == .text ? "CAST(\(large) AS blob)" : large
    var batch = PlainBatch(name, keys, sharing: 2) { key in
      let room = bound == .page ? "$2 > 0" : "length(\(bytes)) <= max($2, \(small))"
      return """
        SELECT \(list)length(\(bytes)), CASE WHEN \(room) THEN \(large) END \(query(key))
        """
    } many: { key, arrays, names in
      let sum = "sum(size) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING)"
      let room = bound == .page ? "\(sum) - size < $2" : "size <= \(small) OR \(sum) <= $2"
      let row = """
        SELECT \(list)octet_length(\(large)) AS size, \(large) \(query(key))
        """
      return """
        SELECT place, \(list)size, CASE WHEN \(room) THEN \(large) END
        FROM (\(found(arrays, names, row))) AS listed ORDER BY place
        """
    }
    batch.sizePlace = columns.count
    return batch
  }

  /// Returns the look-up of each key in PostgreSQL.
  private static func found(_ arrays: String, _ names: String, _ query: String) -> String {
    """
    SELECT wanted.place, found.*
    FROM \(arrays) WITH ORDINALITY AS wanted(\(names), place) CROSS JOIN LATERAL (
      \(query) OFFSET 0
    ) AS found
    """
  }

  /// Creates an UPDATE of the rows of each key.
  static func update(
    _ name: String, _ table: String, _ columns: [Column], sharing shared: Int,
    set assignments: (Key) -> String, where condition: (Key) -> String
  ) -> PlainBatch {
    PlainBatch(name, columns, sharing: shared) { key in
      "UPDATE \(table) SET \(assignments(key)) WHERE \(condition(key))"
    } many: { key, arrays, names in
      """
      UPDATE \(table) SET \(assignments(key)) FROM \(arrays) AS wanted(\(names))
      WHERE \(condition(key))
      """
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
