import Ferry
import FerryTestSupport
import Foundation
import Testing

@testable import FerryShell

/// The examples of Documentation/shell.md.
@Suite(.hangLimit)
struct DocumentedShellTests {
  private let page: String

  init() throws {
    page = try Self.file("../../Documentation/shell.md")
  }

  private static func file(_ path: String) throws -> String {
    let here = URL(filePath: #filePath).deletingLastPathComponent()
    return try String(contentsOf: here.appending(path: path).standardized, encoding: .utf8)
  }

  @Test("the document's program equals the compiled one, and starts a shell")
  func program() async throws {
    let shown = try #require(page.firstMatch(of: /```swift\n(?<code>(?s:.*?))```/)).code
    let example = try Self.file("DocumentedShell.swift")
    let body = try #require(
      example.firstMatch(of: /func shellExample.*\{\n(?<code>(?s:.*))\n  return shell\n\}/)
    ).code
    let lines = shown.split(separator: "\n").filter { !$0.hasPrefix("import ") }.joined()
    #expect(lines.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
    for module in ["Ferry", "FerryShell"] { #expect(shown.contains("import \(module)\n")) }
    let folder = try TemporaryDirectory()
    let replica = try await Replica.open(folder.file("replica.db").path)
    let shell = try shellExample(replica: replica)
    #expect(shell.port > 0)
    shell.stop()
    await replica.close()
  }

  @Test("the document's declaration of a bundle is one")
  func declaration() throws {
    let json = try #require(page.firstMatch(of: /```json\n(?<json>(?s:.*?))```/)).json
    let declaration = try FolderDeclaration(json: Array(json.utf8))
    #expect(declaration.name == "board" && declaration.version == "1.2")
  }
}
