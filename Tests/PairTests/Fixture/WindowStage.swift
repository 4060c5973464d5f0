import FerryTestSupport
import Foundation

/// A display without a screen, and the window's program.
final class WindowStage: Sendable {
  let folder: TemporaryDirectory
  let programs: TemporaryDirectory
  private let display: ChildProcess
  let environment: [String: String]

  init() async throws {
    folder = try TemporaryDirectory()
    programs = try TemporaryDirectory()
    let source = Project.file("Client/Window/Sources/ferry-window/main.c")
    let built = try await ChildProcess.run(
      URL(filePath: "/bin/sh"),
      [
        "-c",
        "cc -Wall -Wextra -Werror -o ferry-window '\(source.path)' "
          + "$(pkg-config --cflags --libs webkit2gtk-4.1)",
      ], directory: programs.url)
    guard built.status == .exited(0) else {
      throw TestSupportError("the window was not built: \(built.error)")
    }
    // Xvfb prints the display's number when it is ready, and keeps the picture in a file.
    display = try ChildProcess(
      URL(filePath: "/bin/sh"),
      [
        "-c",
        "exec Xvfb -displayfd 1 -screen 0 1200x900x24 -fbdir '\(programs.url.path)' 2>/dev/null",
      ])
    let number = try await display.line { !$0.isEmpty }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    environment = [
      "DISPLAY": ":\(number)", "PATH": "\(programs.url.path):\(path)",
      "GIO_USE_VFS": "local", "NO_AT_BRIDGE": "1",
    ]
  }

  /// The arguments of `ferry` that name the device's replica.
  var replica: [String] { ["-r", programs.file("a.db").path] }

  func run(_ program: String, _ arguments: String...) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      URL(filePath: "/usr/bin/env"), [program] + arguments, environment: environment,
      directory: programs.url)
  }

  /// Runs `ferry` on the device's replica; it has to succeed.
  @discardableResult
  func ferry(_ arguments: String...) async throws -> String {
    let finished = try await ChildProcess.run(try Executables.ferry(), replica + arguments)
    guard finished.status == .exited(0) else {
      throw TestSupportError("\(arguments): \(finished.error)")
    }
    return finished.output
  }

  /// Presses keys in the window with a title.
  func press(_ keys: String, in title: String) async throws {
    func search() async throws -> ChildProcess.Finished {
      try await run("xdotool", "search", "--sync", "--name", "^\(title)$")
    }
    var found = try await search()
    // The search ends if another window disappears while xdotool looks at it.
    for _ in 0..<20 where found.output.isEmpty && found.error.contains("BadWindow") {
      found = try await search()
    }
    guard let window = found.output.split(separator: "\n").first else {
      throw TestSupportError("there is no window \(title): \(found.error)")
    }
    _ = try await run("xdotool", "windowfocus", String(window), "key", keys)
  }

  /// Counts the colours of the display's picture, in the format of xwd(1).
  func colours() throws -> Int {
    let bytes = Array(try Data(contentsOf: programs.file("Xvfb_screen0")))
    func word(_ number: Int) -> Int {
      bytes[number * 4..<number * 4 + 4].reduce(0) { $0 << 8 | Int($1) }
    }
    guard bytes.count > 100 else { throw TestSupportError("the display has no picture") }
    // The header's size, the lines and their bytes, and 12 bytes for each entry of a table.
    let (start, length) = (word(0) + 12 * word(19), word(5) * word(12))
    guard start + length <= bytes.count else { throw TestSupportError("the picture is cut") }
    var found: Set<UInt32> = []
    for place in stride(from: start, to: start + length - 3, by: 4) {
      found.insert(bytes[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) })
    }
    return found.count
  }
}
