import CMicroHTTPD
import Synchronization

/// What the server object, libmicrohttpd's threads and the handlers' tasks share.
final class ServerCore: Sendable {
  let configuration: HTTPServer.Configuration
  let registry = ConnectionRegistry()
  let truncationWatch = TruncationWatch()
  let acceptor: Acceptor
  private let handler: HTTPHandler
  private let draining = Atomic(false)

  init(configuration: HTTPServer.Configuration, acceptor: Acceptor, handler: @escaping HTTPHandler)
  {
    self.configuration = configuration
    self.acceptor = acceptor
    self.handler = handler
  }

  /// Whether answers are to close their connections.
  var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// Ends live bodies and keep-alive.
  func drain() {
    draining.store(true, ordering: .relaxed)
    for exchange in registry.exchanges { exchange.finishStream() }
  }

  /// Gives up on what is in progress.
  func abort() {
    let exchanges = registry.exchanges
    registry.close()
    for exchange in exchanges { exchange.cancel() }
  }

  /// The handler's answer, or the one for a request that does not reach it.
  func answer(_ intake: RequestIntake, remoteAddress: String) async -> HTTPResponse {
    let response: HTTPResponse
    do {
      response = await handler(try intake.request(remoteAddress: remoteAddress))
    } catch {
      response = configuration.failure(error)
    }
    return response.negotiated(acceptEncoding: intake.headers.list(of: "Accept-Encoding"))
  }
}
