import FerryPostgres
import FerrySyncClient
import Synchronization

/// The connections to a database for one or several mirrors of a process: a pool, and a listener
/// that looks for captured writes. The mirrors of a group also share threads and memory.
package final class MirrorDatabase: Sendable {
  private struct State {
    var wakes: [String: AsyncStream<Void>.Continuation] = [:]
    /// The groups of mirrors, by payload.
    var groups: [String: Int64] = [:]
    var listener: PostgresListener?
    /// Reads the log of a group.
    var reader: LogReader?
  }

  let url: String
  let pool: PostgresPool
  private let state = Mutex(State())
  private let channels: PostgresChannels
  private let watcher = CaptureWatcher()
  /// Threads and memory of the mirrors' files; `nil` for a single mirror.
  let replicas: ReplicaSharing?
  /// The turns of the mirrors; `nil` for a single mirror.
  private let turns: MirrorTurns?

  /// Connects nothing yet.
  package init(
    url: String, connections: Int = 2, replicas: ReplicaSharing? = nil
  ) throws(PostgresError) {
    (self.url, self.replicas) = (url, replicas)
    turns = replicas.map { _ in MirrorTurns() }
    channels = try PostgresChannels([MirrorLedger.channel])
    var options = PostgresPool.Options()
    // Some statements are silent for long.
    options.feelsPulse = true
    pool = try PostgresPool(
      url: url, connections: connections, settings: .mirrors, options: options)
  }

  package func close() async {
    let (listener, reader) = state.withLock { state in
      for wake in state.wakes.values { wake.finish() }
      state.wakes = [:]
      defer { (state.listener, state.reader) = (nil, nil) }
      return (state.listener, state.reader)
    }
    await reader?.close()
    await listener?.close()
    await pool.close()
  }

  /// Runs the work of a mirror; see ``MirrorTurns``.
  func inTurn<Value>(_ body: () async throws -> Value) async rethrows -> Value {
    guard let turns else { return try await body() }
    return try await turns.perform(body)
  }

  /// Opens a mirror's file.
  func openReplica(
    _ path: String, of server: ServerAddress, in surroundings: ReplicaSurroundings
  ) async throws -> Replica {
    guard let replicas else {
      return try await Replica.open(path, server: server, in: surroundings)
    }
    return try await inTurn { try await replicas.open(path, of: server, in: surroundings) }
  }

  /// Begins to report captured writes of a mirror, or notifications with another payload. Also
  /// reports the beginning of each connection: notifications from before are lost.
  ///
  /// - Parameter group: the mirror's group.
  func wakes(
    of payload: String, in group: Int64? = nil
  ) throws -> (stream: AsyncStream<Void>, wake: AsyncStream<Void>.Continuation) {
    let (stream, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    try state.withLock { state in
      state.wakes[payload] = wake
      state.groups[payload] = group
      watch(state)
      if state.listener == nil { state.listener = try listener() }
    }
    channels.wake()
    return (stream, wake)
  }

  func endWakes(of payload: String) {
    let wake = state.withLock { state in
      defer { watch(state) }
      state.groups[payload] = nil
      return state.wakes.removeValue(forKey: payload)
    }
    wake?.finish()
    channels.wake()
  }

  /// A mirror's payload is the number.
  private func watch(_ state: borrowing State) {
    watcher.watch(
      state.wakes.keys.compactMap { Int64($0) }.sorted(), groups: Set(state.groups.values).sorted())
  }

  /// Reports a captured write.
  func wake(_ payload: String) { state.withLock { _ = $0.wakes[payload]?.yield() } }

  /// Returns the reader of a group's log: one for all mirrors of the group.
  ///
  /// - Parameter folder: the folder for large open transactions.
  func reader(
    ofGroup group: Int64, in folder: String, _ log: @escaping Mirror.Log
  ) throws -> LogReader {
    try state.withLock { state in
      if let reader = state.reader { return reader }
      let number = MirrorGroupTables(number: group).log
      let reader = try LogReader(url: url, number: number, folder: folder, log: log) {
        [weak self] in self?.wake($0)
      }
      state.reader = reader
      return reader
    }
  }

  private func wake(_ captured: LogWriter.Captured) {
    switch captured {
    case .nothing: break
    case .mirrors(let mirrors): for mirror in mirrors { wake("\(mirror)") }
    // The group looks for new values, too.
    case .all: state.withLock { state in for wake in state.wakes.values { wake.yield() } }
    }
  }

  private func listener() throws -> PostgresListener {
    try PostgresListener(
      url: url, channels: channels,
      work: { [weak self, watcher] connection, occasion in
        try watcher.run(connection, occasion) { found in
          for mirror in found { self?.wake("\(mirror)") }
        }
      }
    ) { [weak self] event in
      switch event {
      case .listening:
        self?.state.withLock { state in for wake in state.wakes.values { wake.yield() } }
      case .notification(_, let payload): self?.wake(payload)
      case .disconnected: break
      }
    }
  }
}

extension PostgresSettings {
  /// For all work of mirrors. PostgreSQL would compile queries of its catalog for seconds, and run
  /// them for a millisecond.
  package static let mirrors: PostgresSettings = [("jit", "off")]
}

extension PostgresRole {
  /// Returns the role of connections by a database's URL.
  package static func connecting(to database: String) async throws -> PostgresRole {
    try await PostgresPool.once(database) { try await $0.run { try $0.role() } }
  }
}

extension PostgresPool {
  /// Runs `body` with one connection to a database, and closes it.
  static func once<T: Sendable>(
    _ url: String, _ body: (PostgresPool) async throws -> T
  ) async throws -> T {
    let pool = try PostgresPool(url: url, connections: 1, settings: .mirrors)
    do {
      let result = try await body(pool)
      await pool.close()
      return result
    } catch {
      await pool.close()
      throw error
    }
  }
}
