import FerryHTTPServer
import FerryPlatform
import FerryProtocol

/// The parts of a request that decide about admission.
package struct Visitor: Sendable, Equatable {
  package var credential: Credential
  /// The `Host` header.
  package var host: String?
  /// The `Origin` header, which browsers add.
  package var origin: String?
  /// The `Sec-Fetch-Site` header, which browsers add.
  package var fetchSite: String?
  /// The name of a header added by proxies, if there is one.
  package var forwarded: String?
  /// The `Content-Type` header.
  package var contentType: String?
  /// True if the request has a body.
  package var hasContent = false
  /// True if the route takes content of any type.
  package var takesAnyContent = false
  /// The peer's address.
  package var address = ""

  package init(credential: Credential, host: String? = nil, origin: String? = nil) {
    self.credential = credential
    self.host = host
    self.origin = origin
  }

  /// Reads the headers of a request.
  ///
  /// - Parameter takesAnyContent: Whether the route takes content of any type, as uploads do.
  package init(headers: HTTPHeaders, address: String, takesAnyContent: Bool = false) {
    self.init(
      credential: Credential(authorization: headers["Authorization"]), host: headers["Host"],
      origin: headers["Origin"])
    fetchSite = headers["Sec-Fetch-Site"]
    forwarded = Self.proxyHeaders.first { headers[$0] != nil }
    contentType = headers["Content-Type"]
    hasContent =
      headers["Transfer-Encoding"] != nil || !["0", nil].contains(headers["Content-Length"])
    self.takesAnyContent = takesAnyContent
    self.address = address
  }

  private static let proxyHeaders = [
    "Forwarded", "X-Forwarded-For", "X-Real-IP", "Via", "X-Forwarded-Host",
  ]

  /// True if the body is declared as `application/json`, with any parameters.
  var isJSON: Bool {
    guard let type = contentType?.until(";") else { return false }
    return type.trimmedBlanks.lowercasedASCII == "application/json"
  }
}
