import FerryHTTPServer
import FerryProtocol

/// Answers with the files of the console.
struct ConsoleHandler: Sendable {
  /// Returns a file of the console. It contains no data: the page requests data with the caller's
  /// token.
  func file(_ context: inout RequestContext) throws(Problem) -> HTTPResponse {
    guard let name = context.match.itemText else {
      return HTTPResponse(
        status: 308, headers: ["Location": "/console/", "Cache-Control": "no-cache"])
    }
    guard let file = ConsoleFile.named(name) else {
      throw Problem(.notFound, "the console has no such file; open /console/")
    }
    return HTTPResponse(
      status: 200,
      headers: [
        "Content-Type": file.mediaType, "Cache-Control": "no-cache",
        "Content-Security-Policy": ConsoleFile.securityPolicy,
        "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
      ],
      body: .bytes(file.content), compressible: true)
  }
}
