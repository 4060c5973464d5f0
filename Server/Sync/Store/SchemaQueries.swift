import FerryProtocol

// The schema of a space, and single records, in both stores.
extension SyncStore {
  /// Returns the schema of the space; ``SpaceSchema/empty`` if it has none.
  package func schema(of space: Int64) async throws(StoreError) -> SpaceSchema {
    try await plain(.reading) { try $0.schema(of: space) }
  }
}

extension PlainConnection {
  /// Returns the schema of a space; ``SpaceSchema/empty`` if it has none.
  func schema(of space: Int64) throws -> SpaceSchema {
    try SpaceSchema(stored: record(SchemaChange.key, in: space)) ?? .empty
  }

  /// Returns the state of a record, even if it was deleted; `nil` if there is none.
  func record(_ key: RecordKey, in space: Int64) throws -> RecordState? {
    try rows(
      SchemaQueries.record, [.integer(space), .text(key.table.text), .record(key.record)]
    ) { try $0.recordState(0) }.first
  }
}

extension PlainConnection {
  /// Checks some of a table's records, in order, against new requirements.
  ///
  /// - Parameters:
  ///   - rows: The most records.
  ///   - bytes: Bytes of states after which no further record is read.
  func check(
    _ table: SchemaAudit.Table, after record: Name, rows: Int, bytes: Int, in space: Int64,
    _ audit: inout SchemaAudit
  ) throws -> AuditedRecords {
    let records = try records(of: table.name, after: record, rows: rows, bytes: bytes, in: space)
    var holders = try holders(
      of: records.flatMap { $0.state.claims(in: table.name, table.keys) }, in: space)
    var part = AuditedRecords(rows: records.count, last: records.last?.id)
    for record in records {
      for row in audit.look(at: record.id, record.state, of: table, holder: { holders[$0] }) {
        holders[row.claim] = row.record
        part.claims.append(row)
      }
      part.bytes += record.bytes
    }
    return part
  }

  /// Loads the next records of a table: at least one if there is one, and bounded bytes.
  func records(
    of table: Name, after record: Name, rows: Int, bytes: Int, in space: Int64
  ) throws -> [(id: Name, state: RecordState, bytes: Int)] {
    var records: [(id: Name, state: RecordState, bytes: Int)] = []
    let place: [PlainValue] = [.integer(space), .text(table.text), .record(record)]
    try scan(SchemaQueries.records, place + [.integer(Int64(rows))], bytes: bytes) { row in
      let size = try row.bytes(1) { $0.count }
      records.append((try row.recordName(0).name, try row.recordState(1), size))
      return true
    }
    return records
  }
}

/// Some records of a table, checked against new requirements.
struct AuditedRecords {
  let rows: Int
  /// The last one; `nil` if there was none.
  let last: Name?
  /// Bytes of all states.
  var bytes = 0
  /// The new keys claimed by them.
  var claims: [IngestEffects.ClaimRow] = []

  init(rows: Int, last: Name?) { (self.rows, self.last) = (rows, last) }
}

enum SchemaQueries {
  fileprivate static let records = PlainScan(
    "keys_list", ["record", "state"], large: "state", order: "record", parameters: 4,
    "FROM records WHERE space = $1 AND tbl = $2 AND record > $3 ORDER BY record LIMIT $4")

  fileprivate static let record = PlainStatement(
    "record_state", "SELECT state FROM records WHERE space = $1 AND tbl = $2 AND record = $3")

  static let version = PlainStatement(
    "schema_version", "UPDATE spaces SET schema_version = $1, minimum_protocol = $2 WHERE id = $3")

  /// Returns the parameters of ``version``.
  static func values(_ state: SpaceState, in space: Int64) -> [PlainValue] {
    [
      .integer(state.schemaVersion), .integer(Int64(state.minimumProtocol)), .integer(space),
    ]
  }
}
