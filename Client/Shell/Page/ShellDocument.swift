/// The shell's own documents, without scripts.
struct ShellDocument {
  let status: Int
  let title: String
  let lines: [String]
  /// The address of a link, with the link's text.
  var link: (address: String, text: String)?
  /// The address that the document leads to at once.
  var forwards: String?

  /// Leads to the first page: a navigation from here carries the new cookie.
  static func forwarding(to address: String) -> ShellDocument {
    ShellDocument(
      status: 200, title: "Opening", lines: [], link: (address, "Open the page"), forwards: address)
  }

  /// The one-time address was used before.
  static let used = ShellDocument(
    status: 403, title: "This address was used",
    lines: [
      "An address of the shell opens the page once, so that no other program can use it.",
      "Start the program again for a new address.",
    ])

  /// Returns the document for a missing version.
  static func unavailable(_ error: BundleSourceError, retry: String) -> ShellDocument {
    ShellDocument(
      status: 503, title: "The page cannot be shown",
      lines: [error.event, error.reason, error.next].map { $0 + "." }, link: (retry, "Try again"))
  }

  var response: ShellResponse {
    var head = "<meta charset=\"utf-8\"><title>\(Self.escaped(title))</title>"
    if let forwards { head += "<meta http-equiv=\"refresh\" content=\"0;url=\(forwards)\">" }
    var body = "<h1>\(Self.escaped(title))</h1>"
    for line in lines { body += "<p>\(Self.escaped(line))</p>" }
    if let link {
      body += "<p><a href=\"\(Self.escaped(link.address))\">\(Self.escaped(link.text))</a></p>"
    }
    return .text(
      status, "<!doctype html><html lang=\"en\">\(head)\(body)", type: "text/html; charset=utf-8")
  }

  /// Returns a text as the content of an element or of an attribute in quotes.
  static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}
