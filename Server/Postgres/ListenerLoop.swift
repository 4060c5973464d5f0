import CFerryPostgres
import FerryProtocol
import Foundation

/// The body of a listener's thread.
struct ListenerLoop {
  /// The listener was closed.
  private struct Woken: Error {}

  let target: ConnectionTarget
  let channels: PostgresChannels
  /// SQL to run first on each connection.
  let preparation: String?
  /// The longest time to connect to one server.
  let connectLimit: Duration
  let work: PostgresListener.Work?
  let onEvent: @Sendable (PostgresListener.Event) -> Void

  /// The silence before a check of the server, and the limit of this check. A server that was
  /// frozen and replaced never closes connections.
  private static let silence = Duration.seconds(15)
  private static let answerLimit = Duration.seconds(5)

  private var wakePipe: WakePipe { channels.wakePipe }

  /// Returns when the channels are closed.
  func run(retryDelay: Duration, retryDelayMax: Duration) {
    var delay = retryDelay
    while true {
      do {
        let connection = try connect()
        defer { channels.disconnected() }
        if let preparation { try connection.execute(preparation) }
        onEvent(.listening(try listen(connection)))
        delay = retryDelay
        try deliver(connection)
      } catch let error as PostgresError {
        onEvent(.disconnected(error))
      } catch {
        return
      }
      guard pause(delay) else { return }
      delay = min(delay * 2, retryDelayMax)
    }
  }

  /// Returns `false` if the channels are closed meanwhile.
  private func pause(_ delay: Duration) -> Bool {
    let deadline = ContinuousClock.now + delay
    while wakePipe.wait(timeout: deadline - .now) == .woken {
      guard channels.isOpenAfterWake() else { return false }
    }
    return true
  }

  /// Connects to the first usable server. Each has a separate limit: libpq would wait for ever for
  /// a hanging one, and never ask the next.
  private func connect() throws -> PostgresConnection {
    var failure = ConnectionTarget.failure(nil)
    for server in target.each {
      do { return try connect(to: server) } catch let error as PostgresError { failure = error }
    }
    throw failure
  }

  /// Connects without blocking, so closing never waits for a network.
  private func connect(to target: ConnectionTarget) throws -> PostgresConnection {
    guard let handle = target.withParameters({ PQconnectStartParams($0, $1, 1) }) else {
      throw ConnectionTarget.failure(nil)
    }
    let deadline = ContinuousClock.now + connectLimit
    var step = PQstatus(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
    while step == PGRES_POLLING_READING || step == PGRES_POLLING_WRITING {
      let outcome = wakePipe.wait(
        for: PQsocket(handle), events: step == PGRES_POLLING_READING ? POLLIN : POLLOUT,
        timeout: deadline - .now)
      switch outcome {
      case .ready: step = PQconnectPoll(handle)
      case .woken:
        if channels.isOpenAfterWake() { continue }
        PQfinish(handle)
        throw Woken()
      case .timedOut:
        PQfinish(handle)
        throw PostgresError(.connectionFailed, "cannot connect to PostgreSQL: timed out")
      }
    }
    let connection = try PostgresConnection(owning: handle)
    connection.patience.limit = Self.answerLimit
    return connection
  }

  /// Makes the connection listen to the channels requested now. Returns the new ones.
  private func listen(_ connection: PostgresConnection) throws -> [String] {
    let changes = channels.changes
    for channel in changes.ended {
      try connection.execute(single: "UNLISTEN \(quoted(Name(channel)))")
    }
    for channel in changes.begun {
      try connection.execute(single: "LISTEN \(quoted(Name(channel)))")
    }
    channels.made(changes)
    return changes.begun
  }

  /// Hands on notifications until the connection breaks or the listener is closed. Works between
  /// them.
  private func deliver(_ connection: PostgresConnection) throws {
    var deadline = ContinuousClock.now + Self.silence
    var occasion: PostgresListener.Occasion? = .connected
    var due = deadline
    while true {
      if handOn(connection), occasion == nil { occasion = .notified }
      if let work, let present = occasion {
        due = try .now + work(connection, present)
        try checkWrites(connection)
        // It was an answer of the server. Notifications may have come with it.
        deadline = .now + Self.silence
        occasion = handOn(connection) ? .notified : nil
        if occasion != nil { continue }
      }
      let socket = PQsocket(connection.handle)
      let next = work == nil ? deadline : min(due, deadline)
      switch wakePipe.wait(for: socket, events: POLLIN, timeout: next - .now) {
      case .woken:
        guard channels.isOpenAfterWake() else { throw Woken() }
        let begun = try listen(connection)
        if !begun.isEmpty { onEvent(.listening(begun)) }
        occasion = .due
      case .timedOut:
        if .now >= due { occasion = .due }
        guard .now >= deadline else { continue }
        try connection.execute("SELECT 1")
        try checkWrites(connection)
        deadline = .now + Self.silence
      case .ready:
        guard PQconsumeInput(connection.handle) == 1 else {
          throw connection.failure(mayCommit: false)
        }
        deadline = .now + Self.silence
      }
    }
  }

  private func checkWrites(_ connection: PostgresConnection) throws {
    guard connection.isReadOnly else { return }
    throw PostgresError(.readOnly, "the server is read-only now")
  }

  /// Hands on the notifications that have arrived. Returns `true` if there were any.
  private func handOn(_ connection: PostgresConnection) -> Bool {
    var isAny = false
    while let notification = PQnotifies(connection.handle) {
      defer { PQfreemem(notification) }
      isAny = true
      onEvent(
        .notification(
          channel: String(cString: notification.pointee.relname),
          payload: String(cString: notification.pointee.extra)))
    }
    return isAny
  }
}
