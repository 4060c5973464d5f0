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

enum SchemaQueries {
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
