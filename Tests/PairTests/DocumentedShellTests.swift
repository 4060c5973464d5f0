import Ferry
import FerryTestSupport
import Foundation
import Testing

@testable import FerryShell

/// The examples of Documentation/shell.md.
@Suite(.hangLimit)
struct DocumentedShellTests {
  private let document: DocumentedCode

  init() throws { document = try DocumentedCode("Documentation/shell.md") }

  @Test("the document's program equals the compiled one, and starts a shell")
  func program() async throws {
    let shown = document.blocks("swift")[0]
    let example = try DocumentedCode("Tests/PairTests/DocumentedShell.swift").text
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

  @Test("the documents' declarations of a bundle are some")
  func declarations() throws {
    for path in ["Documentation/shell.md", "Documentation/bundles.md"] {
      let json = try #require(try DocumentedCode(path).blocks("json").first, "\(path)")
      let declaration = try FolderDeclaration(json: Array(json.utf8))
      #expect(declaration.name.value == "board" && declaration.version.description == "1.2")
    }
  }
}
