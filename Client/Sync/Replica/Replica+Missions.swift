import FerryProtocol

extension Replica {
  /// Returns the missions published by the space, by name, as of the last sync. The table
  /// `ferry_missions` has them too, for reading.
  public func missions() async throws -> [MissionRecord] {
    let names = FileSpaces.names(of: number)
    return try await read { database in
      try database.query("SELECT * FROM \(names.name("ferry_missions")) ORDER BY id").compactMap {
        row in
        guard case .text(let id) = row["id"] else { return nil }
        return MissionRecord(id: id) { name in
          let value = row[name.text]
          return value == .null ? nil : value
        }
      }
    }
  }

  /// The beginning of the paths of the space's files beside the database.
  package var place: String { engine.path }

  /// Returns the folder of the space's missions and bundles, beside the database.
  ///
  /// - Throws: the system's error if the folder of a replica in memory cannot be created.
  package func missionFolder() throws -> String {
    try companions.memory?.create()
    return place + ".missions"
  }

  /// Returns the replica's server; `nil` before it was connected.
  package func server() async throws -> ServerAddress? {
    try await thread.call { try $0.identity().server }
  }

  /// Returns the replica's server with the token.
  ///
  /// - Throws: ``ReplicaError/notConfigured``, ``ReplicaError/tokenMissing(_:)``.
  package func access() async throws -> ServerAccess {
    try await thread.call { [engine] in try engine.access($0) }
  }
}
