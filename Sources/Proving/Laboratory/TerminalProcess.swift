import Foundation

/// A running program on a separate pseudo-terminal, with a keyboard to type on.
///
/// It is killed when this object is released. The terminal is not the program's controlling one: a
/// key makes no signal.
package final class TerminalProcess: CapturedProcess {
  private let capture: ChildCapture
  private let keyboard: Int32

  /// Starts a program on a terminal of 80 columns and 24 lines.
  ///
  /// - Parameters:
  ///   - environment: Variables to add to ``ChildEnvironment``.
  ///   - directory: The working directory; the test's own by default.
  package init(
    _ executable: URL, _ arguments: [String] = [], environment: [String: String] = [:],
    directory: URL? = nil
  ) throws {
    let (screen, terminal, keyboard) = try ProcessSpawner.withoutSpawning { try Self.open() }
    let silence = try PipeEnds.open()
    defer { for descriptor in [terminal, silence.writer] { close(descriptor) } }
    do {
      let process = try ProcessSpawner.spawn(
        SpawnRequest(
          executable: executable.path, arguments: arguments, environment: environment,
          directory: directory?.path, input: terminal, output: terminal, error: terminal))
      capture = ChildCapture(process, name: executable.lastPathComponent)
    } catch {
      for descriptor in [screen, keyboard, silence.reader] { close(descriptor) }
      throw error
    }
    self.keyboard = keyboard
    capture.start(output: screen, error: silence.reader)
  }

  deinit {
    capture.signal(SIGKILL)
    close(keyboard)
  }

  /// All bytes written to the terminal by the program, with the echo of the keys.
  package var screen: String { capture.text(.output) }

  /// Types text; `\r` is Enter, and `\u{3}` is Ctrl-C.
  package func type(_ text: String) throws {
    let bytes = Array(text.utf8)
    guard write(keyboard, bytes, bytes.count) == bytes.count else {
      throw TestSupportError.posix("cannot type")
    }
  }

  package var endReport: String? { capture.endReport }

  /// Sends a signal.
  package func send(_ signal: Int32) { capture.signal(signal) }

  /// Waits for the end of the program and of the output.
  package func exitStatus(
    within limit: Duration = .hangLimit
  ) async throws -> ChildProcess.ExitStatus {
    try await capture.exitStatus(within: limit)
  }

  /// Opens a terminal: two descriptors of the side of the user, one of the program's side.
  private static func open() throws -> (screen: Int32, terminal: Int32, keyboard: Int32) {
    var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
    var (screen, terminal): (Int32, Int32) = (-1, -1)
    guard openpty(&screen, &terminal, nil, nil, &size) == 0 else {
      throw TestSupportError.posix("cannot open a terminal")
    }
    let keyboard = dup(screen)
    guard keyboard >= 0 else { throw TestSupportError.posix("cannot open the keyboard") }
    for descriptor in [screen, terminal, keyboard] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return (screen, terminal, keyboard)
  }
}
