import FerryPostgres
import FerryProtocol

/// The partitions of an adopted table. A statement runs the triggers of the table that it names
/// alone, so each partition has all triggers. In the log, rows have the names of their partitions.
struct MirrorPartitions: Sendable, Equatable {
  /// The table and all partitions, of all levels, with quoted names.
  var relations: [String]
  /// The identifier of the table: a detached partition keeps the triggers.
  var root: Int64

  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.partitions(  -- adopted tables with partitions
      mirror bigint NOT NULL, tab text NOT NULL, part oid NOT NULL,
      attached text,                        -- the transactions that attached it
      compared boolean NOT NULL,            -- false: the space may lack rows of the partition
      PRIMARY KEY (mirror, tab, part));
    """

  /// Returns the transactions that attached a partition and the tables above it. A partition that was
  /// detached for a moment has others.
  fileprivate static func attached(_ part: String) -> String {
    """
    (SELECT string_agg(i.xmin::text, ',' ORDER BY i.inhrelid) FROM pg_catalog.pg_inherits i
      WHERE i.inhrelid IN (SELECT relid FROM pg_partition_ancestors(\(part)) a(relid)))
    """
  }

  /// Reads the partitions of a table; `nil` if it is not divided.
  init?(_ sql: MirrorSQL, _ connection: PostgresConnection) throws {
    guard sql.table.adoption?.isPartitioned == true else { return nil }
    let rows = try connection.query(
      .once(
        """
        SELECT format('%I.%I', n.nspname, c.relname), to_regclass($1)::oid::bigint
        FROM pg_partition_tree(to_regclass($1)) t JOIN pg_catalog.pg_class c ON c.oid = t.relid
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY t.level, 1
        """), [.text(sql.target)])
    guard let root = try rows.first?.int8(1) else { return nil }
    self.root = root
    relations = try rows.map { try $0.text(0) }
  }

  /// Enters partitions with new triggers. Writes that named a later one before were not captured.
  static func enter(_ sql: MirrorSQL, _ connection: PostgresConnection) throws {
    let found = try sql.capture == .log ? Self(sql, connection) : sql.capture.partitions
    guard let partitions = found else { return }
    let place: PostgresParameters = [.int8(sql.mirror), .text(sql.table.name.text)]
    var parameters = place
    parameters.append(PostgresArray(partitions.relations.map { Optional($0) }))
    let new = try connection.query(
      .once(
        """
        WITH known AS (SELECT part FROM ferry_mirror.partitions WHERE mirror = $1 AND tab = $2)
        SELECT place, NOT EXISTS (SELECT FROM known)
        FROM unnest($3::text[]) WITH ORDINALITY r(relation, place)
        WHERE relation::regclass NOT IN (SELECT part FROM known)
        """), parameters)
    if new.isEmpty { return }
    let rows = try new.map { row in
      let relation = partitions.relations[Int(try row.int8(0)) - 1]
      // All rows of the first ones are uploaded, or compared with those of a former mirror.
      let isCompared = try row.bool(1) ? "true" : "NOT EXISTS (SELECT FROM \(relation))"
      return "(\(quoted(postgres: relation))::regclass, \(isCompared))"
    }
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.partitions(mirror, tab, part, attached, compared)
        SELECT $1, $2, part, \(attached("part")), compared
        FROM (VALUES \(rows.joined(separator: ", "))) r(part, compared)
        """), place)
  }
}

extension MirrorLedger {
  /// A look at the partitions of adopted tables.
  struct PartitionsLook: Sendable, Equatable {
    /// Partitions without triggers.
    var hasNew: Bool
    /// Partitions whose rows may be missing in the space, or are gone from the table.
    var hasUncompared: Bool
  }

