import FerryHTTPServer
import FerryProtocol

/// The rule for requests from pages of other origins (CORS; SPEC.md §35). Pure.
///
/// A browser shows an answer to a page only if the answer names the page's origin. Tokens are in
/// `Authorization`, so browsers never need to send cookies, and no answer allows credentials.
package struct CrossOriginRule: Sendable, Equatable {
  /// A rule without any other origin.
  package static let none = CrossOriginRule([])

  /// The seconds for which a browser may keep the answer to a preflight. Chromium keeps none
  /// longer.
  static let maxAge = 7_200
  /// The headers of requests in SPEC.md, besides those permitted to every page.
  static let requestHeaders = [
    "Authorization", "Content-Encoding", "Content-Range", "Content-Type", ProtocolVersion.header,
    "If-Match", "If-None-Match", "If-Range", "Last-Event-ID", "Range",
    "traceparent", "tracestate",
  ]
  /// The headers of answers in SPEC.md, besides those readable by every page.
  static let answerHeaders = [
    "Accept-Encoding", "Accept-Ranges", "Allow", "Content-Range", "ETag", "Location",
    "Retry-After", "Upload-Complete", "Upload-Offset", "WWW-Authenticate",
  ]

  private let origins: Set<String>

  /// - Parameter origins: The origins whose pages may use the server.
  package init(_ origins: [WebOrigin]) {
    self.origins = Set(origins.map(\.description))
  }

  /// Returns whether pages of this origin may use the server.
  /// - Parameter origin: The value of an `Origin` header.
  func allows(_ origin: String) -> Bool { origins.contains(origin) }

  /// Returns the answer to a preflight, in which a browser asks for permission; `nil` for every
  /// other request.
  /// - Parameter route: The route of the request, of any method.
  func preflight(_ request: HTTPRequest, _ route: Route) throws(Problem) -> HTTPResponse? {
    guard request.method == "OPTIONS", request.headers["Access-Control-Request-Method"] != nil,
      let origin = request.headers["Origin"], route != .unknown
    else { return nil }
    guard declaredOrigin(of: request.headers) != nil else {
      throw Problem(
        .forbidden,
        "pages of \(origin.prefix(200)) may not use this server: declare the origin with "
          + "ferryd serve --allow-origin")
    }
    return HTTPResponse(
      status: 204,
      headers: [
        "Access-Control-Allow-Methods": route.allow,
        "Access-Control-Allow-Headers": Self.requestHeaders.joined(separator: ", "),
        "Access-Control-Max-Age": String(Self.maxAge), "Cache-Control": "no-store",
      ])
  }

  /// Returns an answer with the headers by which a browser decides whether the page sees it.
  /// - Parameter headers: The headers of the request.
  package func amend(_ response: HTTPResponse, for headers: HTTPHeaders) -> HTTPResponse {
    guard !origins.isEmpty else { return response }
    var response = response
    // A cache must not give one origin's answer to another.
    let varying = response.headers.list(of: "Vary")
    response.headers["Vary"] = varying.map { $0 == "*" ? $0 : "\($0), Origin" } ?? "Origin"
    guard let origin = declaredOrigin(of: headers) else { return response }
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] =
      Self.answerHeaders.joined(separator: ", ")
    return response
  }

  private func declaredOrigin(of headers: HTTPHeaders) -> String? {
    let named = headers.values(of: "Origin")
    guard named.count == 1, let origin = named.first, allows(origin) else { return nil }
    return origin
  }
}
