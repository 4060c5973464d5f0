import FerryNetworking
import FerryPersistence
import FerryPlatform
import FerryProtocol
import Synchronization

/// A device's copy of a space: a SQLite file with tracked tables that sync with a Ferry server.
///
/// Write plain SQL. The same transaction records changes to tracked tables, and the next
/// ``sync(progress:)`` sends them. Reads and writes never wait for the network.
///
/// ```swift
/// let replica = try await Replica.open(
///   "notes.db", server: "http://127.0.0.1:8080", space: "demo")
/// try await replica.write { try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)") }
/// try await replica.track("notes")
/// try await replica.sync()
/// ```
///
/// The path `:memory:` is a replica in memory, for tests and previews. It can do everything a file
/// can. Each call of `open` creates another one; ``close()`` deletes it with the token and the
/// files of missions. Reads and writes run one at a time.
public final class Replica: DatabaseAccess {
  /// The path of the file, or `:memory:`.
  public let path: String
  let thread: ReplicaThread
  let readers: ReaderPool
  let engine: SyncEngine
  let conflictListeners = ConflictListeners()
  /// The number of the space in the file; 1 for the file's first one.
  let number: Int
  /// The watches of all spaces of the file.
  let watches: WatchList
  /// Work beside the file, of all spaces of the file.
  let companions: ReplicaCompanions
  /// The replicas of joined spaces, by number; only the first space's replica keeps them.
  let joined = Mutex<[Int: Replica]>([:])

