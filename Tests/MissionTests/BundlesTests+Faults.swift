import FerryProtocol
import Testing

@testable import FerryMissions

// Versions and reports refused by a server or a shell.
extension BundlesTests {
  @Test("two contents of one version are both reported, in requests of their own")
  func twoContents() async throws {
    let device = try await Device(shelf)
    let reports = Reports()
    let bundles = try await bundles(on: device, reports: reports)
    publish("2")
    try await bundles.update(board)
    try await bundles.confirm(try #require(try await bundles.active(board)))
    publish("1")
    try await bundles.fetch(board, version: version("1"))
    try await bundles.activate(board, version: version("1"))
    let first = try #require(try await bundles.active(board))
    try await bundles.confirm(first)
    // Another key has signed the version again.
    publish("1") { $0.version = 2 }
    try await bundles.fetch(board, version: version("1"))
    try await bundles.activate(board, version: version("1"))
    let second = try #require(try await bundles.active(board))
    #expect(second.manifest != first.manifest)
    try await bundles.confirm(second)
    await bundles.synced()
    let expected = [first.manifest, second.manifest]
    #expect(reports.all.filter { $0.bundle.version == version("1") }.map(\.manifest) == expected)
    #expect(reports.all.count == 3)
    #expect(await bundles.attend())
    #expect(reports.all.count == 3)
  }

  @Test("a version whose manifest this release does not take gives way to the last good one")
  func laterRule() async throws {
    publish("1")
    let device = try await Device(shelf)
    let bundles = try await bundles(on: device)
    try await bundles.update(board)
    try await bundles.confirm(try #require(try await bundles.active(board)))
    publish("2")
    try await bundles.update(board)
    let id = mission("bundle.board.2")
    let manifest = try await device.manager.manifest(id)
    try await device.store.setManifest([1], manifest, of: MissionVersion(id, 1))
    #expect(try await bundles.active(board)?.version == version("1"))
  }

  @Test("an entry that no shell can show is refused by publishers and devices")
  func entries() {
    func fault(_ entry: String, bytes: Int64 = 10) -> String? {
      let id = BundleID(board, version("1"))
      return MissionManifest(
        space: spaceName, id: id.mission, version: 1,
        items: [
          MissionItem(
            path: entry, mediaType: "text/html", size: bytes, hash: hash([1]),
            chunks: bytes > MissionManifest.chunkSizeDefault ? [hash([2]), hash([3])] : [])
        ],
        bundle: BundleDeclaration(id, entry: entry)
      ).fault()
    }
    let long = String(repeating: "a", count: 128)
    for good in ["index.html", "a/-/b.html", "a/\(long)", "a.b/c..html"] {
      #expect(fault(good) == nil, "\(good)")
    }
    for bad in [".index.html", "a/.b/c.html", "-/index.html", "-", "a\(long)/index.html"] {
      #expect(fault(bad)?.contains("entry") == true, "\(bad)")
    }
    #expect(fault("index.html", bytes: 4 << 20) == nil)
    #expect(fault("index.html", bytes: 4 << 20 | 1)?.contains("entry") == true)
  }
}
