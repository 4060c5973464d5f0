import FerryProtocol
import FerrySQLite

/// The unique constraints and indexes of a table of this file, without those on expressions.
struct UniqueKeys {
  /// Columns by their names in the space, with their collations.
  typealias Key = [(column: TableSchema.ColumnInfo, collation: Name)]

  let keys: [Key]

  /// Reads the keys of a table.
  static func read(of table: TableSchema, from connection: SQLiteConnection) throws -> UniqueKeys {
    var keys: [Int64: Key] = [:]
    var unknown = Set<Int64>()
    try connection.prepare(
      """
      SELECT list.seq, part.name, part.coll FROM pragma_index_list(?) AS list,
        pragma_index_xinfo(list.name) AS part
      WHERE list."unique" = 1 AND list.origin <> 'pk' AND part.key = 1 ORDER BY list.seq, part.seqno
      """
    ).forEach(table.local) { row in
      let name = row.isNull(1) ? nil : row.name(1)
      guard let column = table.columns.first(where: { $0.local == name }) else {
        unknown.insert(row.int64(0))
        return
      }
      keys[row.int64(0), default: []].append((column, row.name(2)))
    }
    let sorted = keys.filter { !unknown.contains($0.key) }.sorted { $0.key < $1.key }
    return UniqueKeys(keys: sorted.map(\.value))
  }
}
