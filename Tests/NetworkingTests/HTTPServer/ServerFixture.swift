import FerryTestSupport
import Synchronization

@testable import FerryHTTPServer

/// Runs `body` against a server and stops it. Where the configuration names no times of its own, the
/// server is patient.
func withServer(
  _ configuration: HTTPServer.Configuration = .init(),
  handler: @escaping HTTPHandler,
  _ body: (HTTPServer) async throws -> Void
) async throws {
  var configuration = configuration
  let (usual, patient) = (HTTPServer.Configuration(), HTTPServer.Configuration().patient)
  if configuration.idleTimeout == usual.idleTimeout {
    configuration.idleTimeout = patient.idleTimeout
  }
  if configuration.pace == usual.pace { configuration.pace = patient.pace }
  let server = try HTTPServer(configuration: configuration, handler: handler)
  do {
    try await body(server)
  } catch {
    await server.stop(grace: .zero)
    throw error
  }
  await server.stop(grace: .seconds(5))
}

extension HTTPServer.Configuration {
  /// The same with as much time for clients as a test has: a busy machine may give a client no turn
  /// for many seconds.
  var patient: Self {
    var patient = self
    patient.idleTimeout = .hangLimit
    patient.pace = TransferPace(headers: .hangLimit, grace: .hangLimit)
    return patient
  }
}

/// Responds with method, path and size of the body.
let describe: HTTPHandler = { request in
  HTTPResponse.text("\(request.method) \(request.path) \(request.body.count)")
}

extension HTTPResponse {
  static func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: ["Content-Type": "text/plain"], body: .bytes(Array(text.utf8)))
  }
}

/// A door for tasks to wait at until it is opened.
final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  func open() {
    let waiters = state.withLock { state in
      defer { state.waiters = [] }
      state.isOpen = true
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiters.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// Collects values from any thread, and lets a test wait for the n-th.
final class Collector<Value: Sendable>: Sendable {
  private struct State {
    var values: [Value] = []
    var waiter: (count: Int, continuation: CheckedContinuation<[Value], Never>)?
  }

  private let state = Mutex(State())

  func add(_ value: Value) {
    let ready = state.withLock { state in
      state.values.append(value)
      guard let waiter = state.waiter, state.values.count >= waiter.count else {
        return nil as (CheckedContinuation<[Value], Never>, [Value])?
      }
      state.waiter = nil
      return (waiter.continuation, state.values)
    }
    ready?.0.resume(returning: ready?.1 ?? [])
  }

  /// Returns the values, once there are `count`.
  func values(_ count: Int) async -> [Value] {
    await withCheckedContinuation { continuation in
      let values = state.withLock { state in
        if state.values.count < count { state.waiter = (count, continuation) }
        return state.values
      }
      if values.count >= count { continuation.resume(returning: values) }
    }
  }

  var all: [Value] { state.withLock { $0.values } }

  var count: Int { state.withLock { $0.values.count } }
}