  func lookAtPartitions(_ connection: PostgresConnection) throws -> PartitionsLook {
    let row = try connection.query(
      PostgresStatement(
        "mirror_partitions",
        """
        WITH known AS (SELECT * FROM ferry_mirror.partitions WHERE mirror = $1),
          present AS (SELECT r.tab, t.relid::oid AS part,
              \(MirrorPartitions.attached("t.relid")) AS attached
            FROM ferry_mirror.recorded r
            CROSS JOIN LATERAL pg_partition_tree(to_regclass(r.target)) t WHERE r.mirror = $1
              AND r.tab IN (SELECT tab FROM known))
        SELECT EXISTS (SELECT tab, part FROM present EXCEPT SELECT tab, part FROM known),
          EXISTS (SELECT FROM known WHERE NOT compared)
            OR EXISTS (SELECT tab, part, attached FROM known
              EXCEPT SELECT tab, part, attached FROM present)
        """), [.int8(number)]
    ).first
    return PartitionsLook(
      hasNew: try row?.bool(0) ?? false, hasUncompared: try row?.bool(1) ?? false)
  }

  /// Returns the partitions to forget or to record after a comparison.
  func uncomparedPartitions(_ connection: PostgresConnection) throws -> [Int64] {
    // Writes to a partition that was detached for a moment were not captured.
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.partitions p SET attached = a.attached, compared = false
        FROM (SELECT tab, part, \(MirrorPartitions.attached("part::regclass")) AS attached
          FROM ferry_mirror.partitions WHERE mirror = $1) a
        WHERE p.mirror = $1 AND p.tab = a.tab AND p.part = a.part
          AND p.attached IS DISTINCT FROM a.attached
        """), [.int8(number)])
    return try connection.query(
      .once(
        """
        SELECT p.part::bigint FROM ferry_mirror.partitions p
          JOIN ferry_mirror.recorded r ON r.mirror = p.mirror AND r.tab = p.tab
        WHERE p.mirror = $1 AND (NOT p.compared OR NOT EXISTS (
          SELECT FROM pg_partition_tree(to_regclass(r.target)) t WHERE t.relid = p.part))
        """), [.int8(number)]
    ).map { try $0.int8(0) }
  }

  /// Records a comparison of all rows, begun after ``uncomparedPartitions(_:)``.
  func recordCompared(partitions: [Int64], _ connection: PostgresConnection) throws {
    let parts = PostgresArray<Int64>(partitions.map { Optional($0) })
    try connection.transaction { connection in
      _ = try connection.query(
        .once(
          """
          UPDATE ferry_mirror.partitions SET compared = true
          WHERE mirror = $1 AND part::bigint = ANY($2)
          """), [.int8(number), .array(parts)])
      _ = try connection.query(
        .once(
          """
          DELETE FROM ferry_mirror.partitions p USING ferry_mirror.recorded r
          WHERE r.mirror = p.mirror AND r.tab = p.tab AND p.mirror = $1
            AND p.part::bigint = ANY($2) AND NOT EXISTS (
              SELECT FROM pg_partition_tree(to_regclass(r.target)) t WHERE t.relid = p.part)
          """), [.int8(number), .array(parts)])
    }
  }
}

/// The partitions of adopted tables, in the rounds of a mirror.
extension MirrorRounds {
  private var isPartitioned: Bool {
    configuration.adoptions.values.contains(where: \.isPartitioned)
  }

  /// Returns `true` if the partitions are others than in the last round.
  func hasOtherPartitions() async throws -> Bool {
    guard isPartitioned else { return false }
    let ledger = ledger
    let look = try await pool.run { try ledger.lookAtPartitions($0) }
    return look.hasNew || look.hasUncompared
  }

  /// Compares all rows if rows came with a partition, or went with one: no trigger has captured it.
  /// The tables' rows win, unless the space has changed the row as well.
  func comparePartitions(_ file: MirrorFile) async throws {
    guard isPartitioned else { return }
    let ledger = ledger
    let parts = try await pool.run { try ledger.uncomparedPartitions($0) }
    if parts.isEmpty { return }
    sides.log("compare", "a table has other partitions")
    try await MirrorIntake(parts: self.parts(file)).readPresent()
    _ = try await MirrorComparison(parts: self.parts(file)).compare(
      repairing: .space, withCaptured: true, sparesNoted: true)
    try await pool.run { try ledger.recordCompared(partitions: parts, $0) }
  }
}
