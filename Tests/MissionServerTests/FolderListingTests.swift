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
}
