import FerryPostgres
import Synchronization

/// Reads PostgreSQL's log for a mirror or a group, on a thread and two connections of its own. It
/// stores the changes of programs as captured writes, and connects again after a break.
final class LogReader: Sendable {
  private struct State {
    var tables: [MirrorSQL]?
    var hasNewTables = false
    /// Waits for the end of the log, and for the end of the connection.
    var waits: [LogWait] = []
    var pausing: [LogWait] = []
    var patience = LogPatience()
    /// The patience of each wait that has begun.
    var patiences: [ObjectIdentifier: LogPatience] = [:]
    var isPaused = false
    var isClosed = false
    var isStarted = false
    var failure = "it has not begun"

    /// Records an event for all waits.
    mutating func record(_ event: (inout LogPatience) -> Void) {
      event(&patience)
      patiences = patiences.mapValues { patience in
        var patience = patience
        event(&patience)
        return patience
      }
    }
  }

  private let url: String
  /// The folder of the mirror or the group, for large open transactions.
  private let folder: String
  /// The log's number; negative for a group.
  private let number: Int64
  private let log: Mirror.Log
  /// Called after captured writes, on the reader's thread.
  private let onCaptured: @Sendable (LogWriter.Captured) -> Void
  private let state = Mutex(State())
  private let wakePipe: WakePipe
  private let threads = ThreadGroup()

  /// The wait of a transaction with locks of rows, and of one with locks for programs to wait for.
  static let roundLimit = Duration.seconds(20)
  static let lockLimit = Duration.seconds(2)
  /// Transactions of the log in one of the reader's.
  private static let transactionsMax = 200
  /// The time between two reports to the server, and the silence before a sign of life is asked.
  private static let reportPause = Duration.seconds(10)
  /// The longest silence of the server.
  private static let silenceMax = Duration.seconds(60)
  /// The pauses between attempts to connect.
  private static let pauseMin = Duration.milliseconds(100)
  private static let pauseMax = Duration.seconds(5)

  init(
    url: String, number: Int64, folder: String, log: @escaping Mirror.Log,
    onCaptured: @escaping @Sendable (LogWriter.Captured) -> Void
  ) throws(PostgresError) {
    (self.url, self.number, self.folder) = (url, number, folder)
    (self.log, self.onCaptured) = (log, onCaptured)
    wakePipe = try WakePipe()
  }

  /// Replaces the tables of a mirror. The first call starts the reader; it also goes on after a pause.
  ///
  /// A group's mirrors are in PostgreSQL: the reader captures for all of them.
  func use(_ tables: [MirrorSQL] = []) {
    let isFirst = state.withLock { state in
      defer { state.isStarted = true }
      state.isPaused = false
      if number > 0 { (state.tables, state.hasNewTables) = (tables, true) }
      return !state.isStarted
    }
    if isFirst { threads.start(name: "mirror-log") { [self] in run() } } else { wakePipe.wake() }
  }

  /// Stops reading until ``use(_:)``. Returns when nothing is captured any more. It blocks.
  ///
  /// - Throws: ``PostgresError`` as for a lock, if it takes too long.
  func pause() throws(PostgresError) {
    let wait = LogWait()
    let isStarted = state.withLock { state in
      state.isPaused = true
      if state.isStarted { state.pausing.append(wait) }
      return state.isStarted
    }
    guard isStarted else { return }
    wakePipe.wake()
    if wait.ends(within: Self.roundLimit) { return }
    throw PostgresError(
      .server, "the reader of PostgreSQL's log does not end in time", sqlState: "55P03")
  }

  /// Begins a wait for the capture of all transactions committed before the call. It ends with
  /// ``reaches(_:)``.
  func beginWait() -> LogWait {
    let wait = LogWait()
    state.withLock { state in
      var patience = state.patience
      patience.begin()
      state.patiences[ObjectIdentifier(wait)] = patience
      state.waits.append(wait)
    }
    wakePipe.wake()
    return wait
  }

  /// Returns `true` at the end of a wait, and `false` after a slice of it. It holds no connection.
  ///
  /// - Throws: ``PostgresError`` as for a lock, if the reader does not advance.
  func reaches(_ wait: LogWait) async throws(PostgresError) -> Bool {
    let key = ObjectIdentifier(wait)
    if await wait.hasEnded(within: LogPatience.slice) { return true }
    let goesOn = state.withLock { state in
      let isPatient = state.patiences[key]?.waits(after: LogPatience.slice) ?? false
      return isPatient && !state.isPaused
    }
    if goesOn { return false }
    throw abandon(wait)
  }

  /// Returns when all transactions committed before the call are captured. It blocks.
  ///
  /// - Throws: ``PostgresError`` as for a lock, if it takes too long.
  func catchUp(within limit: Duration) throws(PostgresError) {
    let wait = beginWait()
    if !wait.ends(within: limit) { throw abandon(wait) }
  }

  private func abandon(_ wait: LogWait) -> PostgresError {
    let failure = state.withLock { state in
      state.waits.removeAll { $0 === wait }
      state.patiences[ObjectIdentifier(wait)] = nil
      return state.failure
    }
    return PostgresError(
      .server,
      "PostgreSQL's log is not read in time"
        + (failure.isEmpty ? "" : ": \(failure)"), sqlState: "55P03")
  }

