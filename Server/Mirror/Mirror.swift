import FerryPersistence
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// A sync of PostgreSQL tables with a space, both ways.
///
/// A mirror is a device of the space. Its replica is a SQLite file, with the queue, the conflicts
/// and the guarantees of every device. The mirror carries rows between the file and PostgreSQL:
///
/// - **Out.** Triggers of the file record changed rows. One transaction of PostgreSQL writes all
///   rows of one state of the file.
/// - **In.** Triggers of PostgreSQL record the writes of programs in the same transaction. The
///   mirror applies them to its replica. PostgreSQL stores them until the space has them.
///
/// Each step may run again: a process or a server can be killed at any moment.
package final class Mirror: Sendable {
  package let configuration: MirrorConfiguration
  private let replica: Replica
  private let rounds: MirrorRounds
  private let database: MirrorDatabase
  /// True if no other mirror uses the database's connections.
  private let ownsDatabase: Bool
  let ledger: MirrorLedger
  var pool: PostgresPool { database.pool }
  /// An event in one word, and a description.
  package typealias Log = @Sendable (_ event: String, _ detail: String) -> Void
  private let log: Log
  /// Held as long as this value lives.
  private let lock: MirrorLock
  /// Reads PostgreSQL's log; `nil` if triggers capture.
  private let reader: LogReader?
  /// The number of the mirror's group.
  private let group: Int64?

  private init(
    _ configuration: MirrorConfiguration, _ folder: MirrorFolder, _ replica: Replica,
    _ database: MirrorDatabase, ownsDatabase: Bool, _ ledger: MirrorLedger, group: Int64?,
    _ numbers: MirrorNumbers?, _ lock: MirrorLock, _ log: @escaping Log
  ) throws {
    self.group = group
    (self.lock, self.ownsDatabase) = (lock, ownsDatabase)
    (self.configuration, self.replica) = (configuration, replica)
    (self.database, self.ledger, self.log) = (database, ledger, log)
    switch (configuration.capture, configuration.group) {
    case (.triggers, _): reader = nil
    case (.log, let name?):
      guard let group else {
        throw MirrorFault(
          description: "the database has no group \(name); make it with `ferryd mirror adopt`")
      }
      reader = try database.reader(ofGroup: group, in: folder.path, log)
    case (.log, nil):
      reader = try LogReader(
        url: configuration.database, number: ledger.number, folder: folder.path, log: log
      ) { _ in database.wake("\(ledger.number)") }
    }
    var sides = MirrorRounds.Sides(
      configuration, ledger, replica: replica, pool: database.pool, log: log
    ) { [path = folder.replica] in try SQLiteConnection(path: path, mode: .readOnly) }
    (sides.reader, sides.numbers) = (reader, numbers)
    sides.save = { try folder.save($0) }
    rounds = MirrorRounds(sides)
  }

  // MARK: Opening

  /// Opens an existing mirror.
  ///
  /// - Parameters:
  ///   - shared: the connections of all mirrors of a group; `nil` for own ones.
  package static func open(
    _ folder: MirrorFolder, sharing shared: MirrorDatabase? = nil,
    log: @escaping Log = { _, _ in }
  ) async throws -> Mirror {
    let configuration = try folder.configuration()
    let lock = try folder.lock()
    let database = try shared ?? MirrorDatabase(url: configuration.database)
    do {
      let (ledger, group, role, origin) = try await database.pool.run { connection in
        let ledger = try MirrorLedger(configuration.name, connection)
        let origin = try ledger.map { _ in try MirrorKeys.origin(connection) }
        return (ledger, try configuration.group(connection), try connection.role(), origin)
      }
      // A group has one role for all mirrors.
      if shared == nil, let warning = role.warning { log("role", warning) }
      guard let ledger else { throw MirrorFault.missing(configuration.name) }
      let numbers =
        configuration.adoptions.isEmpty
        ? nil : MirrorNumbers(configuration, origin: origin ?? "", database.pool)
      var surroundings = ReplicaSurroundings.system
      surroundings.numbering = numbers
      surroundings.isAuthority = !configuration.adoptions.isEmpty
      surroundings.watch.isAlone = true
      // PostgreSQL has the captured writes until the space has them, and would give them again.
      surroundings.sendsDurably = true
      let server = try ServerAddress(checking: configuration.server, space: configuration.space)
      let replica = try await database.openReplica(folder.replica, of: server, in: surroundings)
      return try Mirror(
        configuration, folder, replica, database, ownsDatabase: shared == nil, ledger, group: group,
        numbers, lock, log)
    } catch {
      if shared == nil { await database.close() }
      throw error
    }
  }

  package func close() async {
    // The mirrors of a group share the reader.
    if configuration.group == nil { await reader?.close() }
    await replica.close()
    if ownsDatabase { await database.close() }
  }

  // MARK: Running

  /// The time between two checks of the triggers while nothing travels.
  private static let checkPause = Duration.seconds(30)
  /// The pause after a first failure, and after each wait for a row locked by a program.
  private static let pauseMin = Duration.milliseconds(250)

  /// Carries rows both ways until the task is cancelled. If one side is unreachable, it waits for
  /// it.
  ///
  /// - Parameter onRound: gets the figures after each round.
  /// - Throws: ``MirrorStopped`` if writes of programs are not recorded.
  package func run(
    onRound: @escaping @Sendable (Figures) -> Void = { _ in }
  ) async throws {
    let payload = "\(ledger.number)"
    let (wakes, wake) = try database.wakes(of: payload, in: group)
    defer { database.endWakes(of: payload) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        await rounds.untilPrepared()
        try await replica.watch { [self] in
          if await rounds.readBeforePull() { return true }
          // It fails alike, and logs why.
          wake.yield()
          return false
        } onEvent: { event in
          if case .synced = event { wake.yield() }
        }
      }
      group.addTask { [self] in try await work(wakes, wake, onRound) }
      if configuration.hasViews { group.addTask { [self] in try await compareViews(wake) } }
      // Without triggers nothing reports a write.
      group.addTask {
        while true {
          try await Task.sleep(for: Self.checkPause)
          wake.yield()
        }
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// - Throws: ``MirrorStopped`` if writes of programs are not recorded.
  private func work(
    _ wakes: AsyncStream<Void>, _ wake: AsyncStream<Void>.Continuation,
    _ onRound: @Sendable (Figures) -> Void
  ) async throws {
    var state = MirrorRounds.State()
    var pause = Self.pauseMin
    // A former process may have recorded one.
    var hadFault = true
    wake.yield()
    for await _ in wakes {
      do {
        let hasMore = try await database.inTurn { try await rounds.run(&state) }
        if hadFault { try await rounds.recordStop(nil) }
        hadFault = false
        onRound(try await rounds.figures(isStopped: false, isComplete: !hasMore))
        if hasMore { wake.yield() }
        pause = Self.pauseMin
      } catch {
        if let stopped = error as? MirrorStopped, await !rounds.mayFollow(stopped) {
          log("stopped", "\(stopped); \(stopped.wayOut)")
          onRound(try await rounds.figures(isStopped: true))
          throw stopped
        }
        if Task.isCancelled { break }
        // Nothing travels until the right is granted.
        let isRefused = (error as? PostgresError)?.isAboutRights == true
        log(isRefused ? "stopped" : "error", "\(error)")
        // The space alone may be out of reach.
        if let figures = try? await rounds.figures(isStopped: isRefused) { onRound(figures) }
        try? await rounds.recordStop(error)
        hadFault = true
        // The database may be another one now, restored from a backup.
        state = MirrorRounds.State()
        try await Task.sleep(for: pause)
        // A program may end the transaction with the lock at any moment.
        let isWait = (error as? PostgresError)?.isWait == true
        pause = isWait ? Self.pauseMin : min(pause * 2, .seconds(10))
        wake.yield()
      }
    }
    try Task.checkCancellation()
  }

  /// Compares the copies of views, as long as the mirror runs. It has a connection of its own: all
  /// other rows travel meanwhile.
  private func compareViews(_ wake: AsyncStream<Void>.Continuation) async throws {
    await rounds.untilPrepared()
    var options = PostgresPool.Options()
    options.feelsPulse = true
    let pool = try PostgresPool(
      url: configuration.database, connections: 1, settings: .mirrors, options: options)
    let views = MirrorViews(configuration.schema, ledger, pool, log) { [rounds] isFilled in
      if isFilled { rounds.prepareAgain() }
      wake.yield()
    }
    while !Task.isCancelled {
      await views.refresh(rounds.views)
      try? await Task.sleep(for: ViewSchedule.lookPause)
    }
    await pool.close()
    try Task.checkCancellation()
  }

  /// Prepares an adoption. If this fails for good before the first row has travelled, the mirror is
  /// removed: triggers, entry and folder.
  ///
  /// - Returns: `true` if the adoption begins, and the space has rows of the tables already.
  package static func prepareAdoption(_ folder: MirrorFolder) async throws -> Bool {
    let mirror = try await open(folder)
    do {
      let hasRows = try await mirror.rounds.prepareAdoption()
      await mirror.close()
      return hasRows
    } catch {
      let begun = try? await mirror.rounds.begun()
      await mirror.close()
      if let begun, !begun.hasRows, !error.isPassing {
        try await remove(mirror, folder, isReturning: begun.isReturning, after: error)
      }
      throw error
    }
  }

  /// Uploads the rows of adopted tables until all are in the space or recorded as missing there, in
  /// this process.
  ///
  /// - Parameter onProgress: gets the progress of each table after each slice.
  package func adoptRows(
    _ onProgress: @escaping @Sendable ([AdoptionProgress]) -> Void
  ) async throws {
    try await rounds.adoptRows(onProgress)
  }

  // MARK: Looking

  /// The progress of a mirror.
  package struct Status: Sendable, Equatable {
    package var name: String
    package var space: String
    /// The sequence of the space's last change in the tables.
    package var applied: Int64
    /// The newest change announced by the server.
    package var head: Int64
    /// Writes of programs missing in the space.
    package var captured: Int64
    package var deferred: [DeferredRow]
    /// The number of all such rows; ``deferred`` has the oldest ones.
    package var deferredCount: Int64
    /// The number of deferred rows that the mirror's own file cannot hold, such as the
    /// second one of two rows with one unique value. A person has to change one of them.
    package var waiting: Int
    /// Adopted tables.
    package var adopted: [AdoptionProgress]
    /// Rows that the space does not have as programs have written or deleted them. They stay so.
    package var unsent: [DeferredRow]
    /// The number of all such rows; ``unsent`` has the oldest ones.
    package var unsentCount: Int64
    /// Tables whose writes are not recorded: the mirror carries no rows.
    package var stops: [MirrorStop]
    /// The reason why the last round could not read or write the tables as they are; empty if it
    /// could.
    package var fault: String
    /// Views whose changes do not all reach the space.
    package var views: [FailingView]
    /// Views never compared yet: the space's rows of them stay as they are.
    package var unfilled: [String]
    /// The log kept by PostgreSQL for the mirror; `nil` if triggers capture.
    package var log: KeptLog?
    package var capture: MirrorCapture
    /// The reason against the log, if the mirror has chosen triggers itself.
    package var captureReason: String?
    /// The role with which the mirror works in the database.
    package var role: PostgresRole
  }

  /// The log that PostgreSQL keeps for a mirror.
  package struct KeptLog: Sendable, Equatable {
    /// The kept log, in bytes; `nil` if the slot is lost: all rows are compared.
    package var bytes: Int64?
    /// True if PostgreSQL keeps it without a limit, and so may fill the disk.
    package var isUnlimited: Bool
    /// True if PostgreSQL promises to keep it: it is within the limits.
    package var isSafe: Bool
  }

  package func status() async throws -> Status { try await rounds.status() }

  // MARK: Comparing

  /// The side with the right values of differing rows.
  package enum Side: String, Sendable, CaseIterable {
    /// The tables get the space's rows.
    case tables
    /// The space gets the tables' rows, as writes of now.
    case space
  }

  /// A row with different forms in the space and in PostgreSQL.
  package struct Difference: Sendable, Equatable {
    package var table: Name
    package var key: [String]
    package var isInTable: Bool
    package var isInSpace: Bool
  }

  /// Compares all rows with the space's, after all writes in progress.
  package func verify(repairing side: Side? = nil) async throws -> [Difference] {
    if configuration.hasViews {
      // The rows of a copy travel after the first pull. A comparison of all rows fails alike.
      _ = try? await rounds.runOnce()
      try Task.checkCancellation()
      await MirrorViews(configuration.schema, ledger, pool, log).refresh(rounds.views, all: true)
    }
    return try await rounds.verify(repairing: side)
  }
}
