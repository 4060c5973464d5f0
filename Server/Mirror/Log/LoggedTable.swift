import FerryPostgres
import FerryProtocol
import Foundation

/// A mirrored table as the reader of the log needs it. A group's is stored in PostgreSQL: one reader
/// captures for all mirrors of the group, also for those that do not run.
struct LoggedTable: Codable, Sendable, Hashable {
  var schema: String
  var name: String
  /// The quoted name, qualified by the schema.
  var target: String
  var isPartitioned = false
  /// The column with the space of a row; `nil` if all rows may be of each mirror.
  var column: String?
  /// The columns that the SQL needs of a row.
  var needed: [String] = []
  /// True if a condition may need any column.
  var hasCondition = false
  /// The SQL of the captured writes; empty if only the values of the column count.
  var writes = ""
  /// The SQL of the columns whose writes the space adds up or merges.
  var merging = ""

  /// The place of a relation's table.
  var place: [String] { [schema, name] }

  /// Returns the columns that the SQL needs of a row.
  ///
  /// - Parameter logged: the columns with values in the log.
  func needed(of logged: [Name]) -> Set<Name> {
    Set(needed.map { Name($0) }).union(hasCondition ? logged : [])
  }

  /// Names a mirror's table in marks; see ``MirrorSQL/function``.
  func function(of mirror: Int64) -> String { MirrorSQL.function(of: mirror, name) }
}

/// A mirror for which a reader captures from the log, with the tables; pure.
struct LoggedMirror: Sendable, Equatable {
  var mirror: Int64
  /// The value of the space column; `nil` without one.
  var value: String?
  /// True if rows of adopted tables may not be in the space yet.
  var isAdopting = false
  var tables: [LoggedTable]

  init(_ mirror: Int64, _ tables: [LoggedTable]) { (self.mirror, self.tables) = (mirror, tables) }

  /// - Parameter isOfGroup: whether the reader finds the rows of the mirror by the space column.
  init(_ mirror: Int64, _ sql: [MirrorSQL], isOfGroup: Bool) {
    self.mirror = mirror
    value = isOfGroup ? sql.lazy.compactMap(\.table.adoption?.space?.value).first : nil
    isAdopting = sql.contains { $0.isAdopting && $0.table.adoption != nil }
    tables = sql.map { LoggedRowsSQL(sql: $0, isOfGroup: isOfGroup).table }
  }

  /// The mirror of a group, or the group itself, from its row.
  init(_ row: PostgresRow) throws {
    (mirror, value) = (try row.int8(0), try row.ifPresent(1, as: String.self))
    isAdopting = try row.bool(2)
    tables = try JSONDecoder().decode([LoggedTable].self, from: Data(try row.text(3).utf8))
  }

  /// The stored form of the tables; the same tables have the same text.
  static func text(_ tables: [LoggedTable]) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(tables), as: UTF8.self)
  }
}

