import FerryLaboratory
import Foundation

/// A real browser without a window, with a profile of its own.
package struct HeadlessBrowser: Sendable {
  /// The colours that a page is asked to use.
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

  /// Opens a page, lets its script run, and returns the document as it is then.
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
      ])
  }

  private static var common: [String] {
    (geteuid() == 0 ? ["--no-sandbox"] : []) + [
      "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    ]
  }

  private func options(_ window: Window) -> [String] {
    ["--window-size=\(window.width),\(window.height)", "--hide-scrollbars"]
  }

  private func run(_ options: [String], _ page: String) async throws -> ChildProcess.Finished {
    let finished = try await ChildProcess.run(
      program,
      Self.common + [
        "--user-data-dir=\(directory.file("profile").path)", "--virtual-time-budget=10000",
        // Whatever a page asks for beyond itself is not found.
        "--host-resolver-rules=MAP * ~NOTFOUND",
      ] + options + [page])
    guard finished.status == .exited(0) else {
      throw TestSupportError("the browser ended with \(finished.status): \(finished.error)")
    }
    return finished
  }
}
