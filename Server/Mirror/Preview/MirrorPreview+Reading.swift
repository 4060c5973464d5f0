import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// Reads the parts of previews from PostgreSQL. All calls block, and write nothing.
extension MirrorPreview {
  /// Adds a company's table, and the reasons against it.
  mutating func add(
    _ table: AdoptionPlan.Table, _ found: CompanyTable, _ plan: AdoptionPlan,
    _ configuration: MirrorConfiguration, _ connection: PostgresConnection
  ) throws {
    var shown = Table(table, found, plan.left.filter { $0.table == table.name })
    do {
      let schema = try plan.added(to: .empty) ?? .empty
      var sql = try configuration.sql(of: table.name, schema)
      if configuration.capture == .triggers { shown.triggers = sql.triggers?.count ?? 0 }
      if configuration.group != nil {
        // The rows of all spaces.
        var all = configuration
        all.adoptions[table.name.text]?.space = nil
        sql = try all.sql(of: table.name, schema)
      }
      // text: a list of rights
      if !found.missingRights.contains("SELECT") {
        let faults = try sql.faults(connection)
        if faults.isEmpty { shown.rows = try rows(of: sql, connection) }
        self.faults += faults
      }
    } catch let fault as MirrorFault {
      faults.append(fault.description)
    }
    tables.append(shown)
  }

  /// Returns the number of rows. A view that fails makes no adoption impossible.
  private mutating func rows(
    of sql: MirrorSQL, _ connection: PostgresConnection
  ) throws -> Int64? {
    do {
      return try sql.estimatedRows(connection)
    } catch let error as PostgresError where sql.view != nil && error.kind == .server {
      notes.append("view \(sql.table.name) cannot be read now: \(error.message)")
      return nil
    }
  }

  /// Adds the tables of a mirror that makes them, and the reasons against them.
  ///
  /// - Parameters:
  ///   - number: the mirror's number; 0 for a new one.
  ///   - isKnown: whether the mirror is there: it leaves tables of others alone.
  mutating func add(
    _ plan: MirrorPlan, _ tables: MirrorTables, _ number: Int64 = 0, isKnown: Bool
  ) throws {
    let present = try tables.columns(of: plan.tables.map(\.name))
    let foreign = try tables.foreign(in: plan, number)
    if isKnown { notes += foreign.map(\.description) } else { faults += foreign.map(\.description) }
    notes += plan.omitted
    for table in plan.tables where !foreign.contains(where: { $0.name == table.name }) {
      var shown = Table(table, present: present[table.name] ?? [])
      let sql = MirrorSQL(table: table, schema: tables.configuration.schema, mirror: number)
      if capture == .triggers { shown.triggers = sql.triggers?.count ?? 0 }
      self.tables.append(shown)
    }
  }
}

extension MirrorTables {
  /// Returns the reason if a mirror's name is taken in the database; `nil` if it is free, or not
  /// readable.
  ///
  /// - Parameter again: whether an entry of the same mirror may be there.
  func nameFault(again: Bool) throws -> MirrorFault? {
    let isReadable = try connection.query(
      .once(
        """
        SELECT coalesce((SELECT has_schema_privilege(n.oid, 'USAGE')
            AND has_table_privilege(c.oid, 'SELECT')
          FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = 'ferry_mirror' AND c.relname = 'mirrors'), false)
        """)
    ).first?.bool(0)
    guard isReadable == true else { return nil }
    let known = try connection.query(
      .once("SELECT space = $2 AND schema = $3 FROM ferry_mirror.mirrors WHERE name = $1"),
      [.text(configuration.name), .text(configuration.space), .text(configuration.schema)])
    guard let isSame = try known.first?.bool(0), !(again && isSame) else { return nil }
    return .taken(configuration.name)
  }

  /// Returns the existing columns of tables, by table.
  func columns(of tables: [Name]) throws -> [Name: Set<String>] {
    var columns: [Name: Set<String>] = [:]
    let rows = try connection.query(
      .once(
        """
        SELECT c.relname::text, a.attname::text FROM pg_catalog.pg_class c
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
          JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
        WHERE n.nspname = $1 AND c.relname = ANY($2::text[]) AND a.attnum > 0 AND NOT a.attisdropped
        """),
      [.text(configuration.schema), .array(PostgresArray(tables.map { Optional($0.text) }))])
    for row in rows { columns[Name(try row.text(0)), default: []].insert(try row.text(1)) }
    return columns
  }
}

