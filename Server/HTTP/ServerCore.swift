import CFerryMicroHTTPD
import FerryPlatform
import Synchronization

/// The state shared by the server object, libmicrohttpd's threads and the handlers' tasks.
final class ServerCore: Sendable {
  let configuration: HTTPServer.Configuration
  let registry = ConnectionRegistry()
  let truncationWatch = TruncationWatch()
  let connections: ConnectionTable
  let acceptor: Acceptor
  private let handler: HTTPHandler
  private let draining = Atomic(false)
  /// Handlers in progress.
  private let handlers = Atomic(0)
  /// Answers on their way to the socket threads. As many may wait as there are connections.
  let answerTurns: FairGate

  init(
    configuration: HTTPServer.Configuration, connections: ConnectionTable, acceptor: Acceptor,
    handler: @escaping HTTPHandler
  ) {
    self.configuration = configuration
    self.connections = connections
    self.acceptor = acceptor
    answerTurns = FairGate(
      FlowLimits(all: max(configuration.answersAtOnce, 1)), waitingMax: .max)
    self.handler = handler
  }

  /// True if answers are to close their connections.
  var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// Counts a handler. Returns `true` if so few are in progress that it may begin at once.
  func handlerBegins() -> Bool {
    handlers.add(1, ordering: .relaxed).oldValue < configuration.immediateHandlers
  }

  func handlerEnded() { handlers.subtract(1, ordering: .relaxed) }

  /// Ends live bodies and keep-alive.
  func drain() {
    draining.store(true, ordering: .relaxed)
    for exchange in registry.exchanges { exchange.finishStream() }
  }

  /// Aborts the exchanges in progress.
  func abort() {
    let exchanges = registry.exchanges
    registry.close()
    for exchange in exchanges { exchange.cancel() }
  }

  /// Returns how slow the client of a connection may be.
  func pace(of client: ClientConnection?) -> TransferPace {
    configuration.pace(onReserve: client?.isReserve ?? false)
  }

  /// Returns the deadline for the headers of the next request on a connection.
  func nextRequestDeadline(of client: ClientConnection?) -> Duration {
    configuration.clock() + configuration.idleTimeout + pace(of: client).headers
  }

  /// Returns the deadline for the end of an answer; `nil` for one written over time.
  func deadline(of answer: HTTPResponse, _ count: Int) -> Duration? {
    let slowness: Int
    switch answer.body {
    case .stream: return nil
    case .bytes: slowness = 1
    case .file, .segments, .relay: slowness = TransferPace.fileFactor
    }
    return configuration.pace.deadline(
      start: configuration.clock(), count: count, slowness: slowness)
  }

  /// Returns the handler's answer, or the answer for a request that does not reach it.
  func answer(_ intake: RequestIntake, remoteAddress: String) async -> HTTPResponse {
    var intake = intake
    let response: HTTPResponse
    do {
      response = await handler(try intake.request(remoteAddress: remoteAddress))
    } catch {
      response = configuration.failure(error, remoteAddress)
    }
    let negotiated = response.negotiated(
      acceptEncoding: intake.headers.list(of: "Accept-Encoding"))
    var held = holdingMemory(negotiated, remoteAddress)
    held.work = nil
    return configuration.amend(held, intake.headers)
  }

  /// Returns an answer with a share of the memory, or the answer for missing memory.
  private func holdingMemory(_ answer: HTTPResponse, _ client: String) -> HTTPResponse {
    guard case .bytes(let bytes) = answer.body, bytes.count > MemoryBudget.step else {
      return answer
    }
    guard let share = configuration.memory.transfer(bytes.count, account: answer.account) else {
      return configuration.failure(.outOfMemory, client).negotiated(acceptEncoding: nil)
    }
    var answer = answer
    answer.share = share
    return answer
  }
}
