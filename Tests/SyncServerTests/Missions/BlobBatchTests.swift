import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

/// Many files at once.
@Suite(.hangLimit)
struct BlobBatchTests {
  private func sources(_ fixture: BlobFixture, _ sizes: [Int]) throws -> [BlobSource] {
    try sizes.enumerated().map { index, size in
      let path = try fixture.file("s\(index)", size, seed: UInt8(index % 200))
      return BlobSource(path: path, digest: try FileHasher.digest(of: path, chunkSize: nil))
    }
  }

  @Test("a batch keeps many files, small and large, the same content once, and leaves no remains")
  func many() throws {
    let fixture = try BlobFixture()
    var files = try sources(fixture, (0..<40).map { $0 * 37 } + [300 << 10])
    files.append(files[3])
    var told = 0
    let hold = try fixture.blobs.acquire()
    try fixture.blobs.store(files: files) { count in
      told += count
      return true
    }
    withExtendedLifetime(hold) {}
    for file in files { #expect(try fixture.blobs.isIntact(file.digest.hash) == true) }
    #expect(told == files.dropLast().reduce(0) { $0 + Int($1.digest.size) })
    #expect(try fixture.names().filter { $0.hasPrefix("incoming/") }.isEmpty)
  }

  @Test("a file that changed since it was hashed makes its batch keep nothing")
  func changed() throws {
    let fixture = try BlobFixture()
    let files = try sources(fixture, [100, 200, 300])
    try Data(BlobFixture.bytes(300, seed: 99)).write(to: URL(filePath: files[2].path))
    #expect(throws: BlobError.changed(path: files[2].path)) {
      try fixture.blobs.store(files: files)
    }
    for file in files { #expect(try fixture.blobs.size(of: file.digest.hash) == nil) }
    #expect(try fixture.names().filter { $0.hasPrefix("incoming/") }.isEmpty)
  }

  @Test("an interrupted batch leaves nothing behind")
  func cancelled() throws {
    let fixture = try BlobFixture()
    let files = try sources(fixture, [100, 200, 300])
    #expect(throws: BlobError.cancelled) { try fixture.blobs.store(files: files) { _ in false } }
    #expect(try fixture.names().filter { $0.hasPrefix("incoming/") }.isEmpty)
  }
}
