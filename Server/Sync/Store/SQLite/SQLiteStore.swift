import FerryPlatform
import FerryProtocol
import FerrySQLite
import Synchronization

/// The embedded store: one SQLite file in the data directory, written by one thread and read by
/// a few others. Large packets have a thread of their own, which writes them in slices.
package final class SQLiteStore: SyncStore {
  /// The store's file in the data directory.
  package static let fileName = "ferry.sqlite"
  /// Threads of readers beside the writer.
  private static let readerCount = 3
  /// Reads and writes in the queue for a thread, of each kind.
  private static let waitingMax = 1_024

  let slice: WriteSlice
  private let writer: StoreThread
  /// The thread of large packets, which go one after the other: users take turns.
  private let stager: StoreThread
  private let stagerTurns = FairGate(FlowLimits(all: 1), waitingMax: SQLiteStore.waitingMax)
  /// The turns of calls to assign places in a space.
  let spaceTurns = SpaceTurns()
  private let readers: [StoreThread]
  /// Reads under way on each of them.
  private let load = Mutex([Int](repeating: 0, count: SQLiteStore.readerCount))
  /// One reader is left to the other users, so their reads begin at once.
  private let readTurns = FairGate(
    FlowLimits(all: SQLiteStore.readerCount, user: SQLiteStore.readerCount - 1),
    waitingMax: SQLiteStore.waitingMax)
  /// The second write waits at the thread, so the thread has no pause.
  private let writeTurns = FairGate(FlowLimits(all: 2), waitingMax: SQLiteStore.waitingMax)
  package let heads = HeadMoves()
  package let limits: Limits
  package let makeEpoch: @Sendable () -> Epoch
  let makeRandom: @Sendable () -> UInt64

  /// Opens `ferry.sqlite` in `directory`, which exists.
  package convenience init(directory: String) async throws(StoreError) {
    try await self.init(directory: directory, limits: .standard)
  }

  /// - Parameters:
  ///   - fileSystem: The SQLite VFS of the directory; `nil` for the operating system's.
  ///   - makeExecutor: A place for blocking work, by a name for debuggers.
  ///   - makeEpoch: The source of epochs of new spaces, and of timelines in them.
  ///   - makeRandom: The source of the random part of the server's own identifiers.
  package init(
    directory: String, limits: Limits, quotas: Quotas = .standard, slice: WriteSlice = .standard,
    fileSystem: String? = nil,
    makeExecutor: (String) -> any WorkExecutor = { ThreadExecutor(name: $0) },
    makeEpoch: @escaping @Sendable () -> Epoch = { .random },
    makeRandom: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) }
  ) async throws(StoreError) {
    self.makeEpoch = makeEpoch
    self.limits = limits
    self.makeRandom = makeRandom
    self.slice = slice
    let path = directory + "/" + Self.fileName
    let timelines = OwnTimelines { makeEpoch().value }
    let writing = WriteLock()
    let open = { @Sendable in
      try SQLiteStoreFile(
        path: path, limits: limits, quotas: quotas, fileSystem: fileSystem, timelines: timelines,
        writing: writing, slice: slice)
    }
    writer = StoreThread(executor: makeExecutor("ferry-store"), open: open)
    stager = StoreThread(executor: makeExecutor("ferry-stager")) {
      let file = try open()
      try file.prepareForSlices()
      return file
    }
    readers = (0..<Self.readerCount).map { _ in
      StoreThread(executor: makeExecutor("ferry-reader"), open: open)
    }
    try await writer.run { _ in }
  }

  /// Reads and writes in the queue for their turns.
  var waitingCount: Int { readTurns.waitingCount + writeTurns.waitingCount }

  /// - Parameter function: The caller, whose name the spans of traces have.
  func write<T: Sendable>(
    for function: String = #function, _ body: @Sendable (SQLiteStoreFile) throws -> T
  ) async throws(StoreError) -> T {
    let flow = WorkFlow.current.path
    guard await writeTurns.enter(flow) else { throw .tooMuchWaits }
    defer { writeTurns.leave(flow) }
    return try await writer.run(for: function) { file in
      try file.exclusively { try body(file) }
    }
  }

  /// Runs work of many short transactions, beside the writer.
  ///
  /// - Parameter function: The caller, whose name the spans of traces have.
  func stage<T: Sendable>(
    for function: String = #function, _ body: @Sendable (SQLiteStoreFile) throws -> T
  ) async throws(StoreError) -> T {
    let flow = WorkFlow.current.path
    guard await stagerTurns.enter(flow) else { throw .tooMuchWaits }
    defer { stagerTurns.leave(flow) }
    return try await stager.run(for: function, body)
  }

  /// - Parameter function: The caller, whose name the spans of traces have.
  func read<T: Sendable>(
    for function: String = #function,
    _ body: @escaping @Sendable (SQLiteStoreFile) throws -> T
  ) async throws(StoreError) -> T {
    let flow = WorkFlow.current.path
    guard await readTurns.enter(flow) else { throw .tooMuchWaits }
    defer { readTurns.leave(flow) }
    // Picks the first of the readers with the least work. A used reader has the schema, the
    // statements and the pages. An unneeded reader is never opened.
    let index = load.withLock { load in
      let least = load.indices.min { (load[$0], $0) < (load[$1], $1) } ?? 0
      load[least] += 1
      return least
    }
    defer { load.withLock { $0[index] -= 1 } }
    return try await readers[index].run(for: function, PageRoom.taking(body)).orNeedsMemory()
  }

  package func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, room: IngestRoom
  ) async throws(StoreError) -> IngestBatch {
    let (before, batch) = try await IngestAttempt.repeated {
      matches async throws(StoreError) in
      try await spaceTurns.perform(space) { () async throws(StoreError) in
        try await attempt(packets, into: space, now: now, matches, room)
      }
    } slice: { matcher async throws(StoreError) in
      // Beside the writer; other readers do not wait for long either.
      try await read { file in try matcher.slice { try file.show(&$0, in: space) } }
    }
    if batch.head > before { heads.publish(HeadMove(space: space, head: batch.head)) }
    return batch
  }

  private func attempt(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches,
    _ room: IngestRoom
  ) async throws(StoreError) -> IngestAttempt {
    if slice.admits(packets, matches),
      let done = try await write(
        for: "ingest",
        { try $0.ingestAtOnce(packets, into: space, now: now, matches, room: room) })
    {
      return done
    }
    return try await stage(for: "ingest") {
      try $0.ingestInSlices(packets, into: space, now: now, matches, room: room)
    }
  }

  /// Removes rows behind the heads, left by a process that ended while it wrote large packets.
  package func recover() async throws(StoreError) { try await stage { try $0.removeStagedRows() } }

  package func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, consent: SchemaConsent, onlyChecks: Bool,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let work = SchemaWork(
      document, now: now, consent: consent, onlyChecks: onlyChecks,
      random: makeRandom(), by: mark)
    return try await run(work, in: space)
  }

  /// Checks a schema beside the writer, in slices between which large packets of other spaces go,
  /// and puts it in force unless it only checks. Packets of the same space wait.
  ///
  /// - Parameter function: The caller, whose name the spans of traces have.
  func run(
    _ work: SchemaWork, in space: Int64, for function: String = #function
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let (head, answer) = try await spaceTurns.perform(space) {
      () async throws(StoreError) -> (SequenceNumber?, Result<SpaceSchema, Problem>) in
      var work = work
      while true {
        let step = try await stage(for: function) { [work] file in
          var work = work
          let before = try file.head(of: space)
          let answer = try SchemaSteps(file: file, space: space).step(&work)
          let head = try file.head(of: space)
          return (work, answer, head > before ? head : nil)
        }
        if let answer = step.1 { return (step.2, answer) }
        work = step.0
      }
    }
    if let head { heads.publish(HeadMove(space: space, head: head)) }
    return answer
  }

  package func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    try await read { try SQLitePull(file: $0, space: space, request: request, now: now).page() }
  }

  package func check() async throws(StoreError) { try await read { try $0.check() } }

  package func reclaim() async throws(StoreError) -> ReclaimStep {
    try await write { try $0.reclaim() }
  }

  package func close() async {
    heads.finish()
    // Calls under way end first: each thread does one thing after the other.
    for thread in readers + [stager, writer] { await thread.close() }
  }
}

