import FerryPostgres

/// The way in which PostgreSQL records the writes of programs.
package enum MirrorCapture: String, Codable, Sendable, CaseIterable {
  /// The mirror reads PostgreSQL's log. Nothing of the mirror is in the programs' transactions.
  case log
  /// Triggers of the tables, in the programs' transactions.
  case triggers
}

extension MirrorConfiguration {
  /// Returns the settings with a way to capture. An existing mirror keeps its way.
  ///
  /// - Parameter isAutomatic: whether the log is chosen if PostgreSQL permits it, and otherwise
  ///   triggers.
  package func choosingCapture(
    isAutomatic: Bool, in folder: MirrorFolder
  ) async throws -> MirrorConfiguration {
    var chosen = self
    if folder.exists, let present = try? folder.configuration(),
      isAutomatic || present.capture == capture
    {
      (chosen.capture, chosen.captureReason) = (present.capture, present.captureReason)
      return chosen
    }
    guard isAutomatic else { return self }
    chosen.captureReason = try await PostgresPool.once(database) { pool in
      try await pool.run { connection in
        let suitability = try LogSuitability(self, connection)
        return try suitability.obstacle ?? suitability.shortage
          ?? ReplicationStream.obstacle(to: database)
      }
    }
    chosen.capture = chosen.captureReason == nil ? .log : .triggers
    return chosen
  }

  /// - Throws: ``MirrorFault`` if the log is to be read, and cannot be.
  func checkCapture(_ connection: PostgresConnection) throws {
    guard capture == .log else { return }
    guard let obstacle = try LogSuitability(self, connection).obstacle else { return }
    throw MirrorFault(
      description: "PostgreSQL's log cannot be read: \(obstacle); see "
        + "Documentation/mirrors.md#capture-from-the-log, or use --capture triggers")
  }
}

extension MirrorGroupConfiguration {
  /// Returns the settings with a way to capture; see
  /// ``MirrorConfiguration/choosingCapture(isAutomatic:in:)``.
  package func choosingCapture(
    isAutomatic: Bool, in folder: MirrorFolder
  ) async throws -> MirrorGroupConfiguration {
    guard isAutomatic else { return self }
    var chosen = self
    if let present = try? folder.group() {
      (chosen.capture, chosen.captureReason) = (present.capture, present.captureReason)
      return chosen
    }
    let mirror = try await withoutValue.choosingCapture(isAutomatic: true, in: folder)
    (chosen.capture, chosen.captureReason) = (mirror.capture, mirror.captureReason)
    return chosen
  }
}

/// A database's suitability for a capture from the log; pure.
package struct LogSuitability: Sendable, Equatable {
  var version: Int32
  var level: String
  var mayReplicate: Bool
  var mayPublish: Bool
  /// Existing tables of other owners.
  var foreign: [String]
  /// Tables with a condition and computed columns: the log does not have the latter.
  var computed: [String] = []
  /// Views, and tables that the mirror only reads.
  var views: [String] = []
  /// Tables in a publication with a list of columns: with former rows as a whole in the log,
  /// PostgreSQL would refuse the programs' updates.
  var listed: [String] = []
  var hasSlot = true
  var hasSender = true

  /// The reason against it; `nil` if there is none.
  package var obstacle: String? {
    if let view = views.first {
      return "triggers of a copy capture the changes of \(view), which the mirror only reads"
    }
    if version < 140_000 { return "PostgreSQL before 14 marks no transaction in the log" }
    if level != "logical" { return "wal_level is \(level), and has to be logical" }
    if !mayReplicate { return "the mirror's role lacks REPLICATION" }
    if !mayPublish { return "the mirror's role lacks CREATE on the database" }
    if let table = foreign.first { return "the mirror's role does not own table \(table)" }
    if let table = listed.first {
      return "table \(table) is in a publication with a list of columns"
    }
    if let table = computed.first, version >= 180_000 {
      return "table \(table) has computed columns: PostgreSQL would refuse the programs' updates"
    }
    if let table = computed.first {
      return "table \(table) has a condition and computed columns, unknown to the log"
    }
    return nil
  }

  /// The reason against one more reader; `nil` if there is none.
  package var shortage: String? {
    if !hasSlot { return "all of max_replication_slots are in use" }
    if !hasSender { return "all of max_wal_senders are in use" }
    return nil
  }

  /// Reads the suitability for a mirror's settings.
  package init(
    _ configuration: MirrorConfiguration, _ connection: PostgresConnection
  ) throws {
    let rows = try connection.query(
      .once(
        """
        WITH named AS (SELECT c.oid, c.relname::text AS name FROM pg_catalog.pg_class c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = $1 AND c.relname = ANY($2::text[])),
          used AS (SELECT oid FROM named
            UNION SELECT t.relid FROM named CROSS JOIN LATERAL pg_partition_tree(named.oid) t)
        SELECT current_setting('server_version_num')::int4, current_setting('wal_level'),
          (SELECT rolreplication OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user),
          has_database_privilege(current_database(), 'CREATE'),
          ARRAY(SELECT c.relname::text FROM used JOIN pg_catalog.pg_class c USING (oid)
            WHERE NOT pg_has_role(c.relowner, 'USAGE') ORDER BY 1),
          ARRAY(SELECT name FROM named WHERE (name = ANY($3::text[])
              OR current_setting('server_version_num')::int4 >= 180000) AND EXISTS (
              SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = named.oid
                AND a.attgenerated <> '' AND NOT a.attisdropped) ORDER BY 1),
          ARRAY(SELECT c.relname::text FROM used JOIN pg_catalog.pg_class c USING (oid)
            WHERE EXISTS (SELECT FROM pg_catalog.pg_publication_rel p WHERE p.prrelid = c.oid
              AND to_jsonb(p) ->> 'prattrs' IS NOT NULL) ORDER BY 1),
          (SELECT count(*) FROM pg_catalog.pg_replication_slots)
            < current_setting('max_replication_slots')::bigint,
          (SELECT count(*) FROM pg_catalog.pg_stat_replication)
            < current_setting('max_wal_senders')::bigint,
          ARRAY(SELECT name FROM named JOIN pg_catalog.pg_class c USING (oid)
            WHERE c.relkind IN ('v', 'm', 'f') ORDER BY 1)
        """),
      [
        .text(configuration.schema),
        .array(PostgresArray(configuration.tables.map { Optional($0) })),
        .array(
          PostgresArray(
            configuration.adoptions.filter { $0.value.condition != nil }.keys.sorted()
              .map { Optional($0) })),
      ])
    guard let row = rows.first else {
      throw PostgresError(.unexpectedResult, "the database does not know the connection's role")
    }
    (version, level) = (try row.int4(0), try row.text(1))
    (mayReplicate, mayPublish) = (try row.bool(2), try row.bool(3))
    foreign = try row.array(4, of: String.self).compactMap(\.self)
    computed = try row.array(5, of: String.self).compactMap(\.self)
    listed = try row.array(6, of: String.self).compactMap(\.self)
    (hasSlot, hasSender) = (try row.bool(7), try row.bool(8))
    views =
      configuration.adoptions.filter { $0.value.view != nil }.keys.sorted()
      + (try row.array(9, of: String.self).compactMap(\.self))
  }

  /// Creates a suitability from parts.
  init(
    version: Int32, level: String, mayReplicate: Bool, mayPublish: Bool, foreign: [String] = []
  ) {
    (self.version, self.level, self.foreign) = (version, level, foreign)
    (self.mayReplicate, self.mayPublish) = (mayReplicate, mayPublish)
  }
}
