import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("The first look at files that are published", .hangLimit)
struct BlobIntakeTests {
  private static let size = Int(BlobIntake.copiedBytes) + 7

  @Test("a large file is copied while it is hashed, and the copy becomes the content")
  func copied() throws {
    let fixture = try BlobFixture()
    let path = try fixture.file("a", Self.size)
    let source = try BlobIntake(into: fixture.blobs).take(path, chunkSize: 4 << 20)
    #expect(source.digest == (try FileHasher.digest(of: path, chunkSize: 4 << 20)))
    #expect(try BlobDirectory.names(in: fixture.blobs.incoming).count == 1)
    #expect(try fixture.blobs.removeUnfinished(before: .max).count == 0, "it is in use")
    // The content is what was hashed, although the file is another one now.
    _ = try fixture.file("a", Self.size, seed: 2)
    var kept = 0
    try fixture.blobs.put(files: [source]) { count in
      kept += count
      return true
    }
    #expect(kept == Self.size)
    #expect(try fixture.blobs.isIntact(source.digest.hash) == true)
    #expect(try BlobDirectory.names(in: fixture.blobs.incoming) == [])
  }

  @Test("files that are small, or have a known size, are only hashed")
  func hashed() throws {
    let fixture = try BlobFixture()
    let large = try fixture.file("large", Self.size)
    let small = try fixture.file("small", Self.size - 8)
    let intake = BlobIntake(into: fixture.blobs, knownSizes: [Int64(Self.size)])
    let sources = try [large, small].map { try intake.take($0, chunkSize: nil) }
    let elsewhere = try BlobIntake().take(large, chunkSize: nil)
    #expect(elsewhere.digest == sources[0].digest)
    #expect(try BlobDirectory.names(in: fixture.blobs.incoming) == [])
    try fixture.blobs.put(files: sources)
    #expect(try fixture.names().count == 2)
  }

  @Test("a copy of content that is there, and one that nobody keeps, are removed")
  func dropped() throws {
    let fixture = try BlobFixture()
    let path = try fixture.file("a", Self.size)
    let intake = BlobIntake(into: fixture.blobs)
    do {
      let sources = try (0..<2).map { _ in try intake.take(path, chunkSize: nil) }
      try fixture.blobs.put(files: sources)
      _ = try intake.take(path, chunkSize: nil)
    }
    #expect(throws: BlobError.cancelled) {
      _ = try intake.take(path, chunkSize: nil) { _ in false }
    }
    #expect(try BlobDirectory.names(in: fixture.blobs.incoming) == [])
    #expect(try fixture.names().count == 1)
  }

  @Test("what is no regular file is refused before anything is written")
  func notFiles() throws {
    let fixture = try BlobFixture()
    let folder = fixture.folder.url.path
    #expect(throws: BlobError.notAFile(path: folder)) {
      _ = try BlobIntake(into: fixture.blobs).take(folder, chunkSize: nil)
    }
    #expect(try BlobDirectory.names(in: fixture.blobs.incoming) == [])
  }
}
