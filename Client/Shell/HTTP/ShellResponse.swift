import FerryProtocol

/// An answer of the shell.
struct ShellResponse: Sendable {
  enum Body: Sendable {
    case bytes([UInt8])
    /// A part of content, read while it is sent.
    case content(ServedContent, Range<Int64>)
    /// Lines until the channel ends.
    case lines(LineChannel)
  }

  var status: Int
  var fields: [(name: String, value: String)] = []
  var body = Body.bytes([])
  /// True if the connection may carry another request.
  var keepsConnection = true

  /// Creates an answer without content.
  static func empty(_ status: Int, keepsConnection: Bool = true) -> ShellResponse {
    ShellResponse(status: status, keepsConnection: keepsConnection)
  }

  /// Creates an answer with a text, such as a document.
  static func text(_ status: Int, _ text: String, type: String) -> ShellResponse {
    bytes(status, Array(text.utf8), type: type)
  }

  /// Creates an answer with bytes.
  static func bytes(_ status: Int, _ bytes: [UInt8], type: String) -> ShellResponse {
    ShellResponse(status: status, fields: [("Content-Type", type)], body: .bytes(bytes))
  }

  /// Creates an answer in JSON.
  static func json(_ status: Int = 200, _ write: (inout JSONWriter) -> Void) -> ShellResponse {
    var json = JSONWriter()
    json.object(write)
    return bytes(status, json.finish(), type: "application/json")
  }

  /// Creates an answer with a failure for the page.
  static func failure(_ error: ServiceError, status: Int) -> ShellResponse {
    json(status) { $0.failure(error) }
  }

  /// Returns the head as sent.
  ///
  /// - Parameter closes: true if the connection ends after the answer.
  func head(closes: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(status) \(Self.reason(status))\r\n"
    var all = fields + ContentPolicy.fields
    if !all.contains(where: { $0.name == ContentPolicy.name }) { all.append(ContentPolicy.field()) }
    for field in all { text += "\(field.name): \(field.value)\r\n" }
    switch body {
    case .bytes(let bytes): text += "Content-Length: \(bytes.count)\r\n"
    case .content(_, let range): text += "Content-Length: \(range.count)\r\n"
    case .lines: text += "Transfer-Encoding: chunked\r\n"
    }
    if closes { text += "Connection: close\r\n" }
    return Array((text + "\r\n").utf8)
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 202: "Accepted"
    case 204: "No Content"
    case 206: "Partial Content"
    case 303: "See Other"
    case 400: "Bad Request"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 413: "Content Too Large"
    case 416: "Range Not Satisfiable"
    case 503: "Service Unavailable"
    default: "Refused"
    }
  }
}

extension JSONWriter {
  /// Writes the member `error`.
  mutating func failure(_ error: ServiceError) {
    key("error")
    object {
      $0.member("code", error.code)
      $0.member("message", error.message)
    }
  }
}
