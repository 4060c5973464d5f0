import FerryPostgres
import FerryProtocol

/// The schema of a space, which is read and replaced in one transaction.
struct PostgresSchemaChange {
  /// Records examined in one round trip.
  private static let chunk = 500
  /// Bytes of states examined in one round trip, above which no further record is added.
  private static let chunkBytes = 8 << 20

  let space: Int64
  let now: Int64
  let consent: SchemaConsent
  let timelines: OwnTimelines
  /// True if everything is rolled back at the end.
  var onlyChecks = false
  /// For the audit log.
  var mark: AuditMark?

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
      while let start = last {
        let part = try connection.check(
          table, after: start, rows: Self.chunk, bytes: Self.chunkBytes, in: space, &audit)
        try connection.perform(IngestEffects.writes(part.claims, in: space))
        last = part.last
      }
    }
    if let problem = audit.problem { throw SchemaRefused(problem: problem) }
  }
}
