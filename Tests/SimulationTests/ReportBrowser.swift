import FerryTestSupport
import Foundation

/// A real browser without a window.
struct ReportBrowser {
  enum Theme: Int { case dark, light }

  let program: URL
  private let directory: TemporaryDirectory

  /// Throws an error that explains how to install a browser if there is none.
  init() throws {
    let names = [
      "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
    ]
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
    let candidates = names.flatMap { name in folders.map { "\($0)/\(name)" } }
    guard let path = candidates.first(where: FileManager.default.isExecutableFile) else {
      throw TestSupportError(
        "no Chromium is installed: run `Scripts/install-dependencies.sh test`"
          + " (on Debian: apt-get install chromium-headless-shell)")
    }
    program = URL(filePath: path)
    directory = try TemporaryDirectory()
  }

  /// Opens a page, lets its script and `probe` run, and returns the document as it is then.
  ///
  /// - Parameter probe: The body of an async function in the page's own scope; its result goes into
  ///   `answer(in:)`. `await settled()` waits until the page shows the changes.
  func document(_ page: [UInt8], fragment: String = "", probe: String = "return null") async throws
    -> String
  {
    let text = String(decoding: page, as: UTF8.self)
      .replacingOccurrences(of: "<body>", with: "<body>\n" + Self.frames)
      .replacingOccurrences(of: "</body>", with: Self.script(probe) + "</body>")
    return try await run(["--dump-dom"], Array(text.utf8), fragment).output
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
    _ type: Value.Type, _ page: [UInt8], fragment: String = "", probe: String
  ) async throws -> Value {
    try answer(type, in: try await document(page, fragment: fragment, probe: probe))
  }

  /// Returns a picture of the page as PNG.
  func picture(_ page: [UInt8], theme: Theme = .light) async throws -> Data {
    let file = directory.file("picture.png")
    let scheme = "--blink-settings=preferredColorScheme=\(theme.rawValue)"
    let options = ["--screenshot=\(file.path)", "--window-size=1200,1400", scheme]
    _ = try await run(options, page, "")
    return try Data(contentsOf: file)
  }

  private func run(_ options: [String], _ page: [UInt8], _ fragment: String) async throws
    -> ChildProcess.Finished
  {
    let file = directory.file("page.html")
    try Data(page).write(to: file)
    let asRoot = geteuid() == 0 ? ["--no-sandbox"] : []
    let finished = try await ChildProcess.run(
      program,
      asRoot + [
        "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--user-data-dir=\(directory.file("profile").path)", "--virtual-time-budget=10000",
        // Whatever a page asks for beyond itself is not found.
        "--host-resolver-rules=MAP * ~NOTFOUND",
      ] + options + [file.absoluteString + fragment])
    guard finished.status == .exited(0) else {
      throw TestSupportError("the browser ended with \(finished.status): \(finished.error)")
    }
    return finished
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
