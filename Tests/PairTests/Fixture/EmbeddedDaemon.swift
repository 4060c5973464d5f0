import FerryTestSupport
import Testing

/// `ferryd` as a process on an embedded store, at a port of its choice.
struct EmbeddedDaemon {
  let directory: TemporaryDirectory
  let data: String

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferryd-test")
    data = directory.file("data").path
  }

  /// Starts a server. Returns it when it is ready, with the reported port.
  func serve(_ arguments: [String] = []) async throws -> (ChildProcess, UInt16) {
    let child = try ChildProcess(
      try Executables.ferryd(),
      ["serve", "--listen", "127.0.0.1:0", "--data", data] + arguments)
    let ready = try await child.line { $0.contains("listening on http://") }
    let digits = ready.split(separator: ":").compactMap { part in
      UInt16(part.prefix { $0.isASCII && $0.isNumber })
    }
    return (child, try #require(digits.first))
  }

  func run(_ arguments: String...) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(try Executables.ferryd(), arguments + ["--data", data])
  }

  /// Makes a token with the command and returns the text.
  func token(_ role: String, space: String = "notes") async throws -> String {
    let made = try await run("token", "create", "--space", space, "--role", role)
    #expect(made.status == .exited(0))
    return made.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
