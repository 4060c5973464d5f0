import FerryPersistence
import FerryTestSupport
import Foundation
import Testing

@Suite("Small settings", .hangLimit)
struct SettingsStoreTests {
  private struct Window: Codable, Sendable, Equatable {
    var width: Int
    var title: String?
  }

  @Test("Codable values are stored by name, replaced and removed")
  func roundTrip() async throws {
    let directory = try TemporaryDirectory(prefix: "ferry-settings")
    let path = directory.file("app.db").path
    let database = try await LocalDatabase.open(path)
    let settings = SettingsStore(database)
    #expect(try await settings.value("theme", as: String.self) == nil)
    #expect(try await settings.names().isEmpty)
    try await settings.remove("theme")
    try await settings.set("light", for: "theme")
    try await settings.set("dark", for: "theme")
    try await settings.set(Window(width: 3, title: nil), for: "window")
    #expect(try await settings.names() == ["theme", "window"])
    await database.close()
    let again = try await LocalDatabase.open(path)
    let kept = SettingsStore(again)
    #expect(try await kept.value("theme") == "dark")
    #expect(try await kept.value("window") == Window(width: 3, title: nil))
    await #expect(throws: RecordError.self) { try await kept.value("theme", as: Int.self) }
    try await kept.remove("theme")
    #expect(try await kept.names() == ["window"])
    await again.close()
  }

  @Test("a setting joins a transaction, and its limits count bytes")
  func transaction() async throws {
    let directory = try TemporaryDirectory(prefix: "ferry-settings")
    let database = try await LocalDatabase.open(directory.file("app.db").path)
    let settings = SettingsStore(database)
    struct Stop: Error {}
    await #expect(throws: Stop.self) {
      try await database.write { database in
        try SettingsStore.set(1, for: "count", in: database)
        #expect(try SettingsStore.value("count", in: database) == 1)
        throw Stop()
      }
    }
    #expect(try await settings.value("count", as: Int.self) == nil)
    let longest = String(repeating: "n", count: SettingsStore.nameBytesMax)
    try await settings.set(true, for: longest)
    for name in ["", longest + "n", String(repeating: "e\u{301}", count: 86)] {
      await #expect(throws: RecordError.self) { try await settings.set(true, for: name) }
    }
    let large = String(repeating: "x", count: SettingsStore.valueBytesMax)
    await #expect(throws: RecordError.self) { try await settings.set(large, for: "large") }
    #expect(try await settings.names() == [longest])
    await database.close()
  }
}
