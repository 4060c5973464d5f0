import FerryTestSupport
import Foundation
import Testing

/// The README's example works exactly as printed.
@Suite(.hangLimit)
struct ReadmeTests {
  @Test("the README's example equals the compiled one")
  func sameLines() throws {
    let readme = try Project.text("README.md")
    let shown = try #require(readme.firstMatch(of: /```swift\n(?<code>(?s:.*?))```/)).code
      .replacing("\"notes.db\"", with: "file")
      .replacing("\"http://127.0.0.1:8080\"", with: "server")
    let example = try Project.text("Tests/PairTests/ReadmeExample.swift")
    let body = try #require(
      example.firstMatch(of: /func readmeExample.*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    let prelude = "import Ferry\n"
    #expect(shown.hasPrefix(prelude))
    #expect(joined(shown.dropFirst(prelude.count)) == joined(body))
  }

  @Test("the README's example runs, and runs again")
  func runs() async throws {
    let server = try await Server.start()
    let directory = try TemporaryDirectory()
    for expected in [1, 2] as [Int64] {
      try await readmeExample(file: directory.file("notes.db").path, server: server.url)
      #expect(try await server.head() == expected)
    }
  }

  @Test("the README's example runs without a server, and sends its notes later")
  func runsOffline() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("notes.db").path
    try await readmeExample(file: file, server: "http://127.0.0.1:\(try FreePort.refused())")
    let server = try await Server.start()
    try await readmeExample(file: file, server: server.url)
    #expect(try await server.head() == 2)
  }

  /// Returns the code without white space, as formatting may change it.
  private func joined(_ code: some StringProtocol) -> String {
    String(code.filter { !$0.isWhitespace })
  }
}
