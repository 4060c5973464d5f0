import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("Missions with damaged or missing files", .hangLimit)
struct MissionMishapTests {
  private let shelf = Shelf()
  private let small = content(1, 10)
  private let large = content(2, 300_000)

  private func publish(_ id: String) {
    shelf.publish(Publication(id, [("a.txt", small), ("media/b.bin", large)]))
  }

  @Test("a file that another one of the same size has replaced is found, and repaired")
  func replacedFile() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    let path = try await device.manager.path(mission("m")) + "/media/b.bin"
    try FileManager.default.removeItem(atPath: path)
    #expect(FileManager.default.createFile(atPath: path, contents: Data(content(3, 300_000))))
    let found = try await device.manager.verify(mission("m"))
    #expect(!found.isIntact && found.damaged.isEmpty)
    #expect(found.fault?.item == "media/b.bin")
    #expect(try await device.manager.verify(mission("m"), repairing: true).isRepaired)
    #expect(try await device.read("media/b.bin", in: "m") == large)
    #expect(try await device.manager.verify(mission("m")).isIntact)
  }

  @Test("damage that a check found is shown, and the next download repairs it")
  func downloadAfterCheck() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    let path = try await device.manager.path(mission("m")) + "/media/b.bin"
    try FileManager.default.removeItem(atPath: path)
    let found = try await device.manager.verify(mission("m"))
    #expect(found.fault?.message == "it is missing in the folder of its version")
    #expect(try await device.manager.mission(mission("m")).reason?.kind == .damaged)
    try await device.download("m")
    #expect(try await device.read("media/b.bin", in: "m") == large)
    #expect(try await device.manager.mission(mission("m")).reason == nil)
    #expect(try await device.manager.verify(mission("m")).isIntact)
  }

  @Test("a copy of the content is accepted in place of a link to it")
  func copiedFile() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    let path = try await device.manager.path(mission("m")) + "/media/b.bin"
    try FileManager.default.removeItem(atPath: path)
    #expect(FileManager.default.createFile(atPath: path, contents: Data(large)))
    #expect(try await device.manager.verify(mission("m")).isIntact)
  }

  @Test("a repair without a connection reports it, and runs when there is one")
  func mendingOffline() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    try await device.damage("a.txt", of: "m", with: [1, 2, 3])
    shelf.obstruct(small, .fails(DownloadError(.offline, "cannot reach the server")))
    let error = await #expect(throws: MissionError.self) {
      try await device.manager.verify(mission("m"), repairing: true)
    }
    #expect(error?.kind == .offline && error?.item == "a.txt")
    #expect(try await !device.manager.verify(mission("m")).isIntact)
    #expect(try await device.manager.verify(mission("m"), repairing: true).isRepaired)
    #expect(try await device.read("a.txt", in: "m") == small)
  }

  @Test("a check can be stopped before all content is read", arguments: [false, true])
  func stoppedCheck(isSealed: Bool) async throws {
    publish("m")
    let device = try await Device(shelf, key: isSealed ? [UInt8](repeating: 1, count: 32) : nil)
    try await device.download("m")
    let content = StoredContent(hash: hash(large), size: Int64(large.count))
    let files = device.files
    let check = Task { () -> MissionError.Kind? in
      withUnsafeCurrentTask { $0?.cancel() }
      do { _ = try await files.isIntact(content) } catch { return (error as? MissionError)?.kind }
      return nil
    }
    #expect(await check.value == .cancelled)
    #expect(try await files.isIntact(content))
  }

  @Test("the reason of a pause is reported even if it cannot be stored")
  func unwritableReason() async throws {
    publish("m")
    let device = try await Device(shelf)
    let other = try SQLiteConnection(path: device.store.path)
    try other.execute(
      """
      CREATE TRIGGER full BEFORE UPDATE OF state ON missions WHEN NEW.state = 'paused'
      BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END
      """)
    shelf.obstruct(large, .fails(DownloadError(.diskFull, "no space left on device")))
    let ended = try await device.download("m")
    #expect(ended.first?.state == .paused)
    #expect(ended.first?.reason?.kind == .diskFull)
    try other.execute("DROP TRIGGER full")
    try await device.manager.resume(mission("m"))
    #expect(try await device.manager.waitUntilIdle([mission("m")]).first?.state == .done)
  }

  @Test("a server that breaks off at the same byte each time is not asked for ever")
  func alwaysCut() async throws {
    publish("m")
    var options = MissionOptions()
    options.pauses.attemptsMax = 3
    let device = try await Device(shelf, options: options)
    for _ in 0..<12 { shelf.obstruct(large, .breaksOff(after: 1_000)) }
    let ended = try await device.download("m")
    #expect(ended.first?.state != .done)
    #expect(shelf.fetches(of: large) < 12)
  }

  @Test("an empty store accepts a key, and another one; a used store keeps its key")
  func firstKey() async throws {
    publish("m")
    let plain = try await Device(shelf)
    #expect(try await plain.manager.list().count == 1)
    let (key, other) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
    let sealed = try await Device(shelf, in: plain.folder, key: key)
    try await sealed.download("m")
    for wrong in [nil, other] {
      let error = await #expect(throws: MissionError.self) {
        try await Device(shelf, in: plain.folder, key: wrong)
      }
      #expect(error?.kind == .wrongKey)
    }
    try await sealed.manager.remove(mission("m"))
    _ = try await Device(shelf, in: plain.folder, key: other)
    _ = try await Device(shelf, in: plain.folder)
  }
}
