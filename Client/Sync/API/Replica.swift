import FerryProtocol
import Networking
import SQLite
import Synchronization

/// A device's copy of a space: a SQLite file whose tracked tables sync with a Ferry server.
///
/// Write plain SQL; what it does to tracked tables is recorded in the same transaction and sent
/// with the next ``sync(progress:)``. Reads and writes never wait for the network.
///
/// ```swift
/// let replica = try await Replica.open("notes.db")
/// try await replica.write { try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)") }
/// try await replica.track("notes")
/// try await replica.connect(to: "http://127.0.0.1:8080", space: "demo")
/// try await replica.sync()
/// ```
public final class Replica: Sendable {
  /// The file.
  public let path: String
  let thread: ReplicaThread
  let readers: ReaderPool
  let engine: SyncEngine
  let conflictListeners = ConflictListeners()
  private let watching = Mutex<[ObjectIdentifier: Wakeups]>([:])

  /// Opens `path` as a replica, or makes it one. The user's own tables stay as they are.
  ///
  /// A file that is made is readable by its owner alone.
  ///
  /// - Parameters:
  ///   - transport: what carries requests; libcurl unless given.
  ///   - credentials: where the token is kept; a file beside the replica unless given.
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)``.
  public static func open(
    _ path: String, transport: any Transport = CurlTransport(),
    credentials: any CredentialStore = FileCredentialStore()
  ) async throws -> Replica {
    var surroundings = Surroundings.system
    surroundings.credentials = credentials
    return try await open(path, transport: transport, in: surroundings)
  }

  /// The same in surroundings of the caller's.
  package static func open(
    _ path: String, transport: any Transport, in surroundings: Surroundings
  ) async throws -> Replica {
    let thread = try await ReplicaThread.open(path: path, in: surroundings)
    return Replica(path: path, thread: thread, transport: transport, in: surroundings)
  }

  private init(
    path: String, thread: ReplicaThread, transport: any Transport, in surroundings: Surroundings
  ) {
    self.path = path
    self.thread = thread
    readers = ReaderPool(path: path, in: surroundings)
    engine = SyncEngine(
      thread: thread, path: path, transport: transport, surroundings: surroundings,
      shared: SyncAPI.Shared())
  }

  // MARK: Data

  /// Runs `body` in one transaction: committed when it returns, rolled back when it throws.
  ///
  /// - Throws: what `body` throws; ``ReplicaError/database(_:code:)``.
  @discardableResult
  public func write<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    let result = try await typed { try await thread.run { try $0.write(body) } }
    wakeWatchers()
    return result
  }

  /// Runs `body`, which makes many transactions one after another without an `await` between:
  /// for imports. Check ``BulkWriter/isCancelled`` now and then.
  public func writeInBulk<T: Sendable>(
    _ body: @escaping @Sendable (BulkWriter) throws -> T
  ) async throws -> T {
    let cancelled = CancellationFlag()
    let result = try await withTaskCancellationHandler {
      try await typed {
        try await thread.run { try body(BulkWriter(file: $0, cancelled: cancelled)) }
      }
    } onCancel: {
      cancelled.set()
    }
    wakeWatchers()
    return result
  }

  /// Runs `body` on a snapshot of the file, beside writes and syncs that are under way. A pull is
  /// seen whole or not at all.
  public func read<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await typed { try await readers.read(body) }
  }

  // MARK: Setting up

  /// Records from now on what is written to these ordinary tables, each with one text primary
  /// key; rows that they hold already are recorded as inserted.
  ///
  /// - Parameter direction: whether others' changes are applied here; see
  ///   ``track(_:creatingKey:direction:)``.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)``.
  public func track(_ tables: Name..., direction: TrackDirection = .twoWay) async throws {
    try await track(tables, direction: direction)
  }

  /// Records from now on what is written to these tables.
  ///
  /// - Parameter creatingKey: make tables that are absent here from what has been pulled for
  ///   them, with untyped columns and a key column of this name.
  /// - Parameter direction: whether others' changes are applied here. A table that is tracked
  ///   already changes its direction; where it becomes two-way, the next sync pulls everything anew.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)``.
  public func track(
    _ tables: [Name], creatingKey key: Name? = nil, direction: TrackDirection = .twoWay
  ) async throws {
    try await typed {
      try await thread.run { try $0.track(tables, creatingKey: key, direction: direction) }
    }
  }

  /// Stops recording a table. Its rows, and what is pending for it, stay.
  public func untrack(_ table: Name) async throws {
    try await typed { try await thread.run { try $0.untrack(table) } }
  }

  /// Sets the server and checks that it knows the space. Where the server lets this caller, the
  /// space is made. A token that goes to another machine over `http` is warned of in ``log(limit:)``
  /// and ``status()``.
  ///
  /// - Parameters:
  ///   - token: the bearer token, which goes to the credential store and not into the database.
  ///   - certificateAuthorities: a PEM file of authorities that vouch for the server besides the
  ///     system's; its path is kept.
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/refused(_:)``,
  ///   ``ReplicaError/untrusted(_:)``; then nothing is set.
  @discardableResult
  public func connect(
    to url: String, space: String, token: String? = nil, certificateAuthorities: String? = nil
  ) async throws -> SpaceInfo {
    guard let space = SpaceName(space) else {
      throw ReplicaError.refused(
        Problem(
          .unknownSpace, "'\(space)' is not a space's name: 1 to 63 of A-Z a-z 0-9 . _ -"))
    }
    let address = ServerAddress(
      url: url, space: space, certificateAuthorities: certificateAuthorities)
    return try await typed {
      let info = try await find(ServerAccess(address: address, token: token))
      let offset = engine.shared.clockOffset
      try await thread.run { file in
        try file.configure(address, token: token)
        try file.saveClockOffset(offset)
      }
      return info
    }
  }

  private func find(_ server: ServerAccess) async throws -> SpaceInfo {
    let api = SyncAPI(
      server, transport: engine.transport, surroundings: engine.surroundings,
      shared: engine.shared)
    do {
      return try await engine.retrying { try await api.space(create: true) }
    } catch ReplicaError.refused(let problem) where problem.code == .forbidden {
      // Only an admin's token may make spaces; any token may look.
      return try await engine.retrying { try await api.space(create: false) }
    }
  }

  // MARK: Syncing

  /// Pulls, pushes, and pulls again what others did meanwhile. Cancelling the task stops at the
  /// next step; nothing is lost and the next sync goes on from there.
  @discardableResult
  public func sync(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> SyncReport {
    try await typed {
      let report = try await engine.sync(progress: progress)
      try await tellConflicts()
      return report
    }
  }

  /// Sends what is pending, after applying what the server has (seed row S1.5).
  @discardableResult
  public func push(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> SyncReport {
    try await typed {
      let report = try await engine.push(progress: progress)
      try await tellConflicts()
      return report
    }
  }

  /// Applies what the server has and this replica lacks, all at once.
  @discardableResult
  public func pull(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> SyncReport {
    try await typed {
      let report = try await engine.pull(progress: progress)
      try await tellConflicts()
      return report
    }
  }

  /// What a watching replica tells.
  public enum WatchEvent: Sendable {
    /// Something was exchanged.
    case synced(SyncReport)
    /// The server cannot be reached; tried again with growing pauses.
    case offline(ReplicaError)
    /// The live connection stands.
    case connected
  }

  /// Keeps the replica in step until the task is cancelled: local writes are sent at once, and a
  /// live connection tells of others' work. Where it fails, polling takes its place.
  ///
  /// - Throws: ``ReplicaError/cancelled``; errors that time does not heal, such as a revoked token.
  public func watch(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in },
    onEvent: @escaping @Sendable (WatchEvent) -> Void = { _ in }
  ) async throws {
    let wakeups = Wakeups()
    watching.withLock { $0[ObjectIdentifier(wakeups)] = wakeups }
    defer { watching.withLock { $0[ObjectIdentifier(wakeups)] = nil } }
    let watcher = Watcher(engine: engine, wakeups: wakeups)
    try await typed {
      try await watcher.run(progress: progress) { [self] event in
        switch event {
        case .synced(let report):
          if conflictListeners.oldest != nil { Task { try? await tellConflicts() } }
          onEvent(.synced(report))
        case .offline(let error): onEvent(.offline(error))
        case .connected: onEvent(.connected)
        }
      }
    }
  }

  // MARK: Looking

  /// Where the replica stands.
  public func status() async throws -> ReplicaStatus {
    try await typed { try await thread.run { try $0.status() } }
  }

  /// Warnings about security; see ``ReplicaStatus/warnings``.
  public func warnings() async throws -> [String] {
    try await typed { try await thread.run { try $0.warnings() } }
  }

  /// Operations that the server has not confirmed, oldest first.
  public func pendingOperations(limit: Int = 1_000) async throws -> [PendingOperation] {
    try await typed { try await thread.run { try $0.pendingOperations(limit: limit) } }
  }

  /// Changes that were pulled and wait, with the reason.
  public func waitingChanges(limit: Int = 1_000) async throws -> [WaitingChange] {
    try await typed { try await thread.run { try $0.waitingChanges(limit: limit) } }
  }

  /// Tables that changes wait for which are not here yet, or of which columns are not.
  public func tablesWaitedFor() async throws -> [Name] {
    try await typed { try await thread.run { try $0.tablesWaitedFor() } }
  }

  /// What happened to this replica, newest first; the last 1,000 entries are kept.
  public func log(limit: Int = 1_000) async throws -> [LogEntry] {
    try await typed { try await thread.run { try $0.log(limit: limit) } }
  }

  /// Tells those that watch that there is something to send.
  func wakeWatchers() {
    for wakeups in watching.withLock({ Array($0.values) }) { wakeups.wake() }
  }

  /// Errors leave this type as ``ReplicaError``, or as what the caller's own closure threw.
  func typed<T: Sendable>(_ body: () async throws -> T) async throws -> T {
    do {
      return try await body()
    } catch let error as SQLiteError {
      throw ReplicaError(error)
    } catch let error as MalformedMessage {
      throw ReplicaError(error)
    } catch let error as ForeignAnswer {
      throw ReplicaError(error)
    } catch let error as TransportError {
      throw ReplicaError(error)
    } catch let error as NetworkError {
      throw ReplicaError(error)
    } catch is CancellationError {
      throw ReplicaError.cancelled
    }
  }
}