  /// Stops reading, and disconnects.
  func close() async {
    state.withLock { $0.isClosed = true }
    wakePipe.wake()
    await threads.wait()
  }

  private var isClosed: Bool { state.withLock { $0.isClosed } }
  /// True if the connection is to end.
  private var isEnding: Bool { state.withLock { $0.isClosed || $0.isPaused } }

  // MARK: The thread

  private func run() {
    var pause = Self.pauseMin
    while !isClosed {
      if rests() {
        _ = wakePipe.wait(timeout: nil)
        wakePipe.drain()
        continue
      }
      let start = ContinuousClock.now
      do {
        try read()
      } catch {
        let reason = "\(error)"
        // Another process may have the slot for a moment, and a server restarts.
        let isNew = state.withLock { state in
          state.record { $0.fail() }
          defer { state.failure = reason }
          return state.failure != reason
        }
        if isNew, !isEnding { log("error", "the log cannot be read: \(reason)") }
      }
      if start.duration(to: .now) > Self.pauseMax { pause = Self.pauseMin }
      let end = ContinuousClock.now + pause
      while !isEnding, wakePipe.wait(timeout: end - .now) == .woken { wakePipe.drain() }
      pause = min(pause * 2, Self.pauseMax)
    }
  }

  /// Returns `true` during a pause, without a connection.
  private func rests() -> Bool {
    let (pausing, isPaused) = state.withLock { state in
      defer { state.pausing = [] }
      return (state.pausing, state.isPaused)
    }
    for wait in pausing { wait.end() }
    return isPaused
  }

  /// Reads until the reader is closed or paused, or the connection breaks.
  private func read() throws {
    let connection = try PostgresConnection(url: url, settings: ReplicationStream.settings)
    guard let log = try MirrorLog(number, connection) else {
      throw MirrorFault(description: "the database has no mirror that reads the log")
    }
    let stream = try ReplicationStream(url: url, wakePipe: wakePipe)
    guard try log.isCurrent(stream.source.description, connection) else {
      return try replaceSlot(log, "the database is on another server, or was restored", connection)
    }
    do {
      try stream.start(
        slot: log.slot, publication: MirrorLog.publication(number), from: log.stored)
    } catch {
      if log.isOfGroup, error.isOfReadSlot { return try readElsewhere(log, connection) }
      guard ["42704", "55000"].contains(error.sqlState) else { throw error }
      return try replaceSlot(log, error.message, connection)
    }
    // A former reader may have moved the position before it lost the slot.
    guard let owned = try MirrorLog(number, connection),
      try owned.isCurrent(stream.source.description, connection)
    else { throw MirrorFault(description: "the log has changed meanwhile") }
    state.withLock { $0.hasNewTables = true }
    do {
      try readStream(stream, owned, connection)
    } catch let error as PostgresError where error.isMissingObject {
      // The publication did not exist at the time of a change. A round makes it, and the slot.
      self.log("slot", "\(error.message): all rows are compared")
      state.withLock { ($0.isPaused, $0.failure) = (true, error.message) }
      defer { onCaptured(.all) }
      let other = try PostgresConnection(url: url, settings: ReplicationStream.settings)
      try log.alone(other) { present in
        if present.gaps == owned.gaps { try present.release(other) }
      }
    }
  }

  /// Begins from the present end of the log: the mirror compares all rows.
  private func replaceSlot(
    _ log: MirrorLog, _ reason: String, _ connection: PostgresConnection
  ) throws {
    self.log("slot", "\(reason): all rows are compared")
    try log.alone(connection) { present in
      // A mirror of the group may have replaced it meanwhile.
      if present.gaps == log.gaps { try present.replaceSlot(connection) }
    }
    onCaptured(.all)
  }

  /// Ends waits as another process stores the position: it has the slot, such as a running group
  /// beside a command for a stopped mirror of it.
  private func readElsewhere(_ log: MirrorLog, _ connection: PostgresConnection) throws {
    state.withLock { $0.failure = "another process reads it" }
    var (waits, stored) = (LogWaits(), log.stored)
    // The next connection serves the waits again.
    defer { state.withLock { [waits] in $0.waits += waits.all } }
    while !isEnding, try log.slotState(connection)?.isActive == true {
      let new = state.withLock { state in
        defer { state.waits = [] }
        return state.waits
      }
      if !new.isEmpty { waits.add(new, through: try mark("store", connection)) }
      guard let present = try MirrorLog(number, connection) else { return }
      if present.stored != stored { state.withLock { $0.record { $0.store() } } }
      stored = present.stored
      end(waits.remove(through: stored))
      if wakePipe.wait(timeout: Self.pauseMin) == .woken { wakePipe.drain() }
    }
  }

