import FerryPostgres
import FerryProtocol

/// Makes the tables and triggers of a mirror in PostgreSQL; all calls block.
struct MirrorTables {
  let connection: PostgresConnection
  let configuration: MirrorConfiguration

  /// Enters the mirror in the ledger. Returns the number, and `true` if the mirror is new.
  ///
  /// - Parameter again: whether an entry of the same mirror may be there after an interrupted
  ///   creation.
  /// - Throws: ``MirrorFault`` if the database has another mirror of the name.
  func enter(again: Bool) throws -> (number: Int64, isNew: Bool) {
    // Two concurrent ones would both create the schema.
    try connection.execute("SELECT pg_advisory_xact_lock(7310593)")
    try connection.execute(MirrorLedger.tables)
    let known = try connection.query(
      .once(
        "SELECT number FROM ferry_mirror.mirrors WHERE name = $1 AND space = $2 AND schema = $3"),
      names)
    if again, let number = try known.first?.int8(0) { return (number, false) }
    let made = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES ($1, $2, $3)
        ON CONFLICT (name) DO NOTHING RETURNING number
        """), names)
    guard let number = try made.first?.int8(0) else {
      throw MirrorFault.taken(configuration.name)
    }
    return (number, true)
  }

  private var names: PostgresParameters {
    [.text(configuration.name), .text(configuration.space), .text(configuration.schema)]
  }

  // MARK: Tables of others

  /// A table with the name of a table in the space, unavailable to the mirror.
  struct ForeignTable: Sendable, CustomStringConvertible {
    var name: Name
    var description: String
  }

  /// Returns the tables of a plan from other origins than this mirror, with rows or other types.
  func foreign(in plan: MirrorPlan, _ number: Int64) throws -> [ForeignTable] {
    let own = plan.tables.filter { $0.adoption == nil }.map {
      MirrorSQL(table: $0, schema: configuration.schema, mirror: number)
    }
    // The publication may have been dropped.
    let logged =
      try MirrorLog(number, connection) == nil
      ? ""
      : """
      AND NOT EXISTS (SELECT FROM ferry_mirror.identities i
        WHERE i.mirror = \(number) AND i.relation = to_regclass(target))
      """
    let unknown = try connection.query(
      .once(
        """
        SELECT place FROM unnest($1::text[], $2::text[]) WITH ORDINALITY t(target, function, place)
        WHERE to_regclass(target) IS NOT NULL AND to_regproc(function) IS NULL
          -- Under the log, an own table has no trigger.
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_publication_rel p
            JOIN pg_catalog.pg_publication b ON b.oid = p.prpubid
            WHERE b.pubname = $3 AND p.prrelid = to_regclass(target))
          \(logged)
        """),
      [
        .array(PostgresArray(own.map { Optional($0.target) })),
        .array(PostgresArray(own.map { Optional($0.function) })),
        .text(MirrorLog.publication(number)),
      ]
    ).map { own[Int(try $0.int8(0)) - 1] }
    return try unknown.compactMap { sql in
      guard let fault = try fault(of: sql) else { return nil }
      return ForeignTable(
        name: sql.table.name,
        description: "table \(configuration.schema).\(sql.table.name) \(fault); a mirror begins "
          + "with tables that are empty or absent, or adopts them: see `ferryd mirror adopt`")
    }
  }

  /// Returns the reason if the mirror cannot use an existing table.
  private func fault(of sql: MirrorSQL) throws -> String? {
    if let fault = try columnFault(of: sql) { return fault }
    let key = try connection.query(
      .once(
        """
        SELECT attname::text FROM pg_catalog.pg_index JOIN pg_catalog.pg_attribute
          ON attrelid = indrelid AND attnum = ANY(indkey)
        WHERE indrelid = to_regclass($1) AND indisprimary
        """), [.text(sql.target)]
    ).map { Name(try $0.text(0)) }
    guard key.sorted() == sql.table.key.map(\.name).sorted() else {
      return "has another primary key"
    }
    do {
      let first = try connection.query(.once("SELECT FROM \(sql.target) LIMIT 1"))
      return first.isEmpty ? nil : "has rows"
    } catch {
      guard error.kind == .server else { throw error }
      return "cannot be read (\(error.message))"
    }
  }

  /// Returns the first column that does not fit. Columns beside the key may be absent: they are
  /// added.
  private func columnFault(of sql: MirrorSQL) throws -> String? {
    let columns = sql.table.all
    let found = try connection.query(
      .once(
        """
        SELECT format_type(atttypid, NULL), atttypid = to_regtype(type)
        FROM unnest($2::text[], $3::text[]) WITH ORDINALITY c(name, type, place)
          LEFT JOIN pg_catalog.pg_attribute
          ON attrelid = to_regclass($1) AND attname = name AND NOT attisdropped
        ORDER BY place
        """),
      [
        .text(sql.target), .array(PostgresArray(columns.map { Optional($0.name.text) })),
        .array(PostgresArray(columns.map { Optional($0.type.rawValue) })),
      ])
    for (row, column) in zip(found, columns) {
      guard let type = try row.ifPresent(0, as: String.self) else {
        if sql.table.key.contains(column) { return "has no column \(column.name)" }
        continue
      }
      guard try row.bool(1) else { return "has a column \(column.name) of the type \(type)" }
    }
    return nil
  }

  // MARK: Making

  /// Makes the tables as they should be, unless they are. A company's tables get triggers only.
  ///
  /// - Parameters:
  ///   - mustBeEmpty: whether the mirror is new.
  ///   - followed: tables with changed definitions, followed by the plan.
  /// - Returns: Indexes and constraints not permitted by the rows of the tables, with the reason.
  /// - Throws: ``MirrorFault`` if the mirror is new and a table is another's.
  @discardableResult
  func make(
    _ plan: MirrorPlan, _ number: Int64, mustBeEmpty: Bool = false,
    following followed: [FollowedTable] = []
  ) throws -> [String] {
    let isAdopting = try MirrorLedger(number: number).isAdopting(connection)
    let group = try configuration.group(connection)
    let logGroup = configuration.capture == .log ? group : nil
    var sql = try plan.tables.map { table in
      var sql = MirrorSQL(
        table: table, schema: configuration.schema, mirror: number, isAdopting: isAdopting)
      sql.capture = try way(of: sql, group)
      return sql
    }
    let isLogged = sql.contains { $0.capture == .log }
    if isLogged, logGroup == nil { try MirrorLog.enter(number, connection) }
    let member = logGroup.map { _ in LoggedMirror(number, sql, isOfGroup: true) }
    let own = sql.filter { $0.table.adoption == nil }.map(MirrorDefinition.init)
    let schema = MirrorSQL.unlessPresent(schema: Name(configuration.schema))
    let tables =
      (own.isEmpty ? [] : [schema]) + own.flatMap(\.statements)
      + sql.filter { $0.view != nil }.map { ViewSQL(sql: $0).makeCopy }
    let parts = own.flatMap(\.parts) + own.flatMap(\.references)
    var capture = try captures(sql, number, logGroup)
    let logged = try member.map { [try LoggedMirror.text($0.tables)] } ?? []
    let layout =
      (tables + parts.map(\.statement) + capture + logged + ["adopting: \(isAdopting)"])
      .joined(separator: ";\n")
    let known = try connection.query(
      .once("SELECT FROM ferry_mirror.mirrors WHERE number = $1 AND layout = $2"),
      [.int8(number), .text(layout)])
    guard known.isEmpty else { return [] }
    if mustBeEmpty, let foreign = try foreign(in: plan, number).first {
      throw MirrorFault(description: foreign.description)
    }
    let members = GroupMembers(connection: connection)
    if group != nil, !isLogged {
      try members.lock(sql.map(\.function))
      sql = try sql.map(members.joined)
      capture = try captures(sql, number, logGroup)
    }
    if let logGroup {
      // Before the tables: no program waits for the reader.
      try LogMembers.exclude(reader: -logGroup, connection)
    }
    try lock(sql, isLogged: isLogged)
    if logGroup != nil, try !LogMembers.contains(number, connection) {
      // The reader has captured all former writes for the others. The mirror gets the later ones.
      try TableLocks.lock(sql.map(\.target), .writers, connection)
    }
    if !isLogged {
      // Writes of the former functions end before.
      let targets = sql.filter { sql in followed.contains { $0.name == sql.table.name } }
      try TableLocks.lock(targets.map(\.target), .writers, connection)
      // A lock of a table needs a right on the whole of it.
      for sql in targets where sql.table.limits != WriteLimits() {
        try sql.lockWriters(connection)
      }
    }
    for statement in tables { try connection.execute(single: statement) }
    let absent = try parts.compactMap(make)
    for sql in sql { try connection.execute(single: sql.fits) }
    for statement in capture { try connection.execute(single: statement) }
    let ledger = MirrorLedger(number: number)
    let shapes = Dictionary(followed.map { ($0.name, $0.shape) }) { $1 }
    try ledger.enter(sql, shapes: shapes, connection)
    try ledger.adapt(to: followed, connection)
    try members.publish(sql)
    if let member, let logGroup { try LogMembers.enter(member, in: -logGroup, connection) }
    for sql in sql { try MirrorPartitions.enter(sql, connection) }
    if absent.isEmpty {
      _ = try connection.query(
        .once("UPDATE ferry_mirror.mirrors SET layout = $2 WHERE number = $1"),
        [.int8(number), .text(layout)])
    }
    return absent
  }

  private func way(of sql: MirrorSQL, _ group: Int64?) throws -> TableCapture {
    if configuration.capture == .log { return .log }
    if let partitions = try MirrorPartitions(sql, connection) { return .partitions(partitions) }
    guard let group, let space = sql.table.adoption?.space else { return .triggers }
    return .group(group, by: space)
  }

  private func captures(
    _ sql: [MirrorSQL], _ number: Int64, _ logGroup: Int64?
  ) throws -> [String] {
    guard sql.contains(where: { $0.capture == .log }) else {
      return sql.flatMap { $0.triggers?.statements ?? [] }
    }
    let relations = try sql.flatMap {
      try MirrorPartitions($0, connection)?.relations ?? [$0.target]
    }
    // The group has published the tables.
    if let logGroup { return relations.map(LogIdentities(mirror: -logGroup).makeFull) }
    return MirrorLog.capture(sql.map(\.target), relations, number)
  }

  /// Locks the tables without all of their triggers, or without their whole former rows in the log.
  private func lock(_ sql: [MirrorSQL], isLogged: Bool) throws {
    let lacking = try connection.query(
      .once(
        """
        SELECT t.target
        FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) t(target, triggers, prefix, shared)
          JOIN pg_catalog.pg_class c ON c.oid = to_regclass(t.target)
        WHERE CASE WHEN $5 THEN c.relreplident <> 'f'
          -- A lock of a table is one of all partitions, and a new partition has no triggers yet.
          ELSE EXISTS (SELECT FROM (SELECT c.oid UNION SELECT p.relid::oid
              FROM pg_partition_tree(c.oid) p) o(oid)
            WHERE t.triggers > (SELECT count(*) FROM pg_catalog.pg_trigger g
              WHERE g.tgrelid = o.oid AND starts_with(g.tgname::text, t.prefix))) END
          -- A group's triggers do not capture for the mirror yet.
          OR t.shared IS NOT NULL AND NOT EXISTS (SELECT FROM ferry_mirror.recorded r
            WHERE r.mirror = $6 AND r.function = t.shared)
        """),
      [
        .array(PostgresArray(sql.map { Optional($0.target) })),
        .array(PostgresArray(sql.map { $0.triggers?.countOfAll })),
        .array(PostgresArray(sql.map { Optional($0.capture.prefix(of: $0.mirror)) })),
        .array(PostgresArray(sql.map { $0.capture.group == nil ? nil : $0.function })),
        .bool(isLogged),
        .int8(sql.first?.mirror ?? 0),
      ]
    ).map { try $0.text(0) }
    // Programs wait behind a statement that waits for a table.
    try connection.execute("SET LOCAL lock_timeout = '2s'")
    try TableLocks.lock(lacking, isLogged ? .all : .writers, connection)
  }

  /// Creates an index or a constraint. The existing rows of a table may not permit it: the space
  /// checks no existing row against a definition. Returns the reason then.
  private func make(_ part: MirrorDefinition.Part) throws -> String? {
    try connection.execute("SAVEPOINT ferry_part")
    do {
      try connection.execute(single: part.statement)
      try connection.execute("RELEASE SAVEPOINT ferry_part")
      return nil
    } catch {
      guard error.isAboutRow else { throw error }
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_part; RELEASE SAVEPOINT ferry_part")
      return "\(part.description): \(error.message)"
    }
  }
}
