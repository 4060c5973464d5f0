import FerryPostgres
import FerryProtocol

/// A group that captures from the log, in PostgreSQL. One slot, one publication and one reader serve
/// all mirrors of the group. All calls block.
extension MirrorGroupTables {
  /// Publishes the tables, and logs their former rows as a whole. Only tables that lack this are
  /// locked.
  func enterLog(
    _ configuration: MirrorGroupConfiguration, _ connection: PostgresConnection
  ) throws {
    let tables = (configuration.tables + configuration.shared).map { name in
      LoggedTable(
        schema: configuration.schema, name: name,
        target: "\(quoted(Name(configuration.schema))).\(quoted(Name(name)))",
        column: configuration.tables.contains(name) ? configuration.column : nil)
    }
    let relations = try connection.query(
      .once(
        """
        SELECT place, format('%I.%I', n.nspname, c.relname), c.relreplident = 'f',
          r.relkind = 'p'
        FROM unnest($1::text[]) WITH ORDINALITY t(target, place)
          JOIN pg_catalog.pg_class r ON r.oid = to_regclass(t.target)
          CROSS JOIN LATERAL (SELECT r.oid UNION SELECT p.relid FROM pg_partition_tree(r.oid) p) o(oid)
          JOIN pg_catalog.pg_class c ON c.oid = o.oid
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY 1, 2
        """), [.array(PostgresArray(tables.map { Optional($0.target) }))])
    var (entered, targets, lacking) = (tables, [String](), [String]())
    for row in relations {
      let target = try row.text(1)
      targets.append(target)
      if try !row.bool(2) { lacking.append(target) }
      if try row.bool(3) { entered[Int(try row.int8(0)) - 1].isPartitioned = true }
    }
    try LogMembers.exclude(reader: log, connection)
    try TableLocks.lock(lacking, .all, connection)
    try MirrorLog.enter(log, connection)
    try LogMembers.enter(LoggedMirror(log, entered), in: log, connection)
    for statement in MirrorLog.capture(tables.map(\.target), targets, log) {
      try connection.execute(single: statement)
    }
  }

  /// Publishes the tables again if an administrator has dropped the publication. The slot is gone
  /// then. Returns `true` if it was dropped.
  func replaceDroppedPublication(
    pausing reader: LogReader, _ connection: PostgresConnection
  ) throws -> Bool {
    guard let known = try MirrorLog(log, connection), try !known.isPublished(connection)
    else { return false }
    // Before the lock: the reader may wait for it, too.
    try reader.pause()
    return try known.alone(connection) { present in
      // Another mirror of the group may have made it again.
      if try present.isPublished(connection) { return false }
      try present.release(connection)
      try present.forgetPublication(connection)
      guard let group = try LogMembers.member(log, connection) else { return true }
      for statement in MirrorLog.capture(group.tables.map(\.target), [], log) {
        try connection.execute(single: statement)
      }
      return true
    }
  }

  /// Makes the slot, and records the present values: the reader sees all later ones.
  func beginLog(
    _ configuration: MirrorGroupConfiguration, _ connection: PostgresConnection
  ) throws {
    let slot = try MirrorLog.makeSlot(log, connection)
    try recordPresent(
      configuration.tables, column: configuration.column, in: configuration.schema, connection)
    try slot?.recordComparison(connection)
  }

  /// Records the present values again if the log may lack new ones.
  func recordMissed(
    _ configuration: MirrorGroupConfiguration, _ connection: PostgresConnection
  ) throws {
    guard let slot = try MirrorLog(log, connection), slot.compares else { return }
    try beginLog(configuration, connection)
  }
}
