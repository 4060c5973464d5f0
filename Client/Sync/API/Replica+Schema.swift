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

  /// Puts a schema in force for all devices of the space; needs an admin's token. What is written
  /// already stays as it is, and what comes from now on is judged by it.
  ///
  /// - Parameter document: Its ``SpaceSchema/version`` is one more than the version that it
  ///   replaces, or 0 for whichever is next.
  /// - Returns: The schema in force.
  /// - Throws: ``ReplicaError/refused(_:)`` with ``ProblemCode/schemaConflict`` where another
  ///   version is in force or records that exist share the values of a new unique key.
  @discardableResult
  public func applySchema(_ document: SpaceSchema) async throws -> SpaceSchema {
    try await typed {
      let api = try await engine.api()
      return try await engine.retrying { try await api.applySchema(document) }
    }
  }
}
