import FerryHTTPServer
import FerryTestSupport
import Foundation
import Synchronization

/// A web server with a separate origin: it serves a folder, and a script to drive the page.
final class PageServer: Sendable {
  private let http: HTTPServer
  private let reports: Reports
  private let browser = Mutex(ChildProcess?.none)

  /// Serves a folder of this package.
  init(_ folder: String) throws {
    let root = Project.file(folder)
    let reports = Reports()
    http = try HTTPServer(configuration: HTTPServer.Configuration()) { request in
      let name = request.segments.last.flatMap { $0.isEmpty ? nil : $0 } ?? "index.html"
      switch (request.method, name) {
      case ("POST", "report"):
        reports.add(request.body)
        return HTTPResponse(status: 204)
      case (_, "probe.js"): return Self.answer(Array(reports.script.utf8), "text/javascript")
      default:
        guard var content = try? Array(Data(contentsOf: root.appending(path: name))) else {
          return HTTPResponse(status: 404)
        }
        let isPage = name.hasSuffix(".html")
        if isPage { content += Array("<script src=\"probe.js\"></script>\n".utf8) }
        return Self.answer(content, isPage ? "text/html" : "text/javascript")
      }
    }
    self.reports = reports
  }

  /// `http://127.0.0.1:PORT`.
  var origin: String { "http://127.0.0.1:\(http.port)" }

  /// Opens the page in a browser, until the returned process is killed or the next one opened.
  /// - Parameter probe: The body of an async function, run in the page. It may call
  ///   `report(name, value)` and `await until(() => …)`.
  func open(in browser: HeadlessBrowser, probe: String) throws -> ChildProcess {
    reports.script = Self.script(probe)
    let process = try browser.open(origin + "/")
    self.browser.withLock { $0 = process }
    return process
  }

  /// Waits for a report of the page, and returns the value as text.
  func report(_ name: String) async throws -> String {
    let process = browser.withLock { $0 }
    return try await eventually(
      "the page's report of \(name), not only \(reports.all)", from: process
    ) {
      if name != "error", let fault = reports["error"] {
        throw TestSupportError("the page's script failed: \(fault)")
      }
      return reports[name]
    }
  }

  func stop() async { await http.stop(grace: .zero) }

  private final class Reports: Sendable {
    private let kept = Mutex([String: String]())
    private let probe = Mutex("")

    var script: String {
      get { probe.withLock { $0 } }
      set { probe.withLock { $0 = newValue } }
    }
    var all: [String: String] { kept.withLock { $0 } }
    subscript(name: String) -> String? { all[name] }

    func add(_ body: [UInt8]) {
      let parts = String(decoding: body, as: UTF8.self).split(separator: "\n", maxSplits: 1)
      guard let name = parts.first else { return }
      kept.withLock { $0[String(name)] = parts.count > 1 ? String(parts[1]) : "" }
    }
  }

  private static func answer(_ content: [UInt8], _ type: String) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: ["Content-Type": "\(type); charset=utf-8"], body: .bytes(content))
  }

  private static func script(_ probe: String) -> String {
    """
    const report = (name, value) => fetch("/report", { method: "POST",
      body: name + "\\n" + (typeof value === "string" ? value : JSON.stringify(value)) });
    const until = async (found) => {
      for (;;) {
        const value = found();
        if (value) return value;
        await new Promise((done) => setTimeout(done, 10));
      }
    };
    (async () => { \(probe) })().catch((error) => report("error", String(error)));
    """
  }
}
