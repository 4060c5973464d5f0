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

  /// Returns the endpoint of the request, which states one version of the protocol at most (SPEC.md §9).
  func endpoint() throws(Problem) -> Endpoint {
    if match.route == .unknown {
      throw Problem(
        .notFound,
        "Ferry's addresses are below /v1/spaces/{space}, /v1/blobs, /v1/tokens and /v1/audit")
    }
    guard let endpoint = match.endpoint else {
      throw Problem(
        .methodNotAllowed, "\(match.route.rawValue) takes \(match.route.allow)")
    }
    guard request.headers.values(of: ProtocolVersion.header).count <= 1 else {
      throw Problem(.malformedMessage, "the request has \(ProtocolVersion.header) more than once")
    }
    return endpoint
  }

  /// Returns the client's protocol version.
  func protocolVersion() throws(Problem) -> Int {
    let lines = request.headers.values(of: ProtocolVersion.header)
    guard let text = lines.first else { return 1 }
    guard lines.count == 1, let version = Int(text), version >= 1 else {
      throw Problem(
        .malformedMessage, "\(ProtocolVersion.header) is one whole number from 1 up")
    }
    return version
  }

  // MARK: Problems

  /// Answers the request with a problem.
  mutating func refuse(_ problem: Problem) -> HTTPResponse {
    self.problem = problem.code
    return problem.response(headers: headers(for: problem))
  }

  private func headers(for problem: Problem) -> HTTPHeaders {
    switch problem.code {
    case .rateLimited:
      return retryAfter.map { ["Retry-After": String($0.wholeSeconds)] } ?? [:]
    case .unauthorized:
      let credential = Credential(authorization: request.headers["Authorization"])
      return ["WWW-Authenticate": AccessRule.challenge(for: credential)]
    case .upgradeRequired:
      // RFC 9110 §15.5.22 asks for both.
      return ["Upgrade": "Ferry", "Connection": "Upgrade"]
    case .methodNotAllowed: return ["Allow": match.route.allow]
    case .uploadConflict:
      return ["Upload-Offset": uploadOffset.map(String.init) ?? "0", "Upload-Complete": "?0"]
    case .streamQuota: return ["Connection": "close"]
    case .unavailable where match.route == .events:
      // A rejected listener leaves the connection to others.
      return ["Connection": "close"]
    default: return [:]
    }
  }
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
