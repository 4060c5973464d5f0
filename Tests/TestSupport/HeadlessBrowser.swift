import FerryLaboratory
import Foundation

/// A real browser without a window, with a separate profile.
package struct HeadlessBrowser: Sendable {
  /// The colours requested from a page.
  package enum Theme: Int, Sendable { case dark, light }

  /// The size of the window, in CSS pixels.
  package struct Window: Sendable {
    package static let laptop = Window(width: 1280, height: 800)
    package static let phone = Window(width: 390, height: 844)

    package let width: Int
    package let height: Int

    package init(width: Int, height: Int) {
      (self.width, self.height) = (width, height)
    }
  }

  package let program: URL
  private let directory: TemporaryDirectory

  /// Throws an error that explains how to install a browser if there is none.
  package init() throws {
    program = try Self.find()
    directory = try TemporaryDirectory()
  }

  /// Returns the browser that FERRY_TEST_BROWSER names, as a path or a name on the PATH; otherwise
  /// the first one of these names. `Scripts/browse.py` has the same rule.
  package static func find() throws -> URL {
    let environment = ProcessInfo.processInfo.environment
    let wanted = environment["FERRY_TEST_BROWSER"].flatMap { $0.isEmpty ? nil : $0 }
    let names = wanted.map { [$0] } ?? names
    let folders = (environment["PATH"] ?? "/usr/bin").split(separator: ":")
    let candidates = names.flatMap { name in
      name.contains("/") ? [name] : folders.map { "\($0)/\(name)" }
    }
    if let path = candidates.first(where: FileManager.default.isExecutableFile) {
      return URL(filePath: path)
    }
    if let wanted {
      throw TestSupportError("FERRY_TEST_BROWSER names \(wanted), which is no program")
    }
    throw TestSupportError(
      "no Chromium is installed: run `Scripts/install-dependencies.sh test`"
        + " (on Debian: apt-get install chromium-headless-shell)")
  }

  private static let names = [
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
  ]

  /// Variables by which a browser uses no file of the user's own one.
  package static func environment(in directory: URL) -> [String: String] {
    Dictionary(
      ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map { ($0, directory.path) },
      uniquingKeysWith: { $1 })
  }

  /// Opens a page, lets the page's script run, and returns the document as it is then.
  ///
  /// The time of the page is virtual: it runs ahead while the page waits for timers only.
  package func document(at page: String, window: Window = .laptop) async throws -> String {
    try await run(["--dump-dom"] + options(window), page).output
  }

  /// Returns a picture of a page as PNG.
  package func picture(
    of page: String, theme: Theme = .light, window: Window = .laptop
  ) async throws -> Data {
    let file = directory.file("picture.png")
    let scheme = "--blink-settings=preferredColorScheme=\(theme.rawValue)"
    _ = try await run(["--screenshot=\(file.path)", scheme] + options(window), page)
    return try Data(contentsOf: file)
  }

  /// Opens a page of this machine in real time, until the returned process is released.
  package func open(_ page: String, window: Window = .laptop) throws -> ChildProcess {
    try ChildProcess(
      program,
      Self.common + options(window) + [
        "--remote-debugging-port=0", "--user-data-dir=\(directory.file("live").path)",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", page,
      ], environment: Self.environment(in: directory.url))
  }

  private static var common: [String] {
    (geteuid() == 0 ? ["--no-sandbox"] : []) + [
      "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
      "--no-proxy-server",
    ]
  }

  /// A whole Chromium takes part of a window for controls, and has no window as narrow as a phone.
  /// Without controls, the page is as large as the screen.
  private func options(_ window: Window) -> [String] {
    [
      "--kiosk", "--screen-info={\(window.width)x\(window.height)}",
      "--window-size=\(window.width),\(window.height)", "--hide-scrollbars",
    ]
  }

  private func run(_ options: [String], _ page: String) async throws -> ChildProcess.Finished {
    let finished = try await ChildProcess.run(
      program,
      Self.common + [
        "--user-data-dir=\(directory.file("profile").path)", "--virtual-time-budget=10000",
        // Whatever a page asks for beyond itself is not found.
        "--host-resolver-rules=MAP * ~NOTFOUND",
      ] + options + [page], environment: Self.environment(in: directory.url))
    guard finished.status == .exited(0) else {
      throw TestSupportError("the browser ended with \(finished.status): \(finished.error)")
    }
    return finished
  }
}
