import FerryProtocol
import FerrySQLite

/// Records written by a pass, and the references between them: `temp.ferry_written`. They show the
/// records without a parent if some are left out.
struct WrittenRecords {
  private let connection: SQLiteConnection
  private let insert: SQLiteStatement

  init(on connection: SQLiteConnection) throws {
    self.connection = connection
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS temp.ferry_written(
        id INTEGER PRIMARY KEY, tbl TEXT NOT NULL, record TEXT NOT NULL, is_new INTEGER NOT NULL,
        UNIQUE(tbl, record));
      DELETE FROM temp.ferry_written
      """)
    insert = try connection.statement(
      "INSERT OR IGNORE INTO temp.ferry_written(tbl, record, is_new) VALUES (?, ?, ?)")
  }

  /// Adds a record before the pass writes it for the first time.
  func add(_ key: RecordKey, isNew: Bool) throws {
    try insert.run(key.table, key.record, Int64(isNew ? 1 : 0))
  }

  /// Returns the written records that need one of these, over any number of steps. A record with an
  /// earlier row needs no other to keep it.
  func dependants(
    of records: [RecordKey], _ links: [ForeignKey],
    parent: (ForeignKey) throws -> TableSchema?
  ) throws -> DependentRecords<RecordKey> {
    var references: [(child: Int64, parent: Int64)] = []
    for link in links {
      guard let parent = try parent(link) else { continue }
      references += try self.references(to: parent, by: link)
    }
    let roots = try records.compactMap { key in
      try connection.first(
        "SELECT id FROM temp.ferry_written WHERE tbl = ? AND record = ?", key.table, key.record
      ) { $0.int64(0) }
    }
    var numbers = DependentRecords(references: references)
    return DependentRecords(
      references: try numbers.references(from: roots).compactMap { child, parent in
        guard let child = try key(child), let parent = try key(parent) else { return nil }
        return (child, parent)
      })
  }

  private func references(
    to parent: TableSchema, by link: ForeignKey
  ) throws -> [(child: Int64, parent: Int64)] {
    let child = link.child
    do {
      return try connection.rows(
        """
        SELECT cw.id, pw.id FROM temp.ferry_written AS cw
        CROSS JOIN \(quoted(child.local)) AS c CROSS JOIN \(quoted(parent.local)) AS p
        CROSS JOIN temp.ferry_written AS pw
        WHERE cw.tbl = ?1 AND \(child.has(record: "cw.record", in: "c"))
          AND \(link.match())
          AND pw.tbl = ?2 AND pw.record = \(parent.record(of: "p")) AND pw.is_new = 1
        """, child.name, parent.name
      ) { ($0.int64(0), $0.int64(1)) }
    } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
      // The foreign key names a column that does not exist: no row refers by it.
      return []
    }
  }

  private func key(_ number: Int64) throws -> RecordKey? {
    try connection.first("SELECT tbl, record FROM temp.ferry_written WHERE id = ?", number) {
      RecordKey(table: $0.name(0), record: $0.name(1))
    }
  }
}
