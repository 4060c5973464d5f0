/// SQL about any number of keys, written once for both stores: PostgreSQL runs it once, with an
/// array for each column of the keys, and SQLite runs it once for each key.
///
/// The text names the columns of a key `wanted.…`, and the parameters shared by all keys `$1`,
/// `$2` ….
struct PlainBatch: Sendable {
  /// A column of the keys.
  struct Column: Sendable {
    let name: String
    let type: PlainType

    init(_ name: String, _ type: PlainType) { (self.name, self.type) = (name, type) }
  }

  let columns: [Column]
  /// For one key: its columns follow the shared parameters.
  let single: PlainStatement
  /// For all keys: their arrays follow the shared parameters.
  let many: PlainStatement

  private init(
    _ name: String, _ columns: [Column], sharing shared: Int, single: String,
    many: (_ arrays: String, _ names: String) -> String
  ) {
    self.columns = columns
    var text = single.replacing("$", with: "?")
    for (place, column) in columns.enumerated().sorted(by: { $0.element.name > $1.element.name }) {
      text = text.replacing("wanted.\(column.name)", with: "?\(shared + place + 1)")
    }
    self.single = PlainStatement(name, text)
    let arrays = columns.enumerated().map { "$\(shared + $0 + 1)::\($1.type.rawValue)[]" }
    self.many = PlainStatement(
      name,
      many(
        "unnest(\(arrays.joined(separator: ", ")))",
        columns.map(\.name).joined(separator: ", ")))
  }

  /// Creates a look-up of the rows of each key.
  ///
  /// - Parameter shared: The number of shared parameters.
  static func find(
    _ name: String, _ columns: [Column], sharing shared: Int = 1, _ query: String
  ) -> PlainBatch {
    // LATERAL with OFFSET 0 is not turned into anything else: each look-up goes by its key.
    PlainBatch(name, columns, sharing: shared, single: query) { arrays, names in
      """
      SELECT wanted.place, found.*
      FROM \(arrays) WITH ORDINALITY AS wanted(\(names), place) CROSS JOIN LATERAL (
        \(query) OFFSET 0
      ) AS found ORDER BY wanted.place
      """
    }
  }

  /// Creates an UPDATE or a DELETE of the rows of each key.
  ///
  /// - Parameters:
  ///   - shared: The number of shared parameters.
  ///   - change: The statement up to WHERE.
  static func change(
    _ name: String, _ columns: [Column], sharing shared: Int, _ change: String,
    where condition: String
  ) -> PlainBatch {
    let source = change.hasPrefix("DELETE") ? "USING" : "FROM"
    return PlainBatch(
      name, columns, sharing: shared, single: "\(change) WHERE \(condition)"
    ) { arrays, names in
      "\(change) \(source) \(arrays) AS wanted(\(names)) WHERE \(condition)"
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
    let values = (["$1"] + shared + columns.map { "wanted.\($0.name)" }).joined(separator: ", ")
    let rows = (["s.id"] + shared + ["wanted.*"]).joined(separator: ", ")
    return PlainBatch(
      name, columns, sharing: common.count + 1,
      single: "INSERT INTO \(table)(\(names)) VALUES (\(values)) \(conflict)"
    ) { arrays, wanted in
      """
      INSERT INTO \(table)(\(names))
      SELECT \(rows) FROM spaces AS s CROSS JOIN \(arrays) AS wanted(\(wanted))
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
  case uuid = "uuid"
}