/// A store's file on a separate thread, opened at the first use.
private actor StoreThread {
  private let executor: any WorkExecutor
  private let open: @Sendable () throws -> SQLiteStoreFile
  private var file: SQLiteStoreFile?
  private var isClosed = false

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(
    executor: any WorkExecutor, open: @escaping @Sendable () throws -> SQLiteStoreFile
  ) {
    self.executor = executor
    self.open = open
  }

  /// Runs `body` like ``run(_:)``. In an exported request, the wait and the work are spans.
  nonisolated func run<T: Sendable>(
    for function: String, _ body: @Sendable (SQLiteStoreFile) throws -> T
  ) async throws(StoreError) -> T {
    guard let span = OpenSpan.current else { return try await run(body) }
    let wait = span.child()
    return try await run { file in
      wait.end(StoreSpan.waiting)
      let (work, operation) = (span.child(), StoreSpan.name(of: function))
      let attributes = [StoreSpan.sqlite, StoreSpan.operation(operation)]
      do {
        let value = try body(file)
        work.end("transaction \(operation)", .client, attributes)
        return value
      } catch {
        work.end(
          "transaction \(operation)", .client, attributes + StoreSpan.fault(of: error),
          failure: StoreSpan.reason(error))
        throw error
      }
    }
  }

  func run<T: Sendable>(
    _ body: @Sendable (SQLiteStoreFile) throws -> T
  ) throws(StoreError) -> T {
    guard !isClosed else { throw .unavailable("the store is closed") }
    return try Self.stated {
      let file = try self.file ?? open()
      self.file = file
      return try body(file)
    }
  }

  func close() {
    isClosed = true
    file = nil
  }

  /// Throws failures as errors of the stores' protocol.
  private static func stated<T>(_ body: () throws -> T) throws(StoreError) -> T {
    do {
      return try body()
    } catch let error as StoreError {
      throw error
    } catch let error as SQLiteError {
      throw error.isBusy || error.isDiskFull
        ? .unavailable(error.message) : .failed(error.message)
    } catch {
      throw .failed(String(describing: error))
    }
  }
}

extension StoreError {
  fileprivate static let tooMuchWaits = StoreError.busy("too much waits for the store's threads")
}

extension Epoch {
  /// A random epoch.
  package static var random: Epoch { Epoch(.random(in: 1 ... .max)) }
}