  private func readStream(
    _ stream: ReplicationStream, _ log: MirrorLog, _ connection: PostgresConnection
  ) throws {
    var work = LogWork(connection, log)
    // The next connection serves the waits again.
    defer { state.withLock { state in state.waits += work.waits.all } }
    var (reported, heard) = (ContinuousClock.now, ContinuousClock.now)
    while true {
      if isEnding { return }
      if !work.isPartial { try serve(&work, log, connection) }
      let isReady = work.writer.isDirty && !work.isPartial
      var isDue = .now - reported >= Self.reportPause
      switch try stream.next(within: isReady ? .zero : Self.reportPause) {
      case .frame(let frame):
        if try accept(frame, &work, stream) { isDue = true }
        heard = .now
      case .woken: continue
      case .timedOut: if isReady { try store(&work) }
      }
      guard isDue else { continue }
      guard .now - heard < Self.silenceMax else {
        throw PostgresError(.noAnswer, "the server did not answer in time")
      }
      try stream.report(work.progress, asksReply: .now - heard >= Self.reportPause)
      reported = .now
    }
  }

  /// Returns `true` if the server waits for a report.
  private func accept(
    _ frame: ReplicationFrame, _ work: inout LogWork, _ stream: ReplicationStream
  ) throws -> Bool {
    switch frame {
    case .keepalive(let end, let wantsReply):
      if end > work.progress.received { state.withLock { $0.record { $0.receive() } } }
      work.progress.keepalive(end, isIdle: work.isIdle)
      return wantsReply
    case .data(let start, let message):
      state.withLock { $0.record { $0.receive() } }
      work.progress.receive(at: start)
      switch try work.streamed.add(message) {
      case .decode(let message):
        try add(PgoutputDecoder.decode(message), &work, stream)
      case .store(let xid, let message):
        let spool = try work.spools[xid] ?? LogSpool(in: folder)
        work.spools[xid] = spool
        try spool.append(message)
      case .cut(let xid, let length): try work.spools[xid]?.cut(to: length)
      case .drop(let xid): work.spools[xid] = nil
      case .commit(let begin, let commit): try add(begin, commit, &work, stream)
      case .nothing: break
      }
      return false
    }
  }

  /// Adds a transaction whose messages have come before the commit.
  private func add(
    _ begin: PgoutputMessage, _ commit: PgoutputMessage, _ work: inout LogWork,
    _ stream: ReplicationStream
  ) throws {
    try add(begin, &work, stream)
    if case .begin(let xid, _, _) = begin, let spool = work.spools.removeValue(forKey: xid) {
      try spool.forEach { try add(PgoutputDecoder.decode($0), &work, stream) }
    }
    try add(commit, &work, stream)
  }

  private func add(
    _ message: PgoutputMessage, _ work: inout LogWork, _ stream: ReplicationStream
  ) throws {
    guard let part = try work.assembler.add(message) else { return }
    if !work.progress.isStored(commit: part.commit) { try work.writer.add(part) }
    work.isPartial = part.end == nil
    guard let end = part.end else {
      if isEnding { throw CancellationError() }
      // A large transaction takes longer than the server waits for a report.
      return try stream.report(work.progress)
    }
    guard work.writer.isDirty else {
      work.progress.keepalive(end, isIdle: true)
      return release(&work, end)
    }
    work.last = end
    work.count += 1
    if work.count >= Self.transactionsMax { try store(&work) }
  }

  /// Commits the complete transactions.
  private func store(_ work: inout LogWork) throws {
    guard let end = work.last else { return }
    let captured = try work.writer.commit(end)
    state.withLock { $0.record { $0.store() } }
    work.progress.store(end)
    (work.last, work.count) = (nil, 0)
    release(&work, end)
    if captured != .nothing { onCaptured(captured) }
  }

  private func release(_ work: inout LogWork, _ end: PostgresLSN) {
    state.withLock { $0.failure = "" }
    self.end(work.waits.remove(through: end))
  }

  private func end(_ reached: [LogWait]) {
    state.withLock { state in
      for wait in reached { state.patiences[ObjectIdentifier(wait)] = nil }
    }
    for wait in reached { wait.end() }
  }

  /// Uses new tables, and marks the present end of the log for callers that wait for it.
  private func serve(
    _ work: inout LogWork, _ log: MirrorLog, _ connection: PostgresConnection
  ) throws {
    let (hasTables, hasWaits) = state.withLock { ($0.hasNewTables, !$0.waits.isEmpty) }
    guard hasTables || hasWaits else { return }
    try store(&work)
    let (tables, waits) = state.withLock { state in
      defer { (state.hasNewTables, state.waits) = (false, []) }
      return (state.hasNewTables ? state.tables : nil, state.waits)
    }
    if let tables { work.writer.use(tables) }
    if waits.isEmpty { return }
    work.waits.add(waits, through: try mark("beat", connection))
  }

  /// Marks the present end of the log, and returns it. The commit of the mark also brings earlier
  /// commits to the disk, and so to the reader.
  private func mark(_ word: String, _ connection: PostgresConnection) throws -> PostgresLSN {
    let text = try connection.query(
      .once("SELECT \(LogMark.sql(number, [word]))::text")
    ).first?.text(0)
    return text.flatMap { PostgresLSN($0) } ?? .zero
  }
}
