import FerryTestSupport
import Foundation
import Testing

@testable import FerryCommandLine

@Suite("Tokens on the command line", .hangLimit)
struct TokenOptionsTests {
  private let folder: TemporaryDirectory
  private let spec = CommandSpec(
    "sample", summary: "A sample.", options: TokenOptions.options("The token.")
  ) { _ in .done }

  init() throws { folder = try TemporaryDirectory() }

  private func file(_ name: String, _ content: String) throws -> String {
    let file = folder.file(name)
    try Data(content.utf8).write(to: file)
    chmod(file.path, 0o600)
    return file.path
  }

  private func token(
    _ words: [String], _ environment: [String: String] = [:]
  ) throws -> String? {
    guard case .run(let arguments) = try spec.parse(words, environment: environment) else {
      throw CommandFailure("not a command to run", why: "", next: "", code: "test")
    }
    return try TokenOptions.token(arguments)
  }

  @Test("a token comes from a file, the environment or the command line; the command line counts")
  func sources() throws {
    let (one, two) = (try file("one", "first\n"), try file("two", "\n second \r\n"))
    #expect(try token([]) == nil)
    #expect(try token(["--token", "typed"]) == "typed")
    #expect(try token(["--token-file", one]) == "first")
    #expect(try token(["--token-file", two]) == "second")
    #expect(try token([], ["FERRY_TOKEN": "set"]) == "set")
    #expect(try token([], ["FERRY_TOKEN_FILE": one]) == "first")
    #expect(try token([], ["FERRY_TOKEN": "set", "FERRY_TOKEN_FILE": one]) == "set")
    #expect(try token(["--token-file", two], ["FERRY_TOKEN": "set"]) == "second")
    #expect(try token(["--token", "typed"], ["FERRY_TOKEN_FILE": one]) == "typed")
    #expect(throws: CommandFailure.self) {
      try token(["--token", "typed", "--token-file", one])
    }
  }

  @Test("a file that is no token is reported, and its content is not")
  func faults() throws {
    for content in [
      "", " \n", "two words", "two\nlines", "é", String(repeating: "x", count: 70_000),
    ] {
      let path = try file("bad", content)
      let failure = #expect(throws: CommandFailure.self) { try token(["--token-file", path]) }
      #expect(failure?.code == "no_token")
      #expect(failure?.why.contains("words") == false)
    }
    for path in [folder.url.path, folder.file("absent").path] {
      let failure = #expect(throws: CommandFailure.self) { try token(["--token-file", path]) }
      #expect(failure?.code == "cannot_read")
    }
  }
}
