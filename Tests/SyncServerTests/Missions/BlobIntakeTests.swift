import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("The first look at files that are published", .hangLimit)
struct BlobIntakeTests {
  private static let size = Int(BlobIntake.keptBytes) + 7

  private static func intake(
    _ fixture: BlobFixture, knownSizes: Set<Int64> = []
  ) throws -> BlobIntake {
    BlobIntake(into: fixture.blobs, under: try fixture.blobs.acquire(), knownSizes: knownSizes)
  }

  @Test("a large file is kept while it is hashed, and is not collected while its source lives")
  func kept() throws {
    let fixture = try BlobFixture()
    let path = try fixture.file("a", Self.size)
    func mayCollect() throws -> Bool {
      try BlobFile(fixture.blobs.path + "/lock", O_RDWR).tryLock()
    }
    do {
      let source = try Self.intake(fixture).read(path, chunkSize: 4 << 20)
      #expect(source.digest == (try FileHasher.digest(of: path, chunkSize: 4 << 20)))
      #expect(try fixture.blobs.isIntact(source.digest.hash) == true)
      #expect(try BlobDirectory.names(in: fixture.blobs.incoming) == [])
      #expect(try !mayCollect())
      // The file changes after it was hashed. The kept content does not.
      _ = try fixture.file("a", Self.size, seed: 2)
      var copied = 0
      try fixture.blobs.store(files: [source]) { count in
        copied += count
        return true
      }
      #expect(copied == 0)
      withExtendedLifetime(source) {}
    }
    #expect(try mayCollect())
  }

  @Test("files that are small, or have a known size, are only hashed")
  func hashed() throws {
    let fixture = try BlobFixture()
    let large = try fixture.file("large", Self.size)
    let small = try fixture.file("small", Self.size - 8)
    let intake = try Self.intake(fixture, knownSizes: [Int64(Self.size)])
    let sources = try [large, small].map { try intake.read($0, chunkSize: nil) }
    let elsewhere = try BlobIntake().read(large, chunkSize: nil)
    #expect(elsewhere.digest == sources[0].digest)
    func contents() throws -> Int { try fixture.names().count { $0 != "lock" } }
    #expect(try contents() == 0)
    try fixture.blobs.store(files: sources)
    #expect(try contents() == 2)
  }

  @Test("a second copy of the same content, and one that is cancelled, leave nothing")
  func dropped() throws {
    let fixture = try BlobFixture()
    let path = try fixture.file("a", Self.size)
    let intake = try Self.intake(fixture)
    for _ in 0..<2 { _ = try intake.read(path, chunkSize: nil) }
    _ = try fixture.file("a", Self.size, seed: 2)
    #expect(throws: BlobError.cancelled) {
      _ = try intake.read(path, chunkSize: nil) { _ in false }
    }
    #expect(try fixture.names().count { $0 != "lock" } == 1)
  }

  @Test("what is no regular file is refused before anything is written")
  func notFiles() throws {
    let fixture = try BlobFixture()
    let folder = fixture.folder.url.path
    #expect(throws: BlobError.notAFile(path: folder)) {
      _ = try Self.intake(fixture).read(folder, chunkSize: nil)
    }
    #expect(try BlobDirectory.names(in: fixture.blobs.incoming) == [])
  }
}
