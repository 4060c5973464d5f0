import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("Hashing files", .hangLimit)
struct FileHasherTests {
  @Test(
    "the whole and each chunk have the hashes of their bytes",
    arguments: [0, 1, 65_535, 65_536, 65_537, 131_072, 1 << 20, (1 << 20) + 7, 9 << 20])
  func hashes(count: Int) throws {
    let fixture = try BlobFixture()
    let bytes = BlobFixture.bytes(count)
    let digest = try FileHasher.digest(of: fixture.file("a", count), chunkSize: 65_536)
    #expect(digest.size == Int64(count))
    #expect(digest.hash == ContentHash(of: bytes))
    let chunks = stride(from: 0, to: count, by: 65_536).map {
      ContentHash(of: Array(bytes[$0..<min(count, $0 + 65_536)]))
    }
    #expect(digest.chunks == (chunks.count > 1 ? chunks : []))
  }

  @Test("chunks larger than the read buffer are hashed whole")
  func largeChunks() throws {
    let fixture = try BlobFixture()
    let bytes = BlobFixture.bytes((5 << 20) + 3)
    let digest = try FileHasher.digest(of: fixture.file("a", bytes.count), chunkSize: 4 << 20)
    #expect(
      digest.chunks == [
        ContentHash(of: Array(bytes[..<(4 << 20)])), ContentHash(of: Array(bytes[(4 << 20)...])),
      ])
  }

  @Test("progress reports add up, and can stop the hashing")
  func progress() throws {
    let fixture = try BlobFixture()
    let path = try fixture.file("a", 5 << 20)
    var told = 0
    _ = try FileHasher.digest(of: path, chunkSize: nil) { count in
      told += count
      return true
    }
    #expect(told == 5 << 20)
    var calls = 0
    #expect(throws: BlobError.cancelled) {
      _ = try FileHasher.digest(of: path, chunkSize: nil) { _ in
        calls += 1
        return calls < 2
      }
    }
    #expect(calls == 2)
  }

  @Test("a folder, a pipe and a missing file are refused")
  func notFiles() throws {
    let fixture = try BlobFixture()
    let pipe = fixture.folder.file("pipe").path
    #expect(mkfifo(pipe, 0o600) == 0)
    for path in [fixture.folder.url.path, pipe] {
      #expect(throws: BlobError.notAFile(path: path)) {
        _ = try FileHasher.digest(of: path, chunkSize: nil)
      }
    }
    let none = fixture.folder.file("none").path
    #expect(throws: BlobError.system(path: none, code: ENOENT)) {
      _ = try FileHasher.digest(of: none, chunkSize: nil)
    }
  }
}
