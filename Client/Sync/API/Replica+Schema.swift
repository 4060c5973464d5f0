import FerryProtocol

extension Replica {
  /// What the space declares of its tables, as the server has it now; ``SpaceSchema/empty`` where
  /// it declares nothing.
  ///
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/refused(_:)``,
  ///   ``ReplicaError/notConfigured``.
  public func schema() async throws -> SpaceSchema {
    try await typed {
      let api = try await engine.api()
      return try await engine.retrying { try await api.schema() }
    }
  }

  /// Puts a schema in force for all devices of the space; needs an admin's token. The records that
  /// exist have to fit it, and what comes from now on is judged by it.
  ///
  /// - Parameters:
  ///   - document: Its ``SpaceSchema/version`` is one more than the version that it replaces, or 0
  ///     for whichever is next.
  ///   - keepsRecords: Whether records that exist may go on breaking new types and required
  ///     columns. New unique keys hold for them in any case.
  /// - Returns: The schema in force.
  /// - Throws: ``ReplicaError/refused(_:)`` with ``ProblemCode/schemaConflict`` where another
  ///   version is in force, or where records do not fit it: ``Problem/violations`` names the first
  ///   of them, and nothing was changed.
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
