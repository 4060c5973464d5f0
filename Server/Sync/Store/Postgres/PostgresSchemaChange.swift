import FerryProtocol
import Postgres

/// Reads a space's schema, and puts another in force in one transaction.
struct PostgresSchemaChange {
  /// Records that claim new unique keys in one round trip.
  private static let chunk: Int64 = 500

  let space: Int64
  let now: Int64

  private static let read = PostgresStatement(
    "schema",
    """
    SELECT state FROM records
    WHERE space = $1 AND tbl = '\(SchemaChange.key.table)' AND record = '\(SchemaChange.key.record)'
    """)

  /// The record that holds the schema; `nil` where there is none.
  static func record(
    in space: Int64, on connection: PostgresConnection
  ) throws -> RecordState? {
    try connection.query(read, [.int8(space)]).first.map { row in
      try row.bytes(0) { try RecordState(decoding: $0, limits: .stored) }
    }
  }

  /// Answers with the schema in force, and the head where it moved.
  ///
  /// - Parameter random: For the identifier of the operation that says so.
  func apply(
    _ document: SpaceSchema, random: UInt64, on connection: PostgresConnection
  ) throws -> (head: SequenceNumber?, answer: Result<SpaceSchema, Problem>) {
    do {
      return try connection.transaction { connection in
        guard let row = try connection.query(PostgresIngest.lock, [.int8(space)]).first else {
          throw StoreError.failed("the space is gone")
        }
        let record = try Self.record(in: space, on: connection)
        let current = try SpaceSchema(stored: record) ?? .empty
        let decision = SchemaChange.decide(
          document, current: current, record: record, in: try SpaceState(row), now: now,
          random: random)
        guard case .success(let change) = decision, !change.effects.isEmpty else {
          return (nil, decision.map(\.schema))
        }
        try moveKeys(from: current, to: change.schema, on: connection)
        try save(change.effects, on: connection)
        return (change.effects.space.head, .success(change.schema))
      }
    } catch let refused as SchemaRefused {
      return (nil, .failure(refused.problem))
    }
  }

  private static let version = PostgresStatement(
    "schema_version",
    "UPDATE spaces SET schema_version = $2, minimum_protocol = $3 WHERE id = $1")

  private func save(_ effects: IngestEffects, on connection: PostgresConnection) throws {
    let writes = PostgresIngestWrites(space: space, now: now)
    _ = try connection.pipeline { pipeline in
      writes.add(effects, to: &pipeline)
      pipeline.add(
        Self.version,
        [
          .int8(space), .int8(effects.space.schemaVersion),
          .int8(Int64(effects.space.minimumProtocol)),
        ])
      pipeline.commit()
    }
  }

  // MARK: Unique keys

  private static let forget = PostgresStatement(
    "keys_forget", "DELETE FROM unique_keys WHERE space = $1 AND tbl = $2 AND key_columns = $3")

  private static let list = PostgresStatement(
    "keys_list",
    """
    SELECT record, state FROM records WHERE space = $1 AND tbl = $2 AND record > $3
    ORDER BY record LIMIT $4
    """)

  private func moveKeys(
    from old: SpaceSchema, to new: SpaceSchema, on connection: PostgresConnection
  ) throws {
    for (table, keys) in SchemaChange.keysAdded(from: new, to: old) {
      for key in keys {
        var parameters: PostgresParameters = [.int8(space), .text(table)]
        parameters.append(utf8: UniqueClaim.stored(columns: key))
        _ = try connection.query(Self.forget, parameters)
      }
    }
    for (table, keys) in SchemaChange.keysAdded(from: old, to: new) {
      var last: String? = ""
      while let from = last {
        last = try claim(keys, of: table, after: from, on: connection)
      }
    }
  }

  /// Lets some of the records that exist claim new keys, in their order. Answers with the last of
  /// them, or `nil` when there were none.
  private func claim(
    _ keys: [[String]], of table: String, after record: String, on connection: PostgresConnection
  ) throws -> String? {
    var claims: [(claim: UniqueClaim, key: [String], record: String)] = []
    var last: String?
    for row in try connection.query(
      Self.list, [.int8(space), .text(table), .text(record), .int8(Self.chunk)])
    {
      let record = try row.text(0)
      let state = try row.bytes(1) { try RecordState(decoding: $0, limits: .stored) }
      for key in keys {
        for claim in state.claims(in: table, [key]) { claims.append((claim, key, record)) }
      }
      last = record
    }
    var holders = try PostgresClaims.holders(claims.map(\.claim), in: space, on: connection)
    for (claim, key, record) in claims {
      if let holder = holders.updateValue(record, forKey: claim) {
        throw SchemaRefused(problem: .sharedKey(claim, key, holder, record))
      }
    }
    if !claims.isEmpty {
      let rows = claims.map { IngestEffects.ClaimRow(claim: $0.claim, record: $0.record) }
      _ = try connection.pipeline { PostgresClaims.add(rows, in: space, to: &$0) }
    }
    return last
  }
}
