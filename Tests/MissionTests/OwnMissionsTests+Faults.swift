import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

// Wrong input, damage, and readers of the disk.
extension OwnMissionsTests {
  @Test("a result that is too large or not JSON fails", arguments: ["[1,2,3,4]", "{nope"])
  func results(text: String) async throws {
    world.answer.withLock { $0 = text }
    var item = lessons
    item.sizeMax = 8
    let missions = try await open()
    try await missions.add(mission([item]))
    let status = try await missions.waitUntilIdle("course-7").first
    #expect(status?.state == .failed)
    #expect(status?.reason?.item == item.path)
    await missions.close()
  }

  @Test("paths and addresses are checked before anything is stored")
  func hostile() async throws {
    let missions = try await open()
    func item(_ path: String, _ url: String = "http://x/", after: [String] = []) -> OwnItem {
      .file(path, from: url, after: after)
    }
    let wrong: [[OwnItem]] = [
      [], [item("../a")], [item("/a")], [item("a/../b")], [item("a"), item("a")],
      [item("Film.mp4"), item("film.mp4")], [item("a"), item("a/b")], [item("a\u{0}")],
      [item("a", "file:///etc/passwd")], [item("a", "http://")], [item("a", after: ["b"])],
      [item("a", after: ["b"]), item("b", after: ["a"])],
    ]
    for items in wrong {
      let failure = await #expect(throws: MissionError.self, "\(items.map(\.path))") {
        try await missions.add(mission(items))
      }
      #expect(failure?.kind == .badManifest)
    }
    let failure = await #expect(throws: MissionError.self) {
      try await missions.add(OwnMission("../x", items: [item("a")]))
    }
    #expect(failure?.kind == .badManifest)
    #expect(try await missions.list().isEmpty)
    await missions.close()
  }

  @Test("with a key no content is on the disk unencrypted, not even during the download")
  func sealed() async throws {
    let key = [UInt8](repeating: 5, count: 32)
    world.cut.withLock { $0 = 4_000_000 }
    var missions = try await open(key: key)
    try await missions.add(mission([film, image]))
    let download = try #require(try await missions.download(of: "film.mp4", in: "course-7"))
    for await status in download.updates() where status.progress.bytesDone >= 3_000_000 { break }
    #expect(try !isPlainAnywhere())
    await missions.close()
    world.cut.withLock { $0 = nil }
    for other in [nil, [UInt8](repeating: 6, count: 32)] {
      let failure = await #expect(throws: MissionError.self) { try await open(key: other) }
      #expect(failure?.kind == .wrongKey)
    }
    missions = try await open(key: key)
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect(try !isPlainAnywhere())
    #expect(try await missions.content(of: "film.mp4", in: "course-7").readAll() == world.film)
    await missions.close()
  }

  private func isPlainAnywhere() throws -> Bool {
    let probe = Data(world.film[1_000_000..<1_000_064])
    let image = Data(world.image[1_000..<1_064])
    let files = FileManager.default.enumerator(atPath: folder)
    while let name = files?.nextObject() as? String {
      guard let found = FileManager.default.contents(atPath: "\(folder)/\(name)") else { continue }
      if found.range(of: probe) != nil || found.range(of: image) != nil { return true }
    }
    return false
  }

  @Test("a damaged item is fetched again from its own address")
  func repaired() async throws {
    let missions = try await open()
    try await missions.add(mission([image, lessons]))
    try await missions.waitUntilIdle("course-7")
    let items = try await missions.items("course-7")
    for item in items {
      let path = try #require(item.localPath)
      chmod(path, 0o600)
      try Data("wrong".utf8).write(to: URL(filePath: path))
    }
    #expect(try await missions.verify("course-7").damaged.count == 2)
    let report = try await missions.verify("course-7", repairing: true)
    #expect(report.isRepaired)
    #expect(try await missions.verify("course-7").isIntact)
    await missions.close()
  }

  @Test("a folder in use is refused to a second process")
  func locked() async throws {
    let missions = try await open()
    let failure = await #expect(throws: MissionError.self) { try await open() }
    #expect(failure?.kind == .busy)
    await missions.close()
    try await open().close()
  }
}
