import FerryProtocol
import SQLite

/// What the space declares of its tables, as it came with the pull lists.
extension ReplicaFile {
  /// The reserved table whose record `schema` tells it.
  static let schemaTable: Name = "ferry_schema"

  /// The schema that this replica has been told of last.
  func spaceSchema() throws -> SpaceSchema {
    let version = try connection.statement("SELECT schema FROM ferry_replica").first {
      $0.int64(0)
    }
    return try spaceSchema(version: version ?? 0)
  }

  /// An earlier schema: packets are made of the same operations however often they are sent.
  func spaceSchema(version: Int64) throws -> SpaceSchema {
    if version == 0 { return .empty }
    if let known = knownSpaceSchemas[version] { return known }
    let find = try connection.statement("SELECT document FROM ferry_schemas WHERE version = ?")
    find.bind(1, version)
    guard let text = try find.first({ $0.text(0) }) else { return .empty }
    let schema = try SpaceSchema(json: text)
    knownSpaceSchemas[version] = schema
    return schema
  }

  /// What the space declares of a table.
  func rules(for table: TableSchema) throws -> TableRules {
    try spaceSchema().rules(for: table.name)
  }

  /// Takes the schema's record from a pull list. Answers whether it is another schema than before.
  /// One that this version cannot read is noted and not followed; the server judges by it anyway.
  func take(schemaRecord state: RecordState) throws -> Bool {
    guard let column = state.columns.first(where: { $0.name == "document" }),
      case .text(let text) = column.value
    else { return false }
    let schema: SpaceSchema
    do {
      schema = try SpaceSchema(json: text)
    } catch {
      try note("schema", "the space's schema cannot be read by this version of Ferry: \(error)")
      return false
    }
    guard try schema != spaceSchema() else { return false }
    let number = try number(for: text, version: schema.version)
    let save = try connection.statement(
      "INSERT OR REPLACE INTO ferry_schemas(version, document) VALUES (?, ?)")
    save.bind(1, number)
    save.bind(2, text)
    try save.run()
    let current = try connection.statement("UPDATE ferry_replica SET schema = ?")
    current.bind(1, number)
    try current.run()
    knownSpaceSchemas[number] = schema
    try note("schema", "version \(schema.version) of the space's schema is in force")
    return true
  }

  /// Under which number a document is kept: its version, unless a server that was restored from a
  /// backup gives that version to another document. Packets were merged by the former one.
  private func number(for document: String, version: Int64) throws -> Int64 {
    let find = try connection.statement(
      """
      SELECT coalesce((SELECT version FROM ferry_schemas WHERE document = ?1),
        (SELECT max(version) + 1 FROM ferry_schemas
         WHERE EXISTS (SELECT 1 FROM ferry_schemas WHERE version = ?2)), ?2)
      """)
    find.bind(1, document)
    find.bind(2, version)
    return try find.first { $0.int64(0) } ?? version
  }
}
