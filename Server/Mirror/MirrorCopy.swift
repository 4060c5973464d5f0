import FerryPostgres

/// Fills the table of a comparison with the rows of a replica; all calls block.
struct MirrorCopy {
  private let connection: PostgresConnection
  private let sql: MirrorSQL

  init(_ connection: PostgresConnection, _ sql: MirrorSQL) {
    (self.connection, self.sql) = (connection, sql)
  }

  /// Adds the rows that `each` passes to the argument. Rows that PostgreSQL cannot hold are left
  /// out: they are deferred.
  func fill(_ each: ((MirrorRow) throws -> Void) throws -> Void) throws {
    var batch: [[String?]] = []
    var bytes = 0
    try each { row in
      guard let key = try? sql.table.texts(ofKey: row.key),
        let texts = try? sql.table.texts(ofColumns: row.values ?? [])
      else { return }
      batch.append(key + texts)
      bytes += texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
      guard batch.count == MirrorStep.batchMax || bytes > MirrorStep.batchBytesMax else { return }
      try add(batch)
      (batch, bytes) = ([], 0)
    }
    try add(batch)
  }

  /// Adds rows; if one of them is refused, each half for itself.
  private func add(_ rows: [[String?]]) throws {
    guard !rows.isEmpty else { return }
    var parameters = PostgresParameters()
    for column in sql.table.all.indices {
      parameters.append(PostgresArray<String>(rows.map { $0[column] }))
    }
    try connection.execute("SAVEPOINT ferry_copy")
    do {
      try send(parameters)
      try connection.execute("RELEASE SAVEPOINT ferry_copy")
    } catch let error as PostgresError where error.isAboutRow {
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_copy; RELEASE SAVEPOINT ferry_copy")
      guard rows.count > 1 else { return }
      try add(Array(rows[..<(rows.count / 2)]))
      try add(Array(rows[(rows.count / 2)...]))
    }
  }

  private func send(_ parameters: PostgresParameters) throws {
    _ = try connection.query(.once(ComparisonSQL(sql: sql).fillCopy), parameters)
  }
}
