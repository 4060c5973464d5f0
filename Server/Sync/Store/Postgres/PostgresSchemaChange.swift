import FerryPostgres
import FerryProtocol

/// The schema of a space, which is read and replaced in one transaction.
struct PostgresSchemaChange {
  /// Records examined in one round trip.
  private static let chunk: Int64 = 500

  let space: Int64
  let now: Int64
  let consent: SchemaConsent
  let timelines: OwnTimelines
  /// True if everything is rolled back at the end.
  var onlyChecks = false
  /// For the audit log.
  var mark: AuditMark?
  /// Bytes of states examined in one round trip, above which no further record is added.
  var chunkBytes: Int64 = 8 << 20

  /// Applies a schema. Returns the schema in force, and the head if it moved.
  ///
  /// - Parameter random: For the identifier of the reporting operation.
  func apply(
    _ document: SpaceSchema, random: UInt64, on connection: PostgresConnection
  ) throws -> (head: SequenceNumber?, answer: Result<SpaceSchema, Problem>) {
    do {
      let (effects, answer) = try connection.transaction { connection in
        let state = try connection.lockedState(of: space, timelines)
        let record = try connection.record(SchemaChange.key, in: space)
        let current = try SpaceSchema(stored: record) ?? .empty
        let decision = SchemaChange.decide(
          document, current: current, record: record, in: state,
          dropsRules: consent.dropsRules, now: now, random: random)
        guard case .success(let change) = decision, !change.effects.isEmpty else {
          return (IngestEffects?.none, decision.map(\.schema))
        }
        try moveKeys(from: current, to: change.schema, on: connection)
        if onlyChecks { throw SchemaFits(schema: change.schema) }
        try save(change.effects, on: connection)
        return (change.effects, .success(change.schema))
      }
      if let effects { timelines.update(effects.space, of: space) }
      return (effects?.space.head, answer)
    } catch let refused as SchemaRefused {
      return (nil, .failure(refused.problem))
    } catch let fitting as SchemaFits {
      return (nil, .success(fitting.schema))
    }
  }

  private func save(_ effects: IngestEffects, on connection: PostgresConnection) throws {
    let writes = PostgresIngestWrites(space: space, now: now)
    _ = try connection.pipeline { pipeline in
      writes.add(effects, to: &pipeline)
      pipeline.add(
        PostgresStatement(SchemaQueries.version),
        PostgresParameters(SchemaQueries.values(effects.space, in: space)))
      let detail = "version \(effects.space.schemaVersion)"
      pipeline.add(mark?.writes(.schemaApplied, of: space, detail) ?? [])
      pipeline.commit()
    }
  }

  // MARK: Existing records

  private static let forget = PostgresStatement(
    "keys_forget", "DELETE FROM unique_keys WHERE space = $1 AND tbl = $2 AND key_columns = $3")

  private static let list = PostgresStatement(
    "keys_list",
    """
    SELECT record, state FROM (
      SELECT record, state,
        sum(octet_length(state)) OVER (ORDER BY record) - octet_length(state) AS before
      FROM (
        SELECT record, state FROM records WHERE space = $1 AND tbl = $2 AND record > $3
        ORDER BY record LIMIT $4) AS next) AS next
    WHERE before < $5 ORDER BY record
    """)

  /// Removes obsolete keys, and checks the existing records against the new requirements.
  private func moveKeys(
    from old: SpaceSchema, to new: SpaceSchema, on connection: PostgresConnection
  ) throws {
    for (table, keys) in SchemaChange.keysAdded(from: new, to: old) {
      for key in keys {
        var parameters: PostgresParameters = [.int8(space), .text(table.text)]
        parameters.append(utf8: UniqueClaim.stored(columns: key))
        _ = try connection.query(Self.forget, parameters)
      }
    }
    var audit = SchemaAudit(from: old, to: new, keepsRecords: consent.keepsRecords)
    for table in audit.tables {
      var last: Name? = ""
      while let from = last {
        last = try look(at: table, after: from, &audit, on: connection)
      }
    }
    if let problem = audit.problem { throw SchemaRefused(problem: problem) }
  }

  /// Checks some of a table's records, in order, and lets the existing ones claim new keys. Returns
  /// the last of them, or `nil` if there were none.
  private func look(
    at table: SchemaAudit.Table, after record: Name, _ audit: inout SchemaAudit,
    on connection: PostgresConnection
  ) throws -> Name? {
    let records = try records(of: table.name, after: record, on: connection)
    var holders = try connection.holders(
      of: records.flatMap { $0.state.claims(in: table.name, table.keys) }, in: space)
    var rows: [IngestEffects.ClaimRow] = []
    for record in records {
      for row in audit.look(at: record.id, record.state, of: table, holder: { holders[$0] }) {
        holders[row.claim] = row.record
        rows.append(row)
      }
    }
    if !rows.isEmpty {
      _ = try connection.pipeline { $0.add(IngestEffects.writes(rows, in: space)) }
    }
    return records.last?.id
  }

  /// Loads the next records of a table: at least one if there is one, and bounded bytes.
  func records(
    of table: Name, after record: Name, on connection: PostgresConnection
  ) throws -> [(id: Name, state: RecordState)] {
    var parameters: PostgresParameters = [.int8(space), .text(table.text)]
    parameters.append(record: record)
    parameters.append(Self.chunk)
    parameters.append(chunkBytes)
    return try connection.query(Self.list, parameters).map { row in
      (
        id: try row.recordName(0).name,
        state: try row.bytes(1) { try RecordState(stored: $0, limits: .stored) }
      )
    }
  }
}
