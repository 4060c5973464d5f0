import FerryProtocol
import Synchronization
import Testing

@testable import FerryMissions

// The files of versions on the device.
extension BundlesTests {
  @Test("a device whose files are gone falls back, and fetches them again")
  func lost() async throws {
    publish("1")
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    try await bundles.update(board)
    try await bundles.confirm(try #require(try await bundles.active(board)))
    publish("2")
    try await bundles.update(board)
    try await device.manager.remove(mission("bundle.board.2"))
    #expect(try await bundles.active(board)?.version == version("1"))
    #expect(try await bundles.update(board))
    #expect(try await bundles.active(board)?.version == version("2"))
    // A damaged file is an error, and not another page.
    try await device.damage("index.html", of: "bundle.board.2", with: Array("evil".utf8))
    let second = try #require(try await bundles.active(board))
    await #expect(throws: BundleError.self) { try await second.open("index.html").readAll() }
  }

  @Test("only the version in use, the last two good ones and later ones keep their files")
  func outdated() async throws {
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    for number in 1...4 {
      publish("\(number)")
      try await bundles.update(board)
      try await bundles.confirm(try #require(try await bundles.active(board)))
    }
    let here = try await device.manager.list().filter(\.isDownloaded).map(\.id.value)
    #expect(here == ["bundle.board.2", "bundle.board.3", "bundle.board.4"])
    let former = try await bundles.list().filter(\.isPrevious).map(\.id.version)
    #expect(former == [version("2"), version("3")])
  }

  @Test("a version keeps its files as long as one process has it, and loses them after that")
  func leases() async throws {
    publish("1")
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    try await bundles.update(board)
    var open = try await bundles.active(board)
    try await bundles.confirm(try #require(open))
    let other = try await self.bundles(on: try await device.another())
    for number in 2...5 {
      publish("\(number)")
      try await other.update(board)
      try await other.confirm(try #require(try await other.active(board)))
    }
    func here() async throws -> [String] {
      try await device.manager.list().filter(\.isDownloaded).map(\.id.value)
    }
    #expect(try await page(open) == "<h1>1</h1>")
    #expect(try await here() == [1, 3, 4, 5].map { "bundle.board.\($0)" })
    // A copy keeps them as well, and a released one does not.
    let copy = Mutex(open)
    open = open?.released()
    await other.removeOutdated(of: board)
    #expect(try await page(copy.withLock { $0 }) == "<h1>1</h1>")
    copy.withLock { $0 = nil }
    await other.removeOutdated(of: board)
    #expect(try await here() == [3, 4, 5].map { "bundle.board.\($0)" })
    let gone = try #require(open)
    await #expect(throws: BundleError.self) { try await gone.open("index.html") }
  }

  @Test("bundles that are encrypted at rest are read like others")
  func sealed() async throws {
    publish("1")
    let device = try await Device(shelf, key: [UInt8](repeating: 3, count: 32))
    let bundles = try await bundles(on: device)
    try await bundles.update(board)
    let active = try #require(try await bundles.active(board))
    #expect(try await page(active) == "<h1>1</h1>" && active.folder == nil)
  }
}
