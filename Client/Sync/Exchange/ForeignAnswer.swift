import FerryNetworking
import FerryPlatform
import FerryProtocol

/// An answer not from a Ferry server: the page of a proxy, a portal or another program.
struct ForeignAnswer: Error, Sendable, Equatable {
  /// The HTTP status.
  let status: Int
  /// A description of the answer for the user.
  let text: String
  /// Bytes of the request's body as it was sent.
  let bytesSent: Int

  /// True if requests of this size are too large for the answering program (RFC 9110 §15.5.14).
  var isTooLarge: Bool { status == 413 }

  /// True if the answer may reject the request's content, as a filter of bodies does. Temporary
  /// failures are retried instead.
  var mayConcernContent: Bool {
    switch status {
    case 401, 404, 405, 407: false
    default: !RetryPolicy.isTransient(status: status)
    }
  }
}

extension ForeignAnswer {
  /// Creates the answer to a request with a body of `bytesSent` bytes.
  init(_ response: NetworkResponse, bytesSent: Int) {
    status = response.status
    self.bytesSent = bytesSent
    let beginning = Self.beginning(of: response.body)
    let page =
      Self.title(in: response.body).map { "a web page, “\($0)”" }
      ?? (beginning.isEmpty ? "an empty answer" : "“\(beginning)”")
    let what = "\(page): a proxy or another program answered instead of a Ferry server"
    text =
      response.status == 413
      ? "the request of \(bytesSent) bytes is too large; \(what)" : what
  }

  /// Returns true if an answer is a web page, with any status.
  static func isWebPage(_ response: NetworkResponse) -> Bool {
    response.headers["Content-Type"]?.lowercasedASCII.begins(with: "text/html") ?? false
  }

  /// The number of searched bytes of a page.
  private static let lookedAt = 4_096

  /// Returns the title of an HTML page.
  private static func title(in body: [UInt8]) -> String? {
    let text = String(decoding: body.prefix(lookedAt), as: UTF8.self)
    guard
      let match = text.firstMatch(
        of: /(?is)<title[^>]*>\s*([^<]{1,100})/.matchingSemantics(.unicodeScalar))
    else { return nil }
    let title = match.output.1.fields.joined(separator: " ")
    return title.isEmpty ? nil : title
  }

  private static func beginning(of body: [UInt8]) -> String {
    let text = String(decoding: body.prefix(200), as: UTF8.self)
    return text.fields.joined(separator: " ")
  }
}
