import FerryTestSupport
import Foundation

/// A report page in a real browser.
struct ReportBrowser {
  private let browser: HeadlessBrowser
  private let directory: TemporaryDirectory

  /// Throws an error that explains how to install a browser if there is none.
  init() throws {
    browser = try HeadlessBrowser()
    directory = try TemporaryDirectory()
  }

  /// Opens a page, lets the page's script and `probe` run, and returns the document as it is then.
  ///
  /// - Parameter probe: The body of an async function in the page's own scope; the result goes into
  ///   `answer(in:)`. `await settled()` waits until the page shows the changes.
  func document(
    _ page: [UInt8], fragment: String = "", window: HeadlessBrowser.Window = .laptop,
    probe: String = "return null"
  ) async throws -> String {
    let text = String(decoding: page, as: UTF8.self)
      .replacingOccurrences(of: "<body>", with: "<body>\n" + Self.frames)
      .replacingOccurrences(of: "</body>", with: Self.script(probe) + "</body>")
    let file = try written(Array(text.utf8))
    return try await browser.document(at: file + fragment, window: window)
  }

  /// Returns the result of the probe.
  func answer<Value: Decodable>(_ type: Value.Type, in document: String) throws -> Value {
    let opening = " data-probe=\""
    guard let start = document.range(of: opening)?.upperBound,
      let end = document[start...].firstIndex(of: "\""),
      let json = document[start..<end].removingPercentEncoding
    else { throw TestSupportError("the probe left no answer in \(document.prefix(3000))") }
    return try JSONDecoder().decode(type, from: Data(json.utf8))
  }

  /// Opens a page, and returns the result of the probe.
  func ask<Value: Decodable>(
    _ type: Value.Type, _ page: [UInt8], fragment: String = "",
    window: HeadlessBrowser.Window = .laptop, probe: String
  ) async throws -> Value {
    try answer(
      type, in: try await document(page, fragment: fragment, window: window, probe: probe))
  }

  /// Returns a picture of the page as PNG.
  func picture(
    _ page: [UInt8], theme: HeadlessBrowser.Theme = .light,
    window: HeadlessBrowser.Window = .laptop
  ) async throws -> Data {
    try await browser.picture(of: try written(page), theme: theme, window: window)
  }

  private func written(_ page: [UInt8]) throws -> String {
    let file = directory.file("page.html")
    try Data(page).write(to: file)
    return file.absoluteString
  }

  /// The browser's virtual time waits for timers, not for frames: so frames are timers here.
  private static let frames = """
    <script>
    window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);
    </script>

    """

  private static func script(_ probe: String) -> String {
    """
    <script>
    (async () => {
      const settled = () => new Promise((done) => setTimeout(done, 50));
      const press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", { key }));
      const rows = () => [...document.querySelectorAll("#rows tr")].map((row) => row.dataset.kind);
      const answer = await (async () => { \(probe) })().catch((error) => String(error));
      document.documentElement.dataset.probe = encodeURIComponent(JSON.stringify(answer));
    })();
    </script>

    """
  }
}
