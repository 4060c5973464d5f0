import FerryProtocol

/// The result of publishing tables' definitions.
public struct PublishReport: Sendable, Equatable {
  /// The schema in force.
  public var schema: SpaceSchema
  /// The published tables, by their names in the space.
  public var tables: [Name] = []
  /// Parts of a table not sent to devices, such as CHECK clauses.
  public var omitted: [Name: [String]] = [:]
}

extension Replica {
  /// Publishes the definitions of tracked tables in the space's schema: columns, types, keys,
  /// foreign keys and indexes. Other devices create the tables from them. Needs an admin's token.
  ///
  /// The rules of the schema and the definitions of all other tables stay.
  ///
  /// ```swift
  /// let report = try await replica.publishTables()
  /// ```
  ///
  /// - Parameter tables: the tables' names in this file; `nil` for all tracked tables.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` for an untracked table; the errors of
  ///   ``applySchema(_:keepsRecords:dropsRules:)``.
  @discardableResult
  public func publishTables(_ tables: [Name]? = nil) async throws -> PublishReport {
    let declared = try await thread.call { try DeclaredTableReader.read(tables, of: $0.tables) }
    var schema = try await schema()
    for (name, table) in declared { schema.tables[name, default: .standard].definition = table.0 }
    // Two concurrent calls do not undo each other's definitions: one is refused.
    schema.version += 1
    var report = PublishReport(schema: try await applySchema(schema))
    report.tables = declared.keys.sorted()
    report.omitted = declared.mapValues(\.omitted).filter { !$0.value.isEmpty }
    return report
  }

  /// Returns the tracked tables by their names in this file.
  package func trackedLocals() async throws -> [Name] {
    try await thread.call { try $0.tables.tracked.locals() }
  }

  /// Creates and tracks all pulled tables of the space that do not exist here, from their published
  /// definitions, or from the pulled records. A failed table stops no other one. An existing,
  /// untracked table stays untracked: the rows may be private.
  ///
  /// ```swift
  /// try await replica.sync()
  /// let report = try await replica.trackAll()
  /// ```
  ///
  /// - Parameters:
  ///   - key: the name of the key column of a table without a definition.
  ///   - progress: called on the replica's thread while pulled changes are applied.
  /// - Throws: ``ReplicaError/cancelled`` if the task is cancelled. Each table is then complete, or
  ///   absent.
  @discardableResult
  public func trackAll(
    creatingKey key: Name = "id", progress: (@Sendable (SyncProgress) -> Void)? = nil
  ) async throws -> TrackReport {
    try await ReplicaError.converting {
      try await thread.runUntilCancelled { file in
        try file.keptRetry.reporting(progress) {
          try BulkTracking(file: file).trackSpace(creatingKey: key)
        }
      }
    }
  }

  /// Tracks all ordinary tables of this file, parents before children, each with Ferry's proposed
  /// identity. A failed table stops no other one.
  ///
  /// ```swift
  /// for key in try await replica.trackAllHere().keys { print(key.table, key.identity, key.reason) }
  /// ```
  @discardableResult
  public func trackAllHere() async throws -> TrackReport {
    try await ReplicaError.converting {
      try await thread.runUntilCancelled { try BulkTracking(file: $0).trackFile() }
    }
  }

  /// Fetches the schema in force for the space; ``SpaceSchema/empty`` if the space declares
  /// nothing.
  ///
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/refused(_:)``,
  ///   ``ReplicaError/notConfigured``.
  public func schema() async throws -> SpaceSchema {
    try await thread.exchange { [self] in
      let api = try await engine.api()
      return try await engine.retrying { try await api.schema() }
    }
  }

  /// Puts a schema in force for all devices of the space; needs an admin's token. Existing records
  /// must fit it, and the server checks all later operations against it.
  ///
  /// - Parameters:
  ///   - document: ``SpaceSchema/version`` is one more than the replaced version, or 0 for the next
  ///     version.
  ///   - keepsRecords: True if existing records may still violate new types and required columns.
  ///     New unique keys hold for them in any case.
  ///   - dropsRules: True to drop the rules and definitions in force that the document does not
  ///     have. ``SpaceSchema/merged(into:)`` keeps them.
  /// - Returns: The schema in force.
  /// - Throws: ``ReplicaError/refused(_:)``, and nothing changes: with
  ///   ``ProblemCode/schemaConflict`` if another version is in force, or if records do not fit
  ///   (``Problem/violations`` names the first of them); with ``ProblemCode/schemaLosses`` if rules
  ///   or definitions would be dropped (``Problem/losses``).
  @discardableResult
  public func applySchema(
    _ document: SpaceSchema, keepsRecords: Bool = false, dropsRules: Bool = false
  ) async throws -> SpaceSchema {
    try await thread.exchange { [self] in
      let api = try await engine.api()
      return try await engine.retrying {
        try await api.applySchema(document, keepsRecords: keepsRecords, dropsRules: dropsRules)
      }
    }
  }

  /// Returns the schema of the space as of the last pull; ``SpaceSchema/empty`` before the first.
  package func pulledSchema() async throws -> SpaceSchema {
    try await thread.call { try $0.tables.schemas.current() }
  }
}
