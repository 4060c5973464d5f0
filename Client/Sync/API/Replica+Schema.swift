import FerryProtocol

extension Replica {
  /// Fetches the schema that the server has now for the space; ``SpaceSchema/empty`` if the space
  /// declares nothing.
  ///
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/refused(_:)``,
  ///   ``ReplicaError/notConfigured``.
  public func schema() async throws -> SpaceSchema {
    try await typed {
      let api = try await engine.api()
      return try await engine.retrying { try await api.schema() }
    }
  }

  /// Puts a schema in force for all devices of the space; needs an admin's token. Existing records
  /// have to fit it, and the server checks all later operations against it.
  ///
  /// - Parameters:
  ///   - document: Its ``SpaceSchema/version`` is one more than the version that it replaces, or 0
  ///     for the next version.
  ///   - keepsRecords: Whether existing records may still violate new types and required columns.
  ///     New unique keys hold for them in any case.
  /// - Returns: The schema in force.
  /// - Throws: ``ReplicaError/refused(_:)`` with ``ProblemCode/schemaConflict`` if another version
  ///   is in force, or if records do not fit. Then ``Problem/violations`` names the first of them,
  ///   and nothing changes.
  @discardableResult
  public func applySchema(
    _ document: SpaceSchema, keepsRecords: Bool = false
  ) async throws -> SpaceSchema {
    try await typed {
      let api = try await engine.api()
      return try await engine.retrying {
        try await api.applySchema(document, keepsRecords: keepsRecords)
      }
    }
  }
}
