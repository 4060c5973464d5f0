import Ferry
import FerryTestSupport
import Foundation
import Testing

@Suite("The documents' examples of settings and secrets", .hangLimit)
struct DocumentedStoresTests {
  @Test("the examples equal the compiled ones")
  func sameLines() throws {
    let page = try Project.text("Documentation/stores.md")
    let example = try Project.text("Tests/PairTests/DocumentedStores.swift")
    let shown = page.matches(of: /```swift\nimport Ferry\n\n(?<code>(?s:.*?))```/)
    #expect(shown.count == 2)
    for block in shown { #expect(example.contains(block.code)) }
  }

  @Test("settings of a replica stay on the device, and secrets leave its file")
  func runs() async throws {
    let directory = try TemporaryDirectory(prefix: "ferry-stores")
    let path = directory.file("notes.db").path
    let replica = try await Replica.open(path)
    try await settings(replica)
    #expect(try await replica.operations.pending().isEmpty)
    #expect(try await SettingsStore(replica).value("theme") == "dark")
    // Only by name: plain SQL reads the table, and changes it no more than Ferry's others.
    let count = try await replica.read { try $0.query("SELECT count(*) FROM ferry_settings").count }
    #expect(count == 1)
    await #expect(throws: ReplicaError.self) {
      try await replica.write { try $0.execute("DELETE FROM ferry_settings") }
    }
    try await secrets(
      folder: directory.file("secrets").path, key: [UInt8](repeating: 1, count: 32))
    await replica.close()
  }
}
