import FerryProtocol
import SQLite

extension ReplicaSchema {
  /// The catalogue of missions, as the pull lists bring it: apps may read it with SQL. No trigger
  /// records what is written to it.
  static let missions = """
    CREATE TABLE ferry_missions(
      id TEXT PRIMARY KEY NOT NULL,
      version INTEGER,
      title TEXT,
      summary TEXT,
      items INTEGER,
      size INTEGER,                           -- bytes of all items
      priority INTEGER,
      after TEXT,                             -- missions that come first, blanks between them
      manifest TEXT,                          -- the SHA-256 of its document
      manifestSize INTEGER,
      signature BLOB,
      signer BLOB,
      publishedAt INTEGER                     -- milliseconds since 1970
    ) WITHOUT ROWID;
    """
}

extension TableSchema {
  /// The reserved table of the catalogue. What a later version of Ferry adds to its records is kept
  /// until this version is replaced.
  static let missions = TableSchema(
    name: MissionRecord.table, key: "id",
    columns: [
      "version", "title", "summary", "items", "size", "priority", "after", "manifest",
      "manifestSize", "signature", "signer", "publishedAt",
    ].map { ColumnInfo(name: $0, defaultSQL: nil, isRequired: false) })
}

/// The catalogue of missions on the device.
extension ReplicaFile {
  /// Records that came before this version of Ferry knew what they are.
  func takeKeptMissions() throws {
    let find = try connection.statement("SELECT 1 FROM ferry_kept WHERE tbl = ? LIMIT 1")
    find.bind(1, MissionRecord.table)
    guard try find.first({ _ in true }) != nil else { return }
    try connection.transaction { try applyKept(to: MissionRecord.table) }
  }

  /// A pull of everything did not name these any more: they were retracted, or lost with the
  /// server's history, and are not this device's to give back.
  func removeMissionsNotNamed() throws {
    try connection.execute(
      """
      DELETE FROM ferry_missions WHERE NOT EXISTS (SELECT 1 FROM temp.ferry_named AS n
        WHERE n.tbl = 'ferry_missions' AND n.record = ferry_missions.id)
      """)
  }
}
