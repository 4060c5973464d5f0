import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("The directory for content", .hangLimit)
struct BlobDirectoryTests {
  @Test("content is stored under its hash, and once")
  func put() throws {
    let fixture = try BlobFixture()
    let source = try fixture.file("a.bin", 3 << 20)
    let digest = try FileHasher.digest(of: source, chunkSize: nil)
    #expect(try fixture.blobs.size(of: digest.hash) == nil)
    try fixture.blobs.store(file: source, digest)
    let name = digest.hash.description
    let place = "\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name)"
    #expect(try fixture.names() == [place])
    #expect(fixture.blobs.file(of: digest.hash) == fixture.blobs.path + "/" + place)
    #expect(try fixture.blobs.size(of: digest.hash) == 3 << 20)
    var copied = 0
    try fixture.blobs.store(file: source, digest) { count in
      copied += count
      return true
    }
    #expect(copied == 0)
    let bytes = BlobFixture.bytes(3 << 20)
    #expect(try fixture.blobs.store(bytes) == digest.hash)
    #expect(try fixture.names() == [place])
    #expect(try fixture.blobs.content(of: digest.hash, limit: 3 << 20) == bytes)
    #expect(throws: BlobError.self) {
      _ = try fixture.blobs.content(of: digest.hash, limit: 100)
    }
    #expect(try fixture.blobs.store([]) == ContentHash(of: []))
    #expect(try fixture.blobs.size(of: ContentHash(of: [])) == 0)
  }

  @Test("a changed file and a cancelled one leave nothing")
  func changed() throws {
    let fixture = try BlobFixture()
    let source = try fixture.file("a.bin", 1_000)
    let digest = try FileHasher.digest(of: source, chunkSize: nil)
    _ = try fixture.file("a.bin", 1_000, seed: 2)
    #expect(throws: BlobError.changed(path: source)) {
      try fixture.blobs.store(file: source, digest)
    }
    let other = try FileHasher.digest(of: source, chunkSize: nil)
    #expect(throws: BlobError.cancelled) {
      try fixture.blobs.store(file: source, other) { _ in false }
    }
    #expect(try fixture.names() == [])
  }

  @Test("a file that a failed disk truncated is replaced, and damage is found")
  func damage() throws {
    let fixture = try BlobFixture()
    let hash = try fixture.blobs.store(BlobFixture.bytes(1_000))
    #expect(try fixture.blobs.isIntact(hash) == true)
    let path = fixture.blobs.file(of: hash)
    try Data(BlobFixture.bytes(1_000, seed: 9)).write(to: URL(filePath: path))
    #expect(try fixture.blobs.isIntact(hash) == false)
    #expect(truncate(path, 10) == 0)
    try fixture.blobs.store(BlobFixture.bytes(1_000))
    #expect(try fixture.blobs.isIntact(hash) == true)
    #expect(try fixture.blobs.isIntact(ContentHash(of: [1])) == nil)
  }

  @Test("concurrent writers of the same content all succeed, and it is stored once")
  func together() async throws {
    let fixture = try BlobFixture()
    let source = try fixture.file("a.bin", 1 << 20)
    let digest = try FileHasher.digest(of: source, chunkSize: nil)
    let threads = BlobThreads(fixture.blobs, threads: 8)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<32 {
        group.addTask {
          try await threads.run { (directory, _) throws(BlobError) in
            try directory.store(file: source, digest)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try fixture.names().count == 1)
    #expect(try fixture.blobs.isIntact(digest.hash) == true)
  }

  @Test("a full disk is reported as such, and leaves nothing")
  func diskFull() throws {
    let fixture = try BlobFixture()
    let source = try fixture.file("a.bin", 3 << 20)
    let digest = try FileHasher.digest(of: source, chunkSize: nil)
    // This process's limit on the size of a file simulates a full disk.
    #expect(BlobError("x", code: ENOSPC) == .diskFull(path: "x"))
    #expect(BlobError("x", code: EDQUOT) == .diskFull(path: "x"))
    // Linux's own device for full disks.
    let full = try BlobFile("/dev/full", O_WRONLY)
    #expect(throws: BlobError.diskFull(path: "/dev/full")) { try full.write([1], at: 0) }
    // A draft is removed after a failed write.
    let incoming = fixture.blobs.incoming
    #expect(chmod(incoming, 0o500) == 0)
    defer { chmod(incoming, 0o700) }
    if getuid() != 0 {
      #expect(throws: BlobError.self) { try fixture.blobs.store(file: source, digest) }
    }
    #expect(try fixture.names() == [])
  }

  @Test("a path that is a file, or cannot be written, is refused as a directory")
  func badPaths() throws {
    let fixture = try BlobFixture()
    let file = try fixture.file("plain", 1)
    #expect(throws: BlobError.system(path: file, code: ENOTDIR)) { _ = try BlobDirectory(file) }
    let deep = fixture.folder.file("a/b/c/").path
    #expect(try BlobDirectory(deep + "/").path == deep)
  }
}
