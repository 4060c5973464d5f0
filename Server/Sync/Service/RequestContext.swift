import FerryHTTPServer
import FerryProtocol

/// A request while it is answered, with the facts learned about it on the way.
struct RequestContext: Sendable {
  let request: HTTPRequest
  let match: RouteMatch
  /// On the uptime clock.
  let started: Duration
  /// `nil` if the request is not exported.
  var span: OpenSpan?
  var space: SpaceName?
  var device: DeviceID?
  /// `nil` before the request is admitted.
  var principal: Principal?
  /// True if the principal may administer the server itself.
  var isServerAdmin = false
  var problem: ProblemCode?
  /// The least time before the client tries again; `nil` for a second.
  var retryAfter: Duration?
  /// The offset at which an upload goes on, if a part began at another.
  var uploadOffset: Int64?
}

extension HTTPResponse {
  /// Returns an answer with Ferry's JSON. No cache may keep any of Ferry's answers.
  static func json(_ bytes: [UInt8], status: Int = 200) -> HTTPResponse {
    HTTPResponse(
      status: status,
      headers: ["Content-Type": "application/json", "Cache-Control": "no-store"],
      body: .bytes(bytes), compressible: true)
  }

  static func text(
    _ text: String, mediaType: String = "text/plain; charset=utf-8"
  ) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: ["Content-Type": mediaType, "Cache-Control": "no-store"],
      body: .bytes(Array(text.utf8)), compressible: true)
  }
}