/// The mirrors that capture from the log, in PostgreSQL. All calls block.
enum LogMembers {
  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.logged(  -- mirrors and groups that capture from a log
      mirror bigint PRIMARY KEY,
      log bigint NOT NULL,                  -- the mirror's own, or the group's
      compared bigint NOT NULL DEFAULT 0,   -- the log's gaps before the last comparison of all rows
      version bigint GENERATED ALWAYS AS IDENTITY,
      value text,                           -- of the space column
      adopting boolean NOT NULL DEFAULT false,
      tables text NOT NULL DEFAULT '[]');   -- as the reader of a group's log needs them
    """

  /// The first number of an advisory lock; the second one is the group's. The reader shares it as
  /// long as a transaction captures. So a mirror joins or leaves between two of them.
  private static let lock = 7_310_596

  /// The longest wait for the reader.
  private static let lockWaitMax = quoted(postgres: "500ms")

  /// Makes the reader of a log wait until the end of the transaction. Call it before locks of
  /// tables: programs would wait for the reader.
  static func exclude(reader log: Int64, _ connection: PostgresConnection) throws {
    try connection.execute(single: "SET LOCAL lock_timeout = \(lockWaitMax)")
    _ = try connection.query(.once("SELECT pg_advisory_xact_lock(\(lock), \(-log))"))
    try connection.execute("SET LOCAL lock_timeout = '2s'")
  }

  /// Enters a mirror of a group, or changes the entry. All rows written before are to be compared or
  /// uploaded.
  ///
  /// The reader waits for the end of the transaction: the entries' versions rise in the order of
  /// the commits.
  static func enter(
    _ member: LoggedMirror, in log: Int64, _ connection: PostgresConnection
  ) throws {
    try exclude(reader: log, connection)
    let entered = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.logged AS d (mirror, log, compared, value, adopting, tables)
        SELECT $1, mirror, gaps, $3, $4, $5 FROM ferry_mirror.logs WHERE mirror = $2
        ON CONFLICT (mirror) DO UPDATE SET value = excluded.value, adopting = excluded.adopting,
          tables = excluded.tables, version = DEFAULT
        RETURNING d.mirror
        """),
      [
        .int8(member.mirror), .int8(log), .text(member.value), .bool(member.isAdopting),
        .text(try LoggedMirror.text(member.tables)),
      ])
    guard entered.isEmpty else { return }
    throw MirrorFault(
      description: "the group reads no log: make it again with `ferryd mirror adopt`")
  }

  /// Returns `true` if a mirror has joined the log.
  static func contains(_ mirror: Int64, _ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT FROM ferry_mirror.logged WHERE mirror = $1"), [.int8(mirror)]
    ).isEmpty
  }

  /// Returns the entry of a mirror or a group; `nil` if there is none.
  static func member(
    _ mirror: Int64, _ connection: PostgresConnection
  ) throws -> LoggedMirror? {
    try connection.query(
      .once("SELECT mirror, value, adopting, tables FROM ferry_mirror.logged WHERE mirror = $1"),
      [.int8(mirror)]
    ).first.map { try LoggedMirror($0) }
  }

  /// Removes a mirror's entry.
  static func remove(_ mirror: Int64, _ connection: PostgresConnection) throws {
    try connection.execute(single: "DELETE FROM ferry_mirror.logged WHERE mirror = \(mirror)")
  }

  /// The mirrors of a group as a reader knows them.
  struct Known: Sendable, Equatable {
    fileprivate(set) var mirrors: [Int64: LoggedMirror] = [:]
    fileprivate var version: Int64 = -1
  }

  /// Reads the changed entries of a group's log until the end of the present transaction. Returns
  /// `false` if there are none.
  static func refresh(
    _ known: inout Known, of log: Int64, _ connection: PostgresConnection
  ) throws -> Bool {
    _ = try connection.query(.once("SELECT pg_advisory_xact_lock_shared(\(lock), \(-log))"))
    let look = try connection.query(
      .once(
        "SELECT count(*), coalesce(max(version), 0) FROM ferry_mirror.logged WHERE log = $1"),
      [.int8(log)]
    ).first
    let (count, version) = (try look?.int8(0) ?? 0, try look?.int8(1) ?? 0)
    if known.version == version, known.mirrors.count == count { return false }
    try read(&known, log, connection)
    if known.mirrors.count != count {
      known = Known()
      try read(&known, log, connection)
    }
    known.version = version
    return true
  }

  private static func read(
    _ known: inout Known, _ log: Int64, _ connection: PostgresConnection
  ) throws {
    let rows = try connection.query(
      .once(
        """
        SELECT mirror, value, adopting, tables FROM ferry_mirror.logged
        WHERE log = $1 AND version > $2
        """), [.int8(log), .int8(known.version)])
    for row in rows {
      let member = try LoggedMirror(row)
      known.mirrors[member.mirror] = member
    }
  }
}

/// The tables of a log with the mirrors to capture for; pure.
struct LoggedParts: Sendable {
  /// A table of mirrors with the same definition: the schemas of two spaces may differ.
  struct Part: Sendable, Equatable {
    var table: LoggedTable
    var mirrors: [Member] = []
  }

  struct Member: Sendable, Equatable {
    var mirror: Int64
    var value: String?
    var isAdopting: Bool
  }

  private(set) var parts: [Part] = []
  /// The parts of each table, by schema and name.
  private(set) var places: [[String]: [Int]] = [:]
  /// The tables named in marks.
  private(set) var functions: [String: (part: Int, mirror: Int64)] = [:]
  /// The columns whose values name spaces, by schema and name.
  private(set) var columns: [[String]: LoggedTable] = [:]
  /// The tables with partitions, by schema and name.
  private(set) var partitioned: Set<[String]> = []
  /// All mirrors.
  let mirrors: [Int64]

  init(_ mirrors: [LoggedMirror]) {
    let sorted = mirrors.sorted { $0.mirror < $1.mirror }
    self.mirrors = sorted.map(\.mirror)
    var known: [LoggedTable: Int] = [:]
    for mirror in sorted {
      let member = Member(
        mirror: mirror.mirror, value: mirror.value, isAdopting: mirror.isAdopting)
      for table in mirror.tables {
        if table.isPartitioned { partitioned.insert(table.place) }
        // The group itself.
        if table.writes.isEmpty {
          places[table.place, default: []] += []
          if table.column != nil { columns[table.place] = table }
          continue
        }
        let part = known[table] ?? parts.count
        if known.updateValue(part, forKey: table) == nil {
          parts.append(Part(table: table))
          places[table.place, default: []].append(part)
        }
        parts[part].mirrors.append(member)
        functions[table.function(of: mirror.mirror)] = (part, mirror.mirror)
      }
    }
  }
}
