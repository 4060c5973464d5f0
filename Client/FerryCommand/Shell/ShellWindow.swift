import FerryCommandLine
import FerryPlatform
import FerryShell
import Foundation

/// The program `ferry-window`; it shows the page in a separate web view.
struct ShellWindow {
  private static let name = "ferry-window"
  private static let crashesMax = 5
  private let program: URL

  /// Finds the program beside this one, or on the path.
  init() throws {
    guard let program = ProgramPath.find(Self.name, isBeside: true) else {
      throw Self.failure("\(Self.name) is neither beside ferry nor on the PATH")
    }
    self.program = program
  }

  /// Shows the page until the user closes the window.
  func show(_ shell: FerryShell.Shell) async throws {
    let process = Process()
    process.executableURL = program
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    let endings = AsyncStream<Int32> { continuation in
      process.terminationHandler = {
        continuation.yield($0.terminationStatus)
        continuation.finish()
      }
    }
    do {
      try process.run()
    } catch {
      throw Self.failure("\(program.path): \(error.localizedDescription)")
    }
    // The address is no argument: the command line of a process is visible to all users.
    Self.send(shell.makeAddress(), to: input)
    var crashes = 0
    let id = process.processIdentifier
    await withTaskCancellationHandler {
      for await line in Self.lines(of: output.fileHandleForReading) {
        guard let reason = line.rest(after: "crashed ") else { continue }
        await shell.reportCrash(String(reason))
        crashes += 1
        // A page that always crashes must not keep the machine busy.
        if crashes <= Self.crashesMax { Self.send(shell.makeAddress(), to: input) }
      }
    } onCancel: {
      kill(id, SIGTERM)
    }
    let status = await endings.first { _ in true }
    // The open end of the input is this program's sign of life.
    withExtendedLifetime(input) {}
    guard status == 0 || Task.isCancelled else {
      throw Self.failure("\(Self.name) ended with status \(status ?? -1)")
    }
  }

  /// Sends an address; a closed window accepts none.
  private static func send(_ address: String, to input: Pipe) {
    try? input.fileHandleForWriting.write(contentsOf: Data((address + "\n").utf8))
  }

  private static func lines(of handle: FileHandle) -> AsyncStream<String> {
    AsyncStream { continuation in
      let thread = Thread {
        var rest = Data()
        while true {
          let bytes = handle.availableData
          if bytes.isEmpty { break }
          rest += bytes
          while let end = rest.firstIndex(of: 0x0A) {
            continuation.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
            rest = Data(rest[(end + 1)...])
          }
        }
        continuation.finish()
      }
      thread.start()
    }
  }

  private static func failure(_ reason: String) -> CommandFailure {
    CommandFailure(
      "the window cannot be shown", why: reason,
      next: "build it with `make window`, or leave out --window to use a browser",
      code: "no_window")
  }
}
