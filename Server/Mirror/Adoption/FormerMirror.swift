import FerryPlatform
import FerryPostgres
import FerrySQLite
import FerrySyncClient
import Foundation

/// A removed mirror of adopted tables. The file with their last rows stays in the folder: when the
/// tables are adopted again, a comparison separates the company's changes from those of devices.
struct FormerMirror: Codable, Sendable, Equatable {
  /// The part of a table in an adoption; the columns may change.
  private struct Part: Codable, Sendable, Equatable {
    var condition: String?
    var space: SpaceColumn?
  }

  private var server: String
  private var space: String
  private var schema: String
  private var tables: [String: Part]

  init(_ configuration: MirrorConfiguration) {
    (server, space, schema) = (configuration.server, configuration.space, configuration.schema)
    tables = configuration.adoptions.mapValues { Part(condition: $0.condition, space: $0.space) }
  }
}

extension MirrorFolder {
  private var former: URL { URL(filePath: path + "/former.json") }

  /// Keeps the rows of a removed mirror, without the settings and the token.
  func leave(_ configuration: MirrorConfiguration) throws {
    try save(FormerMirror(configuration), in: former)
    for name in ["mirror.json", "replica.db-token"] {
      try? FileManager.default.removeItem(atPath: path + "/" + name)
    }
  }

  /// Returns `true` if the folder has the rows of a removed mirror of the same space and tables.
  func hasFormer(of configuration: MirrorConfiguration) -> Bool {
    guard let data = try? Data(contentsOf: former),
      let known = try? JSONDecoder().decode(FormerMirror.self, from: data)
    else { return false }
    return known == FormerMirror(configuration)
  }

  /// Forgets a removed mirror: the replica belongs to the present one from now on.
  func endFormer() { try? FileManager.default.removeItem(at: former) }

  /// Removes the rows of a removed mirror.
  func removeFormer() throws {
    guard FileManager.default.fileExists(atPath: former.path) else { return }
    try remove()
    try make()
  }
}

extension MirrorFile {
  /// Records the rows that the tables do not have as the file does: a comparison must not take them
  /// for changes of programs.
  ///
  /// - Parameter deferred: rows that the tables cannot hold.
  func leave(deferred: [DeferredRow], _ file: SQLiteConnection) throws {
    try file.transaction {
      try file.execute(
        """
        DELETE FROM "mirror.read"; DELETE FROM "mirror.later"; DELETE FROM "mirror.unsent";
        CREATE TABLE IF NOT EXISTS "mirror.unbrought"(tab TEXT NOT NULL, key TEXT NOT NULL);
        DELETE FROM "mirror.unbrought"
        """)
      let insert = "INSERT INTO \"mirror.unbrought\" VALUES (?, ?)"
      try changes(before: .max, file) { row in
        let table = plan.tables[row.table]
        guard let key = try? table.texts(ofKey: row.key) else { return }
        try file.run(insert, table.name.text, MirrorLedger.RowKeys.text(key))
      }
      for row in deferred {
        try file.run(insert, row.table, MirrorLedger.RowKeys.text(row.key))
        // They are tried again.
        guard let table = plan.table(row.table), let key = try? table.values(ofKey: row.key) else {
          continue
        }
        try mark(table, key, file)
      }
    }
  }

  /// Returns the keys of the rows of a table that it did not have, as PostgreSQL reads arrays.
  func unbrought(_ table: MirrorTable, _ file: SQLiteConnection) throws -> [String] {
    let isThere = try file.exists("SELECT 1 FROM sqlite_master WHERE name = 'mirror.unbrought'")
    guard isThere else { return [] }
    return try file.rows(
      "SELECT key FROM \"mirror.unbrought\" WHERE tab = ?", table.name.text
    ) { $0.text(0) }
  }
}

extension Mirror {
  /// Records the state of the tables of adopted ones in the mirror's file. Returns `false` if the
  /// file or the entry of the mirror is lost.
  static func leave(
    _ configuration: MirrorConfiguration, _ folder: MirrorFolder
  ) async throws -> Bool {
    let path = folder.replica
    guard FileManager.default.fileExists(atPath: path) else { return false }
    return try await PostgresPool.once(configuration.database) { pool in
      try await pool.run { connection in
        guard let ledger = try MirrorLedger(configuration.name, connection) else { return false }
        let deferred = try ledger.deferred(connection, canRetry: true, limit: .max)
        do {
          let file = try SQLiteConnection(path: path, mode: .readWrite)
          let plan = try ReplicaSnapshot.read(file) { snapshot in
            try configuration.plan(try snapshot.schema(), here: Set(try snapshot.tables()))
          }
          guard let plan else { return false }
          try MirrorFile(plan: plan).leave(deferred: deferred, file)
          return true
        } catch is SQLiteError {
          return false
        } catch is MirrorFault {
          return false
        }
      }
    }
  }
}

/// The comparison of a table with the rows that a removed mirror has left.
extension MirrorComparison {
  /// Captures the changes that programs have made since. It runs before a pull, so the space's rules
  /// decide as for a device that was away.
  func compareFormer() async throws {
    let ledger = parts.ledger
    let names = try await parts.pool.run { try ledger.former($0) }
    for (place, sql) in parts.sql.enumerated() where names.contains(sql.table.name.text) {
      for attempt in 1... {
        do {
          try await parts.pool.run { try compareFormer(place, sql, $0) }
          break
        } catch let error as PostgresError where error.isWait && attempt < MirrorAdopter.triesMax {
          try await Task.sleep(for: .milliseconds(500))
        }
      }
    }
  }

  private func compareFormer(
    _ place: Int, _ sql: MirrorSQL, _ connection: PostgresConnection
  ) throws {
    let source = try parts.sides.openFile()
    let unbrought = try parts.file.unbrought(sql.table, source)
    let isWhere: PostgresParameters = [
      .int8(parts.ledger.number), .text(sql.table.name.text),
    ]
    try connection.transaction { connection in
      try connection.execute(
        """
        SET LOCAL statement_timeout = 0; SET LOCAL row_security = off;
        SET LOCAL search_path = pg_catalog, pg_temp
        """)
      try connection.execute(single: sql.makeCopy)
      try MirrorCopy(connection, sql).fill { try parts.file.rows(of: place, source, $0) }
      try connection.execute(single: sql.makeDiffering)
      _ = try connection.query(
        .once(sql.fillDiffering), [.array(PostgresArray(unbrought.map { Optional($0) }))])
      // A program's write in progress is captured before its row is read again.
      _ = try connection.query(.once(sql.lockDiffering))
      try parts.sides.reader?.catchUp(within: LogReader.roundLimit)
      for statement in sql.captureDiffering { try connection.execute(single: statement) }
      _ = try connection.query(
        .once("UPDATE ferry_mirror.adopted SET former = false WHERE mirror = $1 AND tab = $2"),
        isWhere)
    }
    // A program may have inserted a row meanwhile that has counted as deleted.
    try connection.execute(single: sql.captureReturned)
  }
}

extension MirrorLedger {
  /// Returns the tables to compare with the rows of a removed mirror.
  func former(_ connection: PostgresConnection) throws -> Set<String> {
    Set(
      try connection.query(
        .once("SELECT tab FROM ferry_mirror.adopted WHERE mirror = $1 AND former"), [.int8(number)]
      ).map { try $0.text(0) })
  }
}
