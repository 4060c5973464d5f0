import FerryPostgres
import FerryProtocol

/// The statements for the columns of tables, each for any number of columns.
enum PostgresColumns {
  private static let find = PostgresStatement(
    "columns",
    """
    SELECT found.tbl, found.name FROM unnest($2::text[], $3::text[]) AS wanted(tbl, name)
    CROSS JOIN LATERAL (
      SELECT c.tbl, c.name FROM table_columns AS c
      WHERE c.space = $1 AND c.tbl = wanted.tbl AND c.name = wanted.name OFFSET 0
    ) AS found
    """)

  /// The numbers of counted columns.
  private static let counts = PostgresStatement(
    "columns_count",
    """
    SELECT wanted.tbl, found.number FROM unnest($2::text[]) AS wanted(tbl) CROSS JOIN LATERAL (
      SELECT count(*) AS number FROM table_columns AS c
      WHERE c.space = $1 AND c.tbl = wanted.tbl AND NOT c.declared
    ) AS found
    """)

  private static let save = PostgresStatement(
    "columns_save",
    """
    INSERT INTO table_columns(space, tbl, name, declared)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::text[], $3::text[], $4::boolean[]) AS u
    WHERE s.id = $1
    ON CONFLICT DO NOTHING
    """)

  /// Adds the look-up of columns written by packets.
  static func addLookUp(
    of columns: [Name: Set<Name>], in space: Int64, to pipeline: inout PostgresPipeline
  ) {
    var (tables, names) = (PostgresArray<String>(), PostgresArray<String>())
    for (table, wanted) in columns.sorted(by: { $0.key < $1.key }) {
      for name in wanted.sorted() {
        tables.append(utf8: table.utf8)
        names.append(utf8: name.utf8)
      }
    }
    pipeline.add(find, [.int8(space), .array(tables), .array(names)])
  }

  /// Loads the missing columns.
  static func load(
    _ columns: [Name: Set<Name>], besides found: PostgresRows, in space: Int64,
    into context: inout IngestContext, on connection: PostgresConnection
  ) throws {
    var new = columns
    for row in found { new[try row.name(0)]?.remove(try row.name(1)) }
    new = new.filter { !$0.value.isEmpty }
    if new.isEmpty { return }
    var tables = PostgresArray<String>()
    for table in new.keys.sorted() { tables.append(utf8: table.utf8) }
    for row in try connection.query(counts, [.int8(space), .array(tables)]) {
      let table = try row.name(0)
      context.addNewColumns(new[table] ?? [], of: table, besides: Int(try row.int8(1)))
    }
  }

  /// Adds new columns of tables.
  static func add(
    _ rows: [IngestEffects.ColumnRow], in space: Int64, to pipeline: inout PostgresPipeline
  ) {
    if rows.isEmpty { return }
    var tables = PostgresArray<String>(reserving: rows.count)
    var names = PostgresArray<String>(reserving: rows.count)
    var declared = PostgresArray<Bool>(reserving: rows.count)
    for row in rows {
      tables.append(utf8: row.table.utf8)
      names.append(utf8: row.name.utf8)
      declared.append(row.isDeclared)
    }
    pipeline.add(save, [.int8(space), .array(tables), .array(names), .array(declared)])
  }
}
