import FerryProtocol

/// A change of the schema in force: an operation of the server's on a separate record, which
/// devices receive by their pull lists; pure.
package enum SchemaChange {
  /// The record of the schema.
  package static let key = RecordKey(table: "ferry_schema", record: "schema")
  /// The author of schema changes.
  package static let author = ServerWrite.author
  /// Dropped rules and definitions named by a refusal; the others are counted.
  package static let lossesNamed = 1_000

  /// The data for the store to write, with the schema after the change.
  package struct Decision: Sendable, Equatable {
    package let schema: SpaceSchema
    /// Empty if the document is in force already.
    package let effects: IngestEffects
  }

  /// Decides about a document.
  ///
  /// - Parameters:
  ///   - record: The present record ``key``; `nil` if there is none.
  ///   - current: The schema in this record.
  ///   - dropsRules: True if the document may drop rules and definitions.
  ///   - random: For the operation's identifier.
  package static func decide(
    _ document: SpaceSchema, current: SpaceSchema, record: RecordState?, in space: SpaceState,
    dropsRules: Bool = false, now: Int64, random: UInt64
  ) -> Result<Decision, Problem> {
    // The client repeats a request after a lost answer.
    var unversioned = document
    if document.version == 0 { unversioned.version = current.version }
    if unversioned == current && current.version > 0 {
      return .success(Decision(schema: current, effects: IngestEffects(space: space)))
    }
    let next = current.version + 1
    guard document.version == 0 || document.version == next else {
      return .failure(.staleSchema(document.version, current: current.version))
    }
    let losses = dropsRules ? [] : document.losses(replacing: current)
    guard losses.isEmpty else {
      return .failure(.schemaLosses(losses, of: current.version))
    }
    var schema = document
    schema.version = next
    var effects = IngestEffects(space: space)
    effects.space.schemaVersion = next
    effects.space.minimumProtocol = schema.minimumProtocol
    effects.writeAsServer(
      key,
      [
        Column("document", .text(String(decoding: schema.encoded(), as: UTF8.self))),
        Column("version", .integer(next)),
      ], over: record, now: now, random: random)
    return .success(Decision(schema: schema, effects: effects))
  }

  /// Returns the unique keys declared by one schema and not by another, by table.
  package static func keysAdded(
    from old: SpaceSchema, to new: SpaceSchema
  ) -> [(table: Name, keys: [[Name]])] {
    new.tables.sorted { $0.key < $1.key }.compactMap { table, rules in
      let had = old.tables[table]?.unique ?? []
      let added = rules.unique.filter { !had.contains($0) }
      return added.isEmpty ? nil : (table, added)
    }
  }
}

extension SpaceSchema {
  /// Creates the schema of a record ``SchemaChange/key``; `nil` if the record has none.
  init?(stored record: RecordState?) throws(MalformedMessage) {
    guard case .text(let text) = record?.columns.first(where: { $0.name == "document" })?.value
    else { return nil }
    try self.init(decoding: Array(text.utf8), limits: .storedSchema)
  }
}

extension Limits {
  /// For a schema read from the store.
  fileprivate static let storedSchema: Limits = {
    var limits = Limits.stored
    limits.schemaBytes = .max
    limits.schemaTables = .max
    return limits
  }()
}

extension Problem {
  fileprivate static func staleSchema(_ version: Int64, current: Int64) -> Problem {
    Problem(
      .schemaConflict,
      "the document is version \(version), but the space has version \(current): read that "
        + "version, change it and apply it as version \(current + 1)")
  }

  fileprivate static func schemaLosses(_ losses: [String], of version: Int64) -> Problem {
    let (shown, more) = (losses.prefix(lossesShown), losses.count - lossesShown)
    return Problem(
      .schemaLosses,
      "version \(version) of the schema has \(losses.count.counted("rule")) that the document does "
        + "not have: \(shown.joined(separator: ", "))"
        + (more > 0 ? " and \(more.grouped) more" : "")
        + "; nothing was changed: add them to the document, or confirm that they are dropped",
      losses: Array(losses.prefix(SchemaChange.lossesNamed)), lossCount: losses.count)
  }

  /// Losses in the detail, for people.
  private static let lossesShown = 5
}
