import FerryProtocol
import FerrySQLite

extension ReplicaSchema {
  /// The catalogue of missions from the pull lists: apps may read it with SQL. No trigger records
  /// writes to it.
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
      publishedAt INTEGER,                    -- milliseconds since 1970
      kind TEXT,                              -- 'bundle' (SPEC.md §31), or NULL
      rollout INTEGER,                        -- of a bundle, in hundredths of a percent
      minShell TEXT,
      withdrawnAt INTEGER                     -- milliseconds since 1970
    ) WITHOUT ROWID;
    """
}

extension TableSchema {
  /// Returns the reserved table of the catalogue. Members added by a later version of Ferry are
  /// kept for that version.
  static func missions(in space: SQLNamespace) -> TableSchema {
    TableSchema(
      name: MissionRecord.table, local: Name(space.name(MissionRecord.table.text)),
      keys: [KeyColumn(local: "id", type: "TEXT")],
      columns: [
        "version", "title", "summary", "items", "size", "priority", "after", "manifest",
        "manifestSize", "signature", "signer", "publishedAt", "kind", "rollout", "minShell",
        "withdrawnAt",
      ].map { ColumnInfo(name: $0, local: $0, defaultSQL: nil, isRequired: false) })
  }
}

/// Records of the catalogue that were unreadable for the version of Ferry that received them.
struct DeferredMissions {
  let file: ReplicaFile

  /// Applies the records readable now.
  func apply() throws {
    let connection = file.connection
    guard
      try connection.exists("SELECT 1 FROM ferry_kept WHERE tbl = ? LIMIT 1", MissionRecord.table)
    else { return }
    try connection.transaction { try file.keptRetry.apply([.unknown(in: MissionRecord.table)]) }
  }
}
