import FerryHTTPServer

/// The server at the other end of every link.
package protocol ServerEndpoint: AnyObject, Sendable {
  /// Changes with every start; `nil` while no process listens.
  var generation: Int? { get }
  /// Handles one request, which came as this message; called only while a process listens.
  func respond(to request: HTTPRequest, message: Int) async -> HTTPResponse
}
