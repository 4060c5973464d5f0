import FerryPlatform
import FerryPostgres
import FerryProtocol
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
  fileprivate var renamed: RenamedColumns

  init(_ configuration: MirrorConfiguration) {
    (server, space, schema) = (configuration.server, configuration.space, configuration.schema)
    tables = configuration.adoptions.mapValues { Part(condition: $0.condition, space: $0.space) }
    renamed = configuration.renamed
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
    formerMirror(of: configuration) != nil
  }

  private func formerMirror(of configuration: MirrorConfiguration) -> FormerMirror? {
    guard let data = try? Data(contentsOf: former),
      let known = try? JSONDecoder().decode(FormerMirror.self, from: data)
    else { return nil }
    var asked = FormerMirror(configuration)
    asked.renamed = known.renamed
    return known == asked ? known : nil
  }

  /// Returns the renamed columns of the same mirror, which may have been removed.
  func renamed(of configuration: MirrorConfiguration) throws -> RenamedColumns {
    if exists { return try self.configuration().renamed }
    return formerMirror(of: configuration)?.renamed ?? RenamedColumns()
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
  /// - Parameters:
  ///   - rows: these rows as the tables have them.
  ///   - deferred: rows that the tables cannot hold. They are tried again.
  ///   - former: tables not compared since an earlier removal.
  func leave(
    _ rows: [LeftRow], deferred: [DeferredRow], except former: Set<String>, _ file: SQLiteConnection
  ) throws {
    try file.transaction {
      try file.execute(
        """
        DELETE FROM "mirror.read"; DELETE FROM "mirror.later"; DELETE FROM "mirror.unsent";
        DELETE FROM "mirror.dropped"; DELETE FROM "mirror.lacking"
        """)
      try store(rows, except: former, file)
      for row in deferred {
        guard let table = plan.table(row.table), let key = try? table.values(ofKey: row.key) else {
          continue
        }
        try mark(table, key, file)
      }
    }
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
      let number: Int64? = try await pool.run { connection in
        guard let ledger = try MirrorLedger(configuration.name, connection) else { return nil }
        return try MirrorLog(ledger.number, connection)?.number
      }
      let reader = try number.map {
        try LogReader(
          url: configuration.database, number: $0, folder: folder.path, log: { _, _ in },
          onCaptured: { _ in })
      }
      do {
        let isLeft = try await pool.run { try leave(configuration, path, reader, $0) }
        await reader?.close()
        return isLeft
      } catch {
        await reader?.close()
        throw error
      }
    }
  }

  private static func leave(
    _ configuration: MirrorConfiguration, _ path: String, _ reader: LogReader?,
    _ connection: PostgresConnection
  ) throws -> Bool {
    guard let ledger = try MirrorLedger(configuration.name, connection) else { return false }
    let deferred = try ledger.deferred(connection, canRetry: true, limit: .max)
    let former = try ledger.former(connection)
    do {
      let file = try SQLiteConnection(path: path, mode: .readWrite)
      let plan = try ReplicaSnapshot.read(file) { snapshot in
        try configuration.plan(try snapshot.schema(), here: Set(try snapshot.tables()))
      }
      guard let plan else { return false }
      let rows = try LeftRowReader(configuration, plan, ledger, reader, connection)
      try MirrorFile(plan: plan).leave(
        try rows.read(deferred, MirrorFile(plan: plan), file), deferred: deferred, except: former,
        file)
      return true
    } catch is SQLiteError {
      return false
    } catch is MirrorFault {
      return false
    }
  }
}

/// The comparison of a table with the rows that a removed mirror has left.
extension MirrorComparison {
  /// Captures the changes that programs have made since. It runs before a pull, so the space's rules
  /// decide as for a device that was away.
  ///
  /// - Parameter merged: rows on their way since programs' writes were merged into the file's.
  func compareFormer(
    _ former: [String: MirrorLedger.FormerTable], _ merged: [String: Set<[String?]>]
  ) async throws {
    if former.isEmpty { return }
    for (place, sql) in try await comparable() {
      guard let table = former[sql.table.name.text] else { continue }
      try await parts.pool.runLocking {
        try compareFormer(place, sql, table, merged[sql.table.name.text] ?? [], $0)
      }
    }
  }

  private func compareFormer(
    _ place: Int, _ sql: MirrorSQL, _ former: MirrorLedger.FormerTable,
    _ merged: Set<[String?]>, _ connection: PostgresConnection
  ) throws {
    let following = former.added.map { FollowedRows(parts: parts, sql: sql, added: $0) }
    if let following, !former.hasGap, try following.areDefault(connection) {
      return try parts.ledger.endFormer(sql.table.name, connection)
    }
    let (comparison, recapture) = (ComparisonSQL(sql: sql), RecaptureSQL(sql: sql))
    let source = try parts.sides.openFile()
    // The rows, and those on their way to the table, are of one state of the file.
    try source.execute("BEGIN")
    try connection.transaction { connection in
      try connection.execute(
        """
        SET LOCAL statement_timeout = 0; SET LOCAL row_security = off;
        SET LOCAL search_path = pg_catalog, pg_temp
        """)
      try connection.execute(single: comparison.makeCopy)
      try MirrorCopy(connection, sql).fill { try parts.file.formerRows(of: place, source, $0) }
      let unbrought = try following?.limit(source, except: merged, connection) ?? []
      try connection.execute(single: ComparisonSQL.makeDiffering)
      try connection.execute(single: comparison.fillDiffering)
      try following?.spare(unbrought, connection)
      // A program's write in progress is captured before its row is read again.
      _ = try connection.query(.once(recapture.lockDiffering))
      try parts.sides.reader?.catchUp(within: LogReader.roundLimit)
      try parts.ledger.unsent.sendWhole(of: sql.table.name, connection)
      for statement in recapture.captureDiffering { try connection.execute(single: statement) }
      try parts.ledger.endFormer(sql.table.name, connection)
    }
    // A program may have inserted a row meanwhile that has counted as deleted.
    try connection.execute(single: recapture.captureReturned)
  }
}

extension MirrorLedger {
  /// A table to compare with the rows of before.
  struct FormerTable: Sendable, Equatable {
    /// The columns added by a followed change of the definition; `nil` for a removed mirror.
    var added: [Name]?
    /// True if programs' writes before the change may not be captured.
    var hasGap: Bool
  }

  func formerTables(_ connection: PostgresConnection) throws -> [String: FormerTable] {
    let rows = try connection.query(
      .once("SELECT tab, added, gap FROM ferry_mirror.adopted WHERE mirror = $1 AND former"),
      [.int8(number)]
    ).map { row in
      let added =
        row.isNull(1)
        ? nil : try row.array(1, of: String.self).compactMap { $0.map { Name($0) } }
      return (try row.text(0), FormerTable(added: added, hasGap: try row.bool(2)))
    }
    return Dictionary(rows) { $1 }
  }

  func endFormer(_ table: Name, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.adopted SET former = false, added = NULL, gap = false
        WHERE mirror = $1 AND tab = $2
        """), [.int8(number), .text(table.text)])
  }

  /// Returns the tables to compare with the rows of a removed mirror.
  func former(_ connection: PostgresConnection) throws -> Set<String> {
    Set(
      try connection.query(
        .once("SELECT tab FROM ferry_mirror.adopted WHERE mirror = $1 AND former"), [.int8(number)]
      ).map { try $0.text(0) })
  }
}
