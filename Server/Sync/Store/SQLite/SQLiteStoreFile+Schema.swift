import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile {
  /// Returns the schema of a space; ``SpaceSchema/empty`` if it has none.
  package func schema(of space: Int64) throws -> SpaceSchema {
    try SpaceSchema(stored: record(SchemaChange.key, in: space)) ?? .empty
  }

  /// Puts a schema in force in one durable transaction.
  ///
  /// - Parameters:
  ///   - keepsRecords: Whether records may go on breaking types and required columns.
  ///   - onlyChecks: Whether everything is rolled back at the end.
  ///   - random: For the identifier of the operation that reports it.
  package func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, keepsRecords: Bool = false,
    onlyChecks: Bool = false, random: UInt64, by mark: AuditMark? = nil
  ) throws -> Result<SpaceSchema, Problem> {
    do {
      return try change(space) {
        let record = try record(SchemaChange.key, in: space)
        let current = try SpaceSchema(stored: record) ?? .empty
        let decision = try SchemaChange.decide(
          document, current: current, record: record, in: spaceState(space), now: now,
          random: random)
        guard case .success(let change) = decision else { return decision.map(\.schema) }
        if change.effects.isEmpty { return .success(change.schema) }
        for (table, keys) in SchemaChange.keysAdded(from: change.schema, to: current) {
          try forget(keys, of: table, in: space)
        }
        var audit = SchemaAudit(from: current, to: change.schema, keepsRecords: keepsRecords)
        for table in audit.tables { try look(at: table, &audit, in: space) }
        if let problem = audit.problem { throw SchemaRefused(problem: problem) }
        if onlyChecks { throw SchemaFits(schema: change.schema) }
        try save(change.effects, in: space, now: now)
        try saveVersion(change.effects.space, of: space)
        try append(mark, .schemaApplied, of: space, "version \(change.schema.version)")
        return .success(change.schema)
      }
    } catch let refused as SchemaRefused {
      return .failure(refused.problem)
    } catch let fitting as SchemaFits {
      return .success(fitting.schema)
    }
  }

  private func saveVersion(_ state: SpaceState, of space: Int64) throws {
    try connection.run(
      "UPDATE spaces SET schema_version = ?, minimum_protocol = ? WHERE id = ?",
      state.schemaVersion, state.minimumProtocol, space)
  }

  // MARK: Existing records

  private func forget(_ keys: [[Name]], of table: Name, in space: Int64) throws {
    let remove = try connection.statement(
      "DELETE FROM unique_keys WHERE space = ? AND tbl = ? AND key_columns = ?")
    for key in keys { try remove.run(space, table, SQLiteText(UniqueClaim.stored(columns: key))) }
  }

  /// Checks all records of a table, in their order, and lets those that exist claim new keys.
  private func look(
    at table: SchemaAudit.Table, _ audit: inout SchemaAudit, in space: Int64
  ) throws {
    let rows = try connection.statement(
      "SELECT record, state FROM records WHERE space = ? AND tbl = ? ORDER BY record")
    defer { rows.reset() }
    rows.bind(space, table.name)
    while try rows.step() {
      let state = try RecordState(stored: rows.blobBytes(1), limits: .stored)
      let claims = try audit.look(at: rows.recordName(0).name, state, of: table) {
        try holder(of: $0, in: space)
      }
      try saveClaims(claims, in: space)
    }
  }

  /// Returns the record that holds a unique key; `nil` when none does.
  func holder(of claim: UniqueClaim, in space: Int64) throws -> Name? {
    try connection.first(
      """
      SELECT record FROM unique_keys WHERE space = ? AND tbl = ? AND key_columns = ? AND value = ?
      """, space, claim
    ) { $0.name(0) }
  }

  func saveClaims(_ rows: [IngestEffects.ClaimRow], in space: Int64) throws {
    for row in rows {
      guard let record = row.record else {
        try connection.run(
          "DELETE FROM unique_keys WHERE space = ? AND tbl = ? AND key_columns = ? AND value = ?",
          space, row.claim)
        continue
      }
      try connection.run(
        """
        INSERT INTO unique_keys(space, tbl, key_columns, value, record) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET record = excluded.record
        """, space, row.claim, record)
    }
  }
}

/// Binds the table, the columns and their values.
extension UniqueClaim: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(table)
    parameters.append(SQLiteText(columns))
    parameters.append(SQLiteText(value))
  }
}
