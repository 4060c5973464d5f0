import FerryProtocol

extension Replica {
  /// Tracks tables with rows of several spaces of the file: a column has the name of each row's
  /// space. The tables are tracked in all spaces, also in those joined later.
  ///
  /// A row with another value in the column belongs to no space, and stays on this device. If a
  /// user changes the column, the row moves: the other devices of the former space see a delete.
  ///
  /// ```swift
  /// try await replica.track("tasks", spaceColumn: "list")
  /// try await replica.write { try $0.execute("UPDATE tasks SET list = 'family' WHERE id = ?", ["t1"]) }
  /// ```
  ///
  /// - Parameters:
  ///   - column: a column of each table, in this file; the key's is possible.
  ///   - direction: whether others' changes are applied here.
  ///   - identity: how the tables' keys become identifiers.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)``; some spaces may track the tables then, and
  ///   the next call continues.
  public func track(
    _ tables: Name..., spaceColumn column: Name, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil
  ) async throws {
    try await track(tables, spaceColumn: column, direction: direction, identity: identity)
  }

  /// Tracks tables with rows of several spaces, with a list of their names.
  public func track(
    _ tables: [Name], spaceColumn column: Name, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil
  ) async throws {
    try await thread.call {
      try $0.spaces.share(tables, by: column, direction: direction, identity: identity)
    }
  }
}
