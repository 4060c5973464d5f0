import FerryProtocol
import FerrySQLite

/// The space's schemas, as received in pull lists: `ferry_schemas`.
final class SpaceSchemas {
  private let connection: SQLiteConnection
  private let wallClock: () -> Int64
  /// Schemas read before, by version.
  private var known: [Int64: SpaceSchema] = [:]
  /// The rules made of them for an authority, by version.
  private var relaxed: [Int64: SpaceSchema] = [:]
  /// True if the replica is an authority: the space's rules give way to the operations (SPEC.md §40).
  var isAuthority = false

  init(_ connection: SQLiteConnection, wallClock: @escaping () -> Int64) {
    (self.connection, self.wallClock) = (connection, wallClock)
  }

  /// The reserved table for the schema, in the record `schema`.
  static let table: Name = "ferry_schema"

  /// Returns the newest schema received by this replica.
  func current() throws -> SpaceSchema { try schema(version: currentVersion()) }

  private func currentVersion() throws -> Int64 {
    try connection.first("SELECT schema FROM ferry_replica") { $0.int64(0) } ?? 0
  }

  /// Returns an earlier schema: a packet has the same operations however often it is sent.
  func schema(version: Int64) throws -> SpaceSchema {
    if version == 0 { return .empty }
    if let known = known[version] { return known }
    let text = try connection.first(
      "SELECT document FROM ferry_schemas WHERE version = ?", version
    ) { $0.text(0) }
    guard let text else { return .empty }
    let schema = try SpaceSchema(json: text)
    known[version] = schema
    return schema
  }

  /// Returns the rules that decide about this replica's operations.
  func deciding() throws -> SpaceSchema { try deciding(version: currentVersion()) }

  /// Returns the rules that decided at the time of an earlier schema.
  func deciding(version: Int64) throws -> SpaceSchema {
    let schema = try schema(version: version)
    guard isAuthority else { return schema }
    if let known = relaxed[version] { return known }
    let made = schema.forAuthority
    relaxed[version] = made
    return made
  }

  /// Stores the schema's record from a pull list. Returns true if the schema is new. A schema
  /// unreadable for this version is recorded and not followed; the server applies it anyway.
  func store(_ record: RecordState) throws -> Bool {
    guard let column = record.columns.first(where: { $0.name == "document" }),
      case .text(let text) = column.value
    else { return false }
    let schema: SpaceSchema
    do {
      schema = try SpaceSchema(json: text)
    } catch {
      try log("the space's schema cannot be read by this version of Ferry: \(error)")
      return false
    }
    guard try schema != current() else { return false }
    let number = try number(for: text, version: schema.version)
    try connection.run(
      "INSERT OR REPLACE INTO ferry_schemas(version, document) VALUES (?, ?)", number, text)
    try connection.run("UPDATE ferry_replica SET schema = ?", number)
    (known[number], relaxed[number]) = (schema, nil)
    try log("version \(schema.version) of the space's schema is in force")
    return true
  }

  /// Returns the number of a document: its version, unless a restored server gives the same version
  /// to another document. Packets were merged by the former one.
  private func number(for document: String, version: Int64) throws -> Int64 {
    try connection.first(
      """
      SELECT coalesce((SELECT version FROM ferry_schemas WHERE document = ?1),
        (SELECT max(version) + 1 FROM ferry_schemas
         WHERE EXISTS (SELECT 1 FROM ferry_schemas WHERE version = ?2)), ?2)
      """, document, version
    ) { $0.int64(0) } ?? version
  }

  private func log(_ detail: String) throws {
    try EventLog(connection: connection).append("schema", detail, now: wallClock())
  }
}
