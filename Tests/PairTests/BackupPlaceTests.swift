import FerryTestSupport
import Foundation
import Testing

/// Places of `ferryd backup` that another user of the machine can write to.
@Suite("Places of backups", .hangLimit)
struct BackupPlaceTests {
  private func emptyFolder(_ path: String, mode: Int = 0o755) throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: mode])
  }

  @Test("a backup refuses a place that is a symbolic link, or the folder of another user")
  func foreign() async throws {
    let fixture = try BackupFixture()
    let (server, _, blobs, store) = try await fixture.filled(.embedded)
    try await server.stop()
    let (target, link) = (fixture.folder.file("target").path, fixture.folder.file("link").path)
    try emptyFolder(target)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
    let linked = try await fixture.ferryd(["backup", link, "--blobs", blobs] + store, exits: 1)
    #expect(linked.error.contains("symbolic link"), "\(linked.error)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: target).isEmpty)
    // An ordinary user cannot give a folder away, but finds those of root.
    let isRoot = geteuid() == 0
    let other = isRoot ? fixture.folder.file("other").path : "/usr"
    if isRoot {
      try emptyFolder(other)
      #expect(chown(other, 65_534, 65_534) == 0)
    }
    let foreign = try await fixture.ferryd(["backup", other, "--blobs", blobs] + store, exits: 1)
    #expect(foreign.error.contains("belongs to another user"), "\(foreign.error)")
    #expect(!FileManager.default.fileExists(atPath: other + "/store.sqlite"))
  }

  @Test("a planted link with the name of a part leads nowhere, and the folder is closed to others")
  func planted() async throws {
    let fixture = try BackupFixture()
    let (server, _, blobs, store) = try await fixture.filled(.embedded)
    try await server.stop()
    let place = fixture.folder.file("place").path
    let victim = fixture.folder.file("victim").path
    try emptyFolder(place, mode: 0o777)
    let link = place + "/store.sqlite"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: victim)
    let planted = try await fixture.ferryd(["backup", place, "--blobs", blobs] + store, exits: 1)
    #expect(planted.error.contains("is not empty"), "\(planted.error)")
    #expect(!FileManager.default.fileExists(atPath: victim))
    try FileManager.default.removeItem(atPath: link)
    try await fixture.ferryd(["backup", place, "--blobs", blobs] + store)
    let mode = try FileManager.default.attributesOfItem(atPath: place)[.posixPermissions] as? Int
    #expect(mode == 0o700)
  }
}
