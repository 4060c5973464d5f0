import FerryTestSupport
import Foundation
import Testing

/// The limits of the containers that are shipped.
@Suite("The limits of shipped containers", .hangLimit)
struct ShippedLimitsTests {
  private func text(_ path: String) throws -> String {
    let here = URL(filePath: #filePath).deletingLastPathComponent()
    return try String(
      contentsOf: here.appending(path: "../../\(path)").standardized, encoding: .utf8)
  }

  @Test("docker-compose.yml passes each limit of the documents to the nodes, by its variable")
  func compose() throws {
    let document = try text("Documentation/operations.md")
    let section = try #require(document.split(separator: "\n## Limits\n", maxSplits: 1).last)
    let table = try #require(section.split(separator: "\n## ", maxSplits: 1).first)
    let flags = table.split(separator: "\n").filter { $0.hasPrefix("| `--") }.flatMap { row in
      row.dropFirst().prefix { $0 != "|" }.matches(of: /`--([a-z-]+)`/).map { $0.1 }
    }
    #expect(flags.count > 30 && flags.contains("quota-unpublished-files"))
    let compose = try text("docker-compose.yml")
    let node = try #require(compose.split(separator: "x-ferryd: &ferryd", maxSplits: 1).last)
    let settings = try #require(node.split(separator: "\nx-postgres:", maxSplits: 1).first)
    for flag in flags {
      let variable = "FERRY_" + flag.uppercased().replacing("-", with: "_")
      #expect(settings.contains("\n    \(variable): ${\(variable):-"), "--\(flag)")
    }
  }
}