  /// Opens `path` as a replica, or turns it into one. The user's own tables stay unchanged.
  ///
  /// Only the owner can read a newly created file.
  ///
  /// - Parameters:
  ///   - transport: carries requests; libcurl by default.
  ///   - credentials: keeps the token; by default in a file beside the replica.
  ///   - log: gets each later entry of the replica's log; see ``LogEntry``.
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)``; ``ReplicaError/busy(_:)`` if another program
  ///   locks the file for more than 10 s.
  public static func open(
    _ path: String, transport: any Transport = SystemTransport(),
    credentials: any CredentialStore = FileCredentialStore(),
    log: (@Sendable (LogEntry) -> Void)? = nil
  ) async throws -> Replica {
    var surroundings = ReplicaSurroundings.system
    surroundings.credentials = credentials
    surroundings.log = log
    return try await open(path, transport: transport, in: surroundings)
  }

  /// Opens `path` as the replica of a space, without the network.
  ///
  /// The first sync makes the first contact. It creates the space if the token permits it. A
  /// program may thus start without a network, and the user may work at once.
  ///
  /// ```swift
  /// let replica = try await Replica.open(
  ///   "notes.db", server: "https://sync.example.org", space: "team", token: .fixed(token))
  /// ```
  ///
  /// - Parameters:
  ///   - url: the server's address: `https://` or `http://`, host, optional port and path. A
  ///     replica may move to another address of the space.
  ///   - space: 1 to 63 characters of `A-Z a-z 0-9 . _ -`.
  ///   - token: the source of the bearer token; by default the token stored for the file.
  ///   - certificateAuthorities: a PEM file of trusted authorities besides the system's.
  ///   - transport: carries requests; libcurl by default.
  ///   - credentials: keeps the token; by default in a file beside the replica.
  ///   - log: gets each later entry of the replica's log; see ``LogEntry``.
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)``, also if the file belongs to another space;
  ///   ``ReplicaError/badAddress(_:)``; ``ReplicaError/refused(_:)`` if the space's name is not
  ///   valid.
  public static func open(
    _ path: String, server url: String, space: String, token: TokenSource = .stored,
    certificateAuthorities: String? = nil, transport: any Transport = SystemTransport(),
    credentials: any CredentialStore = FileCredentialStore(),
    log: (@Sendable (LogEntry) -> Void)? = nil
  ) async throws -> Replica {
    var surroundings = ReplicaSurroundings.system
    surroundings.credentials = credentials
    surroundings.log = log
    let address = try ServerAddress(
      checking: url, space: space, certificateAuthorities: certificateAuthorities)
    return try await open(
      path, server: address, token: token, transport: transport, in: surroundings)
  }

  /// Opens `path` as the replica of a space, in the caller's surroundings.
  package static func open(
    _ path: String, server address: ServerAddress, token source: TokenSource = .stored,
    transport: any Transport = SystemTransport(), in surroundings: ReplicaSurroundings
  ) async throws -> Replica {
    let replica = try await open(
      path, transport: transport, tokens: source.keeper(for: address), in: surroundings)
    do {
      try await replica.thread.run { try $0.settings.prepare(address, source) }
    } catch {
      throw ReplicaError(error)
    }
    return replica
  }

  /// Opens `path` as a replica in the caller's surroundings.
  package static func open(
    _ path: String, transport: any Transport, in surroundings: ReplicaSurroundings
  ) async throws -> Replica {
    try await open(path, transport: transport, tokens: nil, in: surroundings)
  }

  private static func open(
    _ path: String, transport: any Transport, tokens: TokenKeeper?,
    in surroundings: ReplicaSurroundings
  ) async throws -> Replica {
    let memory = MemoryPlace(path: path)
    let surroundings = memory == nil ? surroundings : surroundings.inMemory()
    let thread = try await ReplicaThread.open(path: path, base: memory?.base, in: surroundings)
    return Replica(
      path: path, memory: memory, thread: thread, transport: transport, tokens: tokens,
      in: surroundings)
  }

  private init(
    path: String, memory: MemoryPlace?, thread: ReplicaThread, transport: any Transport,
    tokens: TokenKeeper?, in surroundings: ReplicaSurroundings
  ) {
    self.path = path
    self.thread = thread
    number = 1
    (watches, companions) = (WatchList(), ReplicaCompanions(memory: memory))
    readers =
      memory != nil || surroundings.warm != nil
      ? thread.sharedReaders() : thread.readers(of: path, in: surroundings)
    engine = SyncEngine(
      thread: thread, path: memory?.base ?? path, transport: transport,
      surroundings: surroundings, shared: SyncAPI.Shared(), tokens: tokens)
  }

  /// Creates the replica of a joined space.
  ///
  /// - Parameters:
  ///   - thread: lends the space's ledger.
  ///   - place: the beginning of the paths of the space's files.
  ///   - tokens: tokens fetched by the application.
  init(
    joined number: Int, of first: Replica, thread: ReplicaThread, place: String,
    tokens: TokenKeeper?
  ) {
    (path, readers, watches) = (first.path, first.readers, first.watches)
    companions = first.companions
    (self.number, self.thread) = (number, thread)
    engine = SyncEngine(
      thread: thread, path: place, transport: first.engine.transport,
      surroundings: first.engine.surroundings, shared: SyncAPI.Shared(), tokens: tokens)
  }

  // MARK: Topics

  /// Operations recorded here, and undoing them.
  public var operations: Operations { Operations(thread: thread, watches: watches) }

  /// Operations rejected by the server, and the answers to them.
  public var quarantine: Quarantine { Quarantine(thread: thread, watches: watches) }

  /// Unconfirmed changes of upload-only tables.
  public var uploads: Uploads { Uploads(thread: thread, watches: watches) }

  /// The spaces of the file.
  public var spaces: Spaces { Spaces(replica: self) }

  // MARK: Data

  /// Runs `body` in one transaction: committed when it returns, rolled back when it throws.
  ///
  /// - Throws: the error of `body`; ``ReplicaError/database(_:code:)``.
  @discardableResult
  public func write<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    let result = try await thread.call { try $0.write(body) }
    wakeWatchers()
    return result
  }

  /// Runs `body` for many transactions one after another without an `await` between; for imports.
  /// Check ``BulkWriter/isCancelled`` now and then.
  @discardableResult
  public func writeInBulk<T: Sendable>(
    _ body: @escaping @Sendable (BulkWriter) throws -> T
  ) async throws -> T {
    // Earlier transactions stay if a later one fails.
    defer { wakeWatchers() }
    return try await ReplicaError.converting {
      try await CancellationFlag.whileRunning { cancelled in
        try await thread.run {
          try body(BulkWriter(file: $0, cancelled: cancelled))
        }
      }
    }
  }

  /// Runs `body` on a snapshot of the file, beside current writes and syncs. The snapshot has all
  /// of a pull or nothing of it. Eight reads run at once. If the task is cancelled, a running
  /// statement ends, and the call throws ``ReplicaError/cancelled``.
  public func read<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await ReplicaError.converting { try await readers.read(body) }
  }

  // MARK: Setting up

  /// Starts to record writes to these ordinary tables, each with a primary key. Records their existing
  /// rows as inserted.
  ///
  /// - Parameter direction: whether others' changes are applied here; see
  ///   ``track(_:creatingKey:direction:identity:progress:)``.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)``.
  public func track(
    _ tables: Name..., direction: TrackDirection = .twoWay, identity: KeyIdentity? = nil
  ) async throws {
    try await track(tables, direction: direction, identity: identity)
  }

  /// Starts to record writes to these tables.
  ///
  /// - Parameter creatingKey: the key column's name for tables absent here. The replica creates
  ///   them from the pulled records, with untyped columns.
  /// - Parameter direction: whether others' changes are applied here. For a table tracked already,
  ///   the direction changes. If it becomes two-way, the next sync pulls everything again.
  /// - Parameter identity: how the tables' keys become record identifiers; `nil` for the proposal
  ///   of ``keyProposal(for:)``. Tables with references to each other's numbers are tracked
  ///   together.
  /// - Parameter progress: called on the replica's thread while pulled changes are applied.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)``; ``ReplicaError/cancelled`` if the task is
  ///   cancelled. Then nothing has changed.
  public func track(
    _ tables: [Name], creatingKey key: Name? = nil, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil, progress: (@Sendable (SyncProgress) -> Void)? = nil
  ) async throws {
    try await ReplicaError.converting {
      try await thread.runUntilCancelled { file in
        try file.keptRetry.reporting(progress) {
          try file.track(tables, creatingKey: key, direction: direction, identity: identity)
        }
      }
    }
  }

  /// Stops recording a table. Rows and pending operations stay.
  public func untrack(_ table: Name) async throws {
    try await thread.call { try $0.tracking.untrack(table) }
  }

  /// Sets the server and throws if it does not know the space. Creates the space if the token
  /// permits it. If the token travels to another machine over `http`, ``log(limit:)`` and
  /// ``status()`` warn of it.
  ///
  /// - Parameters:
  ///   - token: the bearer token; it goes to the credential store and not into the database.
  ///   - certificateAuthorities: a PEM file of trusted authorities besides the system's; the
  ///     replica keeps the path.
  /// - Throws: ``ReplicaError/offline(_:)``, ``ReplicaError/refused(_:)``,
  ///   ``ReplicaError/untrusted(_:)``; then nothing is set.
  @discardableResult
  public func connect(
    to url: String, space: String, token: String? = nil, certificateAuthorities: String? = nil
  ) async throws -> SpaceInfo {
    let address = try ServerAddress(
      checking: url, space: space, certificateAuthorities: certificateAuthorities)
    return try await thread.exchange { [self] in
      let info = try await engine.find(ServerAccess(address: address, token: token))
      let offset = engine.shared.clockOffset
      try await thread.run { file in
        try file.settings.configure(address, token: token)
        try file.state.saveClockOffset(offset)
      }
      return info
    }
  }

  // MARK: Syncing

  /// Pulls, pushes, and pulls again the others' changes since. Cancelling the task stops at the
  /// next step; nothing is lost, and the next sync continues from there.
  ///
  /// All spaces of the file sync side by side; see ``Spaces/sync(progress:)``. If some of them fail, the
  /// others are complete when this throws.
  @discardableResult
  public func sync(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> SyncReport {
    let report = try await exchangeAll { try await $0.engine.sync(progress: $0.noting(progress)) }
    await notifyCompanions()
    return report
  }

  /// Sends pending operations, after applying the server's changes (SPEC.md §4).
  @discardableResult
  public func push(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> SyncReport {
    try await exchangeAll { try await $0.engine.push(progress: $0.noting(progress)) }
  }

  /// Sends pending operations without the server's changes, if the server permits this.
  @discardableResult
  package func send() async throws -> SyncReport {
    try await exchangeAll { try await $0.engine.send() }
  }

  /// Applies, all at once, the server's changes missing here.
  @discardableResult
  public func pull(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> SyncReport {
    let report = try await exchangeAll { try await $0.engine.pull(progress: $0.noting(progress)) }
    await notifyCompanions()
    return report
  }

  /// Returns a receiver of progress; it also records the progress as the replica's activity.
  func noting(
    _ progress: @escaping @Sendable (SyncProgress) -> Void
  ) -> @Sendable (SyncProgress) -> Void {
    { [activity = engine.activity] now in
      activity.update { $0.advance(now) }
      progress(now)
    }
  }

  // MARK: Looking

  /// Returns the replica's status.
  public func status() async throws -> ReplicaStatus {
    try await thread.call { try $0.reports.status() }
  }

  /// Returns warnings about security; see ``ReplicaStatus/warnings``.
  public func warnings() async throws -> [String] {
    try await thread.call { try $0.settings.warnings() }
  }

  /// Returns waiting pulled changes, with the reason.
  public func waitingChanges(limit: Int = 1_000) async throws -> [WaitingChange] {
    try await thread.call { try $0.waiting.oldest(limit) }
  }

  /// Returns the tables that changes wait for: absent ones, and those with absent columns.
  public func tablesWaitedFor() async throws -> [Name] {
    try await thread.call { try $0.kept.tables(refused: false) }
  }

  /// Returns the log of this replica, newest first; it keeps the last 1,000 entries.
  public func log(limit: Int = 1_000) async throws -> [LogEntry] {
    try await thread.call { try $0.log.newest(limit) }
  }

  /// Exchanges all spaces. Throws the first failure when all have ended.
  private func exchangeAll(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    try await thread.exchange { [self] in try await SpaceExchange(replica: self).all(body) }
  }

  /// Notifies watchers of operations to send.
  func wakeWatchers() { watches.wake() }
}
