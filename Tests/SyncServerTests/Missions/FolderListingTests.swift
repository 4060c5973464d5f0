import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("The files of a folder", .hangLimit)
struct FolderListingTests {
  @Test("names that begin with a dot are counted, at every depth")
  func hidden() throws {
    let fixture = try BlobFixture()
    for name in ["a", ".b", ".git/c", ".git/d", "e/.f", "e/g"] {
      _ = try fixture.file("tree/\(name)", 3)
    }
    let found = try FolderListing.contents(of: fixture.folder.file("tree").path)
    #expect(found.files == ["a", "e/g"] && found.hidden == 3)
  }

  @Test("a link that leads to the folder itself is reported as a cycle")
  func back() throws {
    let fixture = try BlobFixture()
    _ = try fixture.file("tree/a", 3)
    let tree = fixture.folder.file("tree").path
    #expect(symlink(".", tree + "/self") == 0)
    #expect {
      _ = try FolderListing.files(in: tree)
    } throws: { "\($0)".contains("self is a duplicate: a symbolic link leads back to it") }
  }

  @Test(
    "a file or a folder that becomes a link after it was listed is not read",
    arguments: [3, 9 << 20])
  func replaced(size: Int) throws {
    let fixture = try BlobFixture()
    let secret = try fixture.file("secrets/a", size)
    _ = try fixture.file("tree/b/a", size)
    let tree = fixture.folder.file("tree").path
    let intakes = [
      BlobIntake(), BlobIntake(into: fixture.blobs, under: try fixture.blobs.acquire()),
    ]
    let path = try FolderListing.file("b/a", in: tree)
    for intake in intakes { _ = try intake.read(path, chunkSize: nil) }
    try FileManager.default.removeItem(atPath: path)
    #expect(symlink(secret, path) == 0)
    for intake in intakes {
      #expect(throws: BlobError.changed(path: path)) { _ = try intake.read(path, chunkSize: nil) }
    }
    try FileManager.default.removeItem(atPath: tree + "/b")
    #expect(symlink(fixture.folder.file("secrets").path, tree + "/b") == 0)
    for intake in intakes {
      #expect(throws: BlobError.changed(path: path)) { _ = try intake.read(path, chunkSize: nil) }
    }
    // In a listing, a link within the folder counts as the target.
    _ = try fixture.file("tree/c", size)
    #expect(symlink("c", tree + "/link") == 0)
    let target = try FolderListing.file("link", in: tree)
    #expect(target == tree + "/c")
    _ = try intakes[0].read(target, chunkSize: nil)
  }
}
