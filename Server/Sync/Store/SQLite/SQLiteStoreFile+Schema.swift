import FerryProtocol
import SQLite

extension SQLiteStoreFile {
  /// Returns the schema of a space; ``SpaceSchema/empty`` if it has none.
  package func schema(of space: Int64) throws -> SpaceSchema {
    try SpaceSchema(stored: record(SchemaChange.key, in: space)) ?? .empty
  }

  /// Puts a schema in force in one durable transaction.
  ///
  /// - Parameters:
  ///   - keepsRecords: Whether records may go on breaking types and required columns.
  ///   - random: For the identifier of the operation that reports it.
  package func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, keepsRecords: Bool = false,
    random: UInt64, by mark: AuditMark? = nil
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
        try save(change.effects, in: space, now: now)
        try saveVersion(change.effects.space, of: space)
        try append(mark, .schemaApplied, of: space, "version \(change.schema.version)")
        return .success(change.schema)
      }
    } catch let refused as SchemaRefused {
      return .failure(refused.problem)
    }
  }

  private func saveVersion(_ state: SpaceState, of space: Int64) throws {
    let update = try connection.statement(
      "UPDATE spaces SET schema_version = ?, minimum_protocol = ? WHERE id = ?")
    update.bind(1, state.schemaVersion)
    update.bind(2, state.minimumProtocol)
    update.bind(3, space)
    try update.run()
  }

  // MARK: Existing records

  private func forget(_ keys: [[Name]], of table: Name, in space: Int64) throws {
    let remove = try connection.statement(
      "DELETE FROM unique_keys WHERE space = ? AND tbl = ? AND key_columns = ?")
    for key in keys {
      remove.bind(1, space)
      remove.bind(2, table)
      remove.bind(3, text: UniqueClaim.stored(columns: key))
      try remove.run()
    }
  }

  /// Checks all records of a table, in their order, and lets those that exist claim new keys.
  private func look(
    at table: SchemaAudit.Table, _ audit: inout SchemaAudit, in space: Int64
  ) throws {
    let rows = try connection.statement(
      "SELECT record, state FROM records WHERE space = ? AND tbl = ? ORDER BY record")
    defer { rows.reset() }
    rows.bind(1, space)
    rows.bind(2, table.name)
    while try rows.step() {
      let record = rows.name(0)
      let state = try RecordState(decoding: rows.textBytes(1), limits: .stored)
      var taken: [(key: [Name], holder: Name)] = []
      for key in table.keys {
        guard let claim = state.claims(in: table.name, [key]).first else { continue }
        if let holder = try holder(of: claim, in: space) {
          taken.append((key, holder))
        } else {
          try saveClaims([IngestEffects.ClaimRow(claim: claim, record: record)], in: space)
        }
      }
      audit.look(at: record, state, of: table, taken: taken)
    }
  }

  /// Returns the record that holds a unique key; `nil` when none does.
  func holder(of claim: UniqueClaim, in space: Int64) throws -> Name? {
    let find = try connection.statement(
      """
      SELECT record FROM unique_keys WHERE space = ? AND tbl = ? AND key_columns = ? AND value = ?
      """)
    find.bind(1, space)
    find.bind(2, claim.table)
    find.bind(3, text: claim.columns)
    find.bind(4, text: claim.value)
    return try find.first { $0.name(0) }
  }

  func saveClaims(_ rows: [IngestEffects.ClaimRow], in space: Int64) throws {
    for row in rows {
      let statement = try connection.statement(
        row.record == nil
          ? """
          DELETE FROM unique_keys WHERE space = ?1 AND tbl = ?2 AND key_columns = ?3 AND value = ?4
          """
          : """
          INSERT INTO unique_keys(space, tbl, key_columns, value, record)
          VALUES (?1, ?2, ?3, ?4, ?5)
          ON CONFLICT DO UPDATE SET record = excluded.record
          """)
      statement.bind(1, space)
      statement.bind(2, row.claim.table)
      statement.bind(3, text: row.claim.columns)
      statement.bind(4, text: row.claim.value)
      if let record = row.record { statement.bind(5, record) }
      try statement.run()
    }
  }
}
