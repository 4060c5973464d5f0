import FerryProtocol

extension Replica {
  /// The missions that the space publishes, by their names, as this replica has last been told.
  /// They are also in the table `ferry_missions`, for reading.
  public func missions() async throws -> [MissionRecord] {
    try await read { database in
      try database.query("SELECT * FROM ferry_missions ORDER BY id").compactMap { row in
        guard case .text(let id) = row["id"] else { return nil }
        return MissionRecord(id: id) { name in
          let value = row[name.text]
          return value == .null ? nil : value
        }
      }
    }
  }

  /// Where the replica syncs; `nil` before it was connected.
  package func server() async throws -> ServerAddress? {
    try await typed { try await thread.run { try $0.identity().server } }
  }

  /// Where it syncs, with the token.
  package func access() async throws -> ServerAccess? {
    try await typed { try await thread.run { try $0.access() } }
  }
}
