import FerryPostgres

/// The error of a creation that has failed, and whose parts could not all be removed again.
struct MirrorLeft: Error, CustomStringConvertible {
  /// The mirror's name.
  let name: String
  /// The reason for the failure of the creation.
  let cause: any Error
  /// The parts that stay in the database, each with the reason.
  let parts: [String]

  var description: String {
    "\(cause). The database still has \(parts.joined(separator: ", and ")): run the same command "
      + "again, or `ferryd mirror remove \(name)`"
  }
}

/// The removal of a mirror from the database. All calls block.
extension MirrorLedger {
  /// Removes the mirror's triggers, slot and entry; the tables stay. Returns the parts of tables that
  /// are not as they were before the mirror.
  @discardableResult
  func remove(_ connection: PostgresConnection) throws -> [String] {
    let log = try ownLog(connection)
    try log?.dropSlot(connection)
    let changed = try removeParts(connection)
    // A running mirror may have made it again meanwhile.
    try log?.dropSlot(connection)
    return changed
  }

  /// Returns the mirror's own log. A group's stays for the other mirrors.
  private func ownLog(_ connection: PostgresConnection) throws -> MirrorLog? {
    try MirrorLog(number, connection).flatMap { $0.isOwn ? $0 : nil }
  }

  /// Removes all parts but the slot.
  ///
  /// - Parameter keepsEntry: whether the entry stays, which names the slot.
  private func removeParts(
    keepsEntry: Bool = false, _ connection: PostgresConnection
  ) throws -> [String] {
    try connection.transaction { connection in
      // Programs wait behind a lock that waits.
      try connection.execute("SET LOCAL lock_timeout = '2s'")
      let (grouped, members) = (try grouped(connection), GroupMembers(connection: connection))
      try members.lock(grouped.map(\.function))
      let own =
        try TableLocks.triggered(by: "^capture_\(number)_", connection)
        + LogIdentities(mirror: number).targets(connection)
      try TableLocks.lock(
        own + grouped.map(\.target), own.isEmpty ? .writers : .all, connection)
      if let log = try MirrorLog(number, connection), log.isOfGroup {
        try LogMembers.exclude(reader: log.number, connection)
      }
      let changed = try MirrorLog.remove(number, connection)
      try connection.execute(releaseAll)
      try connection.execute(dropCopies)
      let parts = ["captured", "deferred", "unsent", "adopted", "recorded", "stops", "partitions"]
      for table in parts + ["views"] {
        try connection.execute(single: "DELETE FROM ferry_mirror.\(table) WHERE mirror = \(number)")
      }
      for function in Set(grouped.map(\.function)).sorted() { try members.publish(function) }
      if keepsEntry {
        try forgetLayout(connection)
      } else {
        try connection.execute(single: "DELETE FROM ferry_mirror.logs WHERE mirror = \(number)")
        try LogMembers.remove(number, connection)
        try connection.execute(
          single: "DELETE FROM ferry_mirror.mirrors WHERE number = \(number)")
      }
      return changed
    }
  }

  /// Runs the rest of a creation behind the commit of the entry. If it fails, a new mirror is removed
  /// again.
  ///
  /// - Parameter name: the mirror's name.
  /// - Throws: ``MirrorLeft`` if parts of it stay; the same command goes on then.
  func complete<Value>(
    _ name: String, isNew: Bool, _ connection: PostgresConnection, _ body: () throws -> Value
  ) throws -> Value {
    do {
      return try body()
    } catch {
      let isBroken = (error as? PostgresError).map { $0.kind != .server } ?? false
      // Without a connection, the same command goes on.
      if !isNew || isBroken { throw error }
      let left = removeMade(connection)
      throw left.isEmpty ? error : MirrorLeft(name: name, cause: error, parts: left)
    }
  }

  /// Attempts to remove a new mirror: programs may have the tables' locks.
  private static let removalsMax = 10

  /// Removes a new mirror, each part for itself. Returns the parts that stay.
  private func removeMade(_ connection: PostgresConnection) -> [String] {
    var left: [String] = []
    do {
      try ownLog(connection)?.dropSlot(connection)
    } catch {
      left.append("the slot of the mirror (\(error))")
    }
    for attempt in 1...Self.removalsMax {
      do {
        _ = try removeParts(keepsEntry: !left.isEmpty, connection)
        break
      } catch let error as PostgresError where error.isWait && attempt < Self.removalsMax {
        continue
      } catch {
        let publication = MirrorLog.publication(number)
        left.append(
          "the mirror, the publication \(publication) and REPLICA IDENTITY FULL of the tables "
            + "(\(error))")
        break
      }
    }
    return left
  }
}
