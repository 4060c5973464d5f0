import FerryPlatform
import FerryPostgres
import FerryProtocol
import FerrySyncClient
import Foundation

/// Mirrors of one process for tables with rows of many spaces. A column names the space of each
/// row. Each value of it gets a mirror, also a later value written by a program.
///
/// The mirrors of a group are ordinary mirrors in separate folders. They share the connections to
/// the database, threads and memory (``ReplicaSharing``).
package struct MirrorGroup: Sendable {
  /// Connections to the database. The listener has a further one.
  private static let connections = 8
  /// Threads for the files of all mirrors.
  private static let threads = 8
  /// Mirrors begun at the same time: each one waits for disks and the network most of the time.
  private static let beginningMax = 4
  /// Files that keep pages, statements and schemas in memory.
  private static let warmFiles = 32
  /// The pause between two attempts to make a failed mirror.
  private static let retryPause = Duration.seconds(30)

  package let configuration: MirrorGroupConfiguration
  /// The folder of all mirrors.
  private let root: String
  private let folder: MirrorFolder

  /// Opens an existing group.
  package init(_ name: String, in root: String) throws {
    self.root = root
    folder = MirrorFolder(name, in: root)
    configuration = try folder.group()
  }

  private init(_ configuration: MirrorGroupConfiguration, in root: String) {
    (self.configuration, self.root) = (configuration, root)
    folder = MirrorFolder(configuration.name, in: root)
  }

  // MARK: Beginning

  /// Begins a group: triggers on the tables record values without a mirror. After an interruption,
  /// the same call goes on. It also replaces the group's token, and forgets values without any row.
  ///
  /// - Parameter fallsBack: whether triggers capture if a new group would read the log, and programs'
  ///   transactions last too long for that.
  /// - Throws: ``MirrorFault`` for an unsuitable table; then nothing has changed.
  package static func begin(
    _ configuration: MirrorGroupConfiguration, in root: String, fallsBack: Bool = false
  ) async throws -> MirrorGroup {
    let isNew = !MirrorFolder(configuration.name, in: root).isGroup
    do {
      return try await make(configuration, in: root)
    } catch let error as PostgresError
      where fallsBack && isNew && configuration.capture == .log && error.isLongTransaction
    {
      var other = configuration
      (other.capture, other.captureReason) = (.triggers, error.message)
      return try await make(other, in: root)
    }
  }

  private static func make(
    _ configuration: MirrorGroupConfiguration, in root: String
  ) async throws -> MirrorGroup {
    _ = try SpacePattern(configuration.pattern)
    guard configuration.name.count <= SpacePattern.groupNameMax else {
      throw MirrorFault(
        description:
          "the name of a group has at most \(SpacePattern.groupNameMax) characters: those of "
          + "its mirrors are longer")
    }
    let group = MirrorGroup(configuration, in: root)
    let isKnown = group.folder.isGroup
    guard !group.folder.exists else {
      throw MirrorFault(
        description: "there is a mirror \(configuration.name) in \(group.folder.path)")
    }
    if isKnown {
      var known = try group.folder.group()
      known.token = configuration.token
      guard known == configuration else {
        throw MirrorFault(
          description: "there is a group \(configuration.name) in \(group.folder.path) with other "
            + "settings")
      }
    }
    do {
      try await PostgresPool.once(configuration.database) { pool in
        try await group.check(pool)
        try group.folder.make()
        try group.folder.save(configuration)
        try await group.watch(pool)
      }
      return group
    } catch {
      if !isKnown { group.folder.removeUnlessCommitted(error) }
      throw error
    }
  }

  /// Checks the tables' suitability for adoption.
  private func check(_ pool: PostgresPool) async throws {
    let configuration = configuration
    _ = try await pool.run { try TableAdoption(configuration.withoutValue).plan($0) }
  }

  private func watch(_ pool: PostgresPool) async throws {
    let configuration = configuration
    if configuration.capture == .log { return try await readLog(pool) }
    try await pool.runLocking { connection in
      try connection.transaction { connection in
        let tables = try MirrorGroupTables(entering: configuration.name, connection)
        try tables.forgetWanted(connection)
        let schema = configuration.schema
        try TableLocks.lock(
          configuration.tables.map { "\(quoted(Name(schema))).\(quoted(Name($0)))" }, .writers,
          connection)
        for table in configuration.tables {
          try tables.watch(table, column: configuration.column, in: schema, connection)
        }
      }
    }
  }

  /// Makes the slot and the publication of the group. The reader of the log records new values.
  private func readLog(_ pool: PostgresPool) async throws {
    let configuration = configuration
    try await pool.runLocking { connection in
      let isNew = try MirrorGroupTables(configuration.name, connection) == nil
      let tables = try connection.transaction { connection in
        let tables = try MirrorGroupTables(entering: configuration.name, connection)
        try tables.forgetWanted(connection)
        try tables.enterLog(configuration, connection)
        return tables
      }
      do {
        try tables.beginLog(configuration, connection)
      } catch {
        let isBroken = (error as? PostgresError).map { $0.kind != .server } ?? false
        // Without a connection, the same command goes on.
        if !isNew || isBroken { throw error }
        do {
          try tables.remove(connection)
        } catch let failure {
          throw MirrorLeft(
            name: configuration.name, cause: error, parts: ["the group and its slot (\(failure))"])
        }
        throw error
      }
    }
  }

  // MARK: Mirrors

  /// Returns the names of the group's mirrors.
  package func mirrors() -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return names.filter { name in
      name.begins(with: configuration.name + "-") && MirrorConfiguration.isName(name)
        && (try? mirror(name).configuration())?.group == configuration.name
    }.sorted()
  }

  /// Returns the folder of a mirror.
  package func mirror(_ name: String) -> MirrorFolder { MirrorFolder(name, in: root) }

  /// Returns the values without a mirror.
  package func wanted() async throws -> [WantedSpace] {
    try await PostgresPool.once(configuration.database) { try await wanted($0) }
  }

  /// Returns the tables whose new values are not recorded any more: their definitions have changed.
  package func stops() async throws -> [MirrorStop] {
    let name = configuration.name
    return try await PostgresPool.once(configuration.database) { pool in
      try await pool.run { try MirrorGroupTables(name, $0)?.stops($0) ?? [] }
    }
  }

  private func wanted(_ pool: PostgresPool) async throws -> [WantedSpace] {
    let name = configuration.name
    return try await pool.run { connection in
      guard let tables = try MirrorGroupTables(name, connection) else {
        throw MirrorFault(
          description: "the database has no group \(name); make it with `ferryd mirror adopt`")
      }
      return try tables.wanted(connection)
    }
  }

  /// Records the values that the log may lack.
  private func recordMissed(_ pool: PostgresPool) async throws {
    guard configuration.capture == .log else { return }
    let configuration = configuration
    try await pool.run {
      try MirrorGroupTables(configuration.name, $0)?.recordMissed(configuration, $0)
    }
  }

  /// Begins the missing mirror of each value. A failure for one value stops no other one.
  ///
  /// - Returns: The names of the mirrors, and the failures.
  package func beginMirrors() async throws -> (mirrors: [String], failed: [WantedSpace]) {
    try await PostgresPool.once(configuration.database) { try await beginMirrors($0) }
  }

  private func beginMirrors(
    _ pool: PostgresPool
  ) async throws -> (mirrors: [String], failed: [WantedSpace]) {
    try await recordMissed(pool)
    let wanted = try await wanted(pool)
    let results = try await withThrowingTaskGroup(of: Beginning.self) { group in
      var results: [Beginning] = []
      for (place, space) in wanted.enumerated() {
        if place >= Self.beginningMax, let result = try await group.next() {
          results.append(result)
        }
        group.addTask { try await begin(space.value, pool) }
      }
      for try await result in group { results.append(result) }
      return results
    }
    let failed = results.compactMap(\.failure).sorted { $0.value < $1.value }
    return (results.filter { $0.failure == nil }.map(\.name).sorted(), failed)
  }

  /// The name of a new mirror, or the failure.
  private struct Beginning {
    var name = ""
    var failure: WantedSpace?
  }

  private func begin(_ value: String, _ pool: PostgresPool) async throws -> Beginning {
    var result = Beginning()
    do {
      let mirror = try configuration.mirror(for: value)
      result.name = mirror.name
      _ = try await MirrorAdopter(
        mirror, in: self.mirror(mirror.name), token: configuration.token
      ).begin()
    } catch {
      try Task.checkCancellation()
      let reason = (error as? PostgresError)?.message ?? "\(error)"
      result.failure = WantedSpace(value: value, reason: reason)
    }
    let (group, reason) = (configuration.name, result.failure?.reason)
    try await pool.run { connection in
      try MirrorGroupTables(group, connection)?.resolve(value, reason: reason, connection)
    }
    return result
  }

  // MARK: Running

  /// Runs all mirrors, and begins those of new values, until the task is cancelled.
  ///
  /// - Parameters:
  ///   - log: gets failures.
  ///   - runMirror: runs one mirror over the given connections until the task is cancelled.
  package func run(
    log: @escaping Mirror.Log,
    runMirror: @escaping @Sendable (_ name: String, MirrorFolder, MirrorDatabase) async -> Void
  ) async throws {
    let lock = try folder.lock()
    defer { withExtendedLifetime(lock) {} }
    let database = try MirrorDatabase(
      url: configuration.database, connections: Self.connections,
      replicas: ReplicaSharing(threads: Self.threads, warmMax: Self.warmFiles))
    do {
      try await run(database, log, runMirror)
      await database.close()
    } catch {
      await database.close()
      throw error
    }
  }

  private func run(
    _ database: MirrorDatabase, _ log: @escaping Mirror.Log,
    _ runMirror: @escaping @Sendable (String, MirrorFolder, MirrorDatabase) async -> Void
  ) async throws {
    let name = configuration.name
    let (tables, role) = try await database.pool.run {
      (try MirrorGroupTables(name, $0), try $0.role())
    }
    if let warning = role.warning { log("role", warning) }
    guard let tables else {
      throw MirrorFault(
        description: "the database has no group \(name); make it with `ferryd mirror adopt`")
    }
    let payload = tables.payload
    let (wakes, wake) = try database.wakes(of: payload)
    defer { database.endWakes(of: payload) }
    // It also records new values, while no mirror runs.
    let reader =
      configuration.capture == .log
      ? try database.reader(ofGroup: tables.number, in: folder.path, log) : nil
    reader?.use()
    wake.yield()
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        // Failed values are tried again.
        while (try? await Task.sleep(for: Self.retryPause)) != nil { wake.yield() }
      }
      var running: Set<String> = []
      for await _ in wakes {
        do {
          if let reader {
            // Perhaps no mirror runs.
            let isDropped = try await database.pool.run {
              try tables.replaceDroppedPublication(pausing: reader, $0)
            }
            if isDropped { log("publication", "it was dropped, so all rows are compared") }
          }
          for failed in try await beginMirrors(database.pool).failed {
            log("value", "\(failed.value) has no mirror: \(failed.reason ?? "")")
          }
          // The slot is there again.
          reader?.use()
        } catch {
          if Task.isCancelled { break }
          log("error", "\(error)")
        }
        for name in mirrors() where running.insert(name).inserted {
          group.addTask { await runMirror(name, mirror(name), database) }
        }
      }
      group.cancelAll()
    }
  }

  // MARK: Removing

  /// Removes the group's mirrors, triggers and folder. The tables stay, with their rows.
  ///
  /// - Parameter forgets: see ``Mirror/remove(_:forgets:)``.
  /// - Returns: Parts of tables that are not as they were before the group.
  package func remove(forgets: Bool) async throws -> [String] {
    let lock = try folder.lock()
    defer { withExtendedLifetime(lock) {} }
    for name in mirrors() { try await Mirror.remove(mirror(name), forgets: forgets) }
    let name = configuration.name
    let changed = try await PostgresPool.once(configuration.database) { pool in
      try await pool.runLocking { try MirrorGroupTables(name, $0)?.remove($0) ?? [] }
    }
    try folder.remove()
    return changed
  }

  /// Runs `body` with connections and a reader for several mirrors of the group; `nil` if triggers
  /// capture.
  package func sharing<Value>(
    _ body: (MirrorDatabase?) async throws -> Value
  ) async throws -> Value {
    guard configuration.capture == .log else { return try await body(nil) }
    let database = try MirrorDatabase(
      url: configuration.database, connections: Self.connections)
    do {
      let result = try await body(database)
      await database.close()
      return result
    } catch {
      await database.close()
      throw error
    }
  }
}
