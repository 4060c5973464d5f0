import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The article "Your first replica" works exactly as printed.
@Suite(.hangLimit)
struct DocumentedFirstReplicaTests {
  @Test("the article's code equals the compiled one")
  func sameLines() throws {
    let article = try Project.text("Client/Ferry/Ferry.docc/FirstReplica.md")
    let blocks = article.matches(of: /```swift\n(?<code>(?s:.*?))```/).map { $0.code }
    #expect(blocks.count > 5)
    let shown = blocks.joined()
      .replacing("\"phone.db\"", with: "folder + \"/phone.db\"")
      .replacing("\"laptop.db\"", with: "folder + \"/laptop.db\"")
      .replacing("\"http://127.0.0.1:8080\"", with: "server")
    let example = try Project.text("Tests/PairTests/DocumentedFirstReplica.swift")
    let body = try #require(
      example.firstMatch(of: /func documentedFirstReplica.*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
  }

  @Test("the article's code ends with the chosen value in two whole files")
  func runs() async throws {
    let server = try await Server.start()
    let directory = try TemporaryDirectory()
    try await documentedFirstReplica(folder: directory.url.path, server: server.url)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.url.path)
    #expect(names.allSatisfy { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") })
    for name in ["phone.db", "laptop.db"] {
      let database = try await LocalDatabase.open(directory.file(name).path)
      let bodies = try await database.read { try $0.query("SELECT body FROM notes") }
      #expect(bodies.map(\.values) == [["Buy oat milk"]])
      await database.close()
    }
  }
}