extension MirrorConfiguration {
  /// Returns the SQL of one adopted table, as in a new mirror.
  func sql(of table: Name, _ schema: SpaceSchema) throws(MirrorFault) -> MirrorSQL {
    var one = self
    one.tables = [table.text]
    one.types = types.filter { $0.key.begins(with: "\(table).") }
    let plan = try one.plan(schema)
    guard let mirrored = plan.table(table.text) else {
      throw MirrorFault(description: plan.omitted.first ?? "table \(table) cannot be mirrored")
    }
    return MirrorSQL(table: mirrored, schema: self.schema, mirror: 0)
  }
}

extension MirrorPlan {
  /// The reason against a mirror without tables.
  func emptyFault(of space: String) -> String {
    "the schema of space \(space) defines no table that can be mirrored"
      + (omitted.first.map { ": \($0)" } ?? "")
  }
}

extension MirrorFolder {
  /// The token of the mirror's file; `nil` if the server is open.
  func token() throws -> String? {
    try FileCredentialStore().credential(of: replica)?.token
  }
}

extension MirrorSQL {
  /// Returns the reasons if the condition of the rows fails, or if the types do not fit.
  func faults(_ connection: PostgresConnection) throws -> [String] {
    var faults: [String] = []
    let checks: [(PostgresConnection) throws -> Void] = [
      runCheck,
      { connection in
        try connection.transaction(.snapshot) { _ = try $0.query(.once(fits)) }
      },
    ]
    for check in checks {
      do {
        try check(connection)
      } catch let error as PostgresError where error.kind == .server {
        faults.append("table \(table.name) cannot be used: \(error.message)")
      }
    }
    return faults
  }

  /// Runs the check of the condition with the path of the functions that capture.
  func runCheck(_ connection: PostgresConnection) throws {
    try connection.transaction(.snapshot) { connection in
      if let path = checkPath { try connection.execute(single: "SET LOCAL search_path = \(path)") }
      _ = try connection.query(.once(check))
    }
  }

  /// Returns the number of rows, as an adoption estimates it.
  func estimatedRows(_ connection: PostgresConnection) throws -> Int64? {
    try connection.transaction(.snapshot) {
      if view != nil { try $0.execute(ViewSchedule.limit) }
      return try $0.query(.once("SELECT e.size FROM (SELECT \(estimate) AS size) e")).first?.int8(0)
    }
  }
}

// MARK: Groups

extension MirrorPreviewer {
  /// The most listed spaces of a group.
  static let valuesMax = 1_000

  /// Returns the spaces of a group by the values in the tables.
  func spaces(
    of group: MirrorGroupConfiguration, _ tables: [MirrorPreview.Table]
  ) async throws -> [MirrorPreview.Space] {
    let pattern = try SpacePattern(group.pattern)
    let names = tables.map { ($0.name, $0.rows) }
      .filter { $1 != nil && !group.shared.contains($0.text) }.map(\.0)
    return try await PostgresPool.once(group.database) { pool in
      try await pool.run { connection in
        var counts: [String?: Int64] = [:]
        for name in names {
          let target = "\(quoted(Name(group.schema))).\(quoted(name))"
          let rows = try connection.query(
            .once(
              """
              SELECT \(quoted(Name(group.column)))::text, count(*) FROM \(target)
              GROUP BY 1 ORDER BY 1 LIMIT $1
              """), [.int8(Int64(Self.valuesMax))])
          for row in rows {
            counts[try row.ifPresent(0, as: String.self), default: 0] += try row.int8(1)
          }
        }
        let sorted = counts.sorted { ($0.key ?? "") < ($1.key ?? "") }
        return sorted.prefix(Self.valuesMax).map { Self.space(pattern, $0.key, rows: $0.value) }
      }
    }
  }

  private static func space(
    _ pattern: SpacePattern, _ value: String?, rows: Int64
  ) -> MirrorPreview.Space {
    var space = MirrorPreview.Space(value: value, rows: rows)
    guard let value, (1...MirrorGroupTables.valueBytesMax).contains(value.utf8.count) else {
      space.reason = "a value has 1 to \(MirrorGroupTables.valueBytesMax) bytes"
      return space
    }
    do throws(MirrorFault) {
      space.name = try pattern.space(for: value)
    } catch {
      space.reason = error.description
    }
    return space
  }
}
