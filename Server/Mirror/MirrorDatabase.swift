import FerryPostgres
import Synchronization

/// The connections to a database for one or several mirrors of a process: a pool, and a listener to
/// captured writes.
package final class MirrorDatabase: Sendable {
  private struct State {
    var wakes: [String: AsyncStream<Void>.Continuation] = [:]
    var listener: PostgresListener?
  }

  let url: String
  let pool: PostgresPool
  private let state = Mutex(State())

  /// Connects nothing yet.
  package init(url: String, connections: Int = 2) throws(PostgresError) {
    self.url = url
    pool = try PostgresPool(url: url, connections: connections)
  }

  package func close() async {
    let listener = state.withLock { state in
      for wake in state.wakes.values { wake.finish() }
      state.wakes = [:]
      defer { state.listener = nil }
      return state.listener
    }
    await listener?.close()
    await pool.close()
  }

  /// Begins to report notifications with a payload, and the beginning of each connection:
  /// notifications from before are lost.
  func wakes(
    of payload: String
  ) throws -> (stream: AsyncStream<Void>, wake: AsyncStream<Void>.Continuation) {
    let (stream, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    try state.withLock { state in
      state.wakes[payload] = wake
      if state.listener == nil { state.listener = try listener() }
    }
    return (stream, wake)
  }

  func endWakes(of payload: String) {
    state.withLock { $0.wakes.removeValue(forKey: payload) }?.finish()
  }

  private func listener() throws -> PostgresListener {
    try PostgresListener(
      url: url, channels: PostgresChannels([MirrorLedger.channel])
    ) { [weak self] event in
      self?.state.withLock { state in
        switch event {
        case .listening: for wake in state.wakes.values { wake.yield() }
        case .notification(_, let payload): state.wakes[payload]?.yield()
        case .disconnected: break
        }
      }
    }
  }
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
    let pool = try PostgresPool(url: url, connections: 1)
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
