import FerryCryptography
import FerryExecutors
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("A partial file", .hangLimit)
struct PartialFileTests {
  private static let chunkSize: Int64 = 512 << 10
  private static let layout = PartialLayout(
    size: 3 * chunkSize - 7, chunkSize: chunkSize, chunkCount: 3)
  private let directory: TemporaryDirectory
  private let executor = ThreadExecutor(name: "partial-test")

  init() throws { directory = try TemporaryDirectory() }

  private func file(_ layout: PartialLayout = Self.layout) -> PartialFile {
    PartialFile(path: directory.file("partial").path, layout: layout, executor: executor)
  }

  @Test("a partial file records the progress of each chunk, until the system restarts")
  func marks() async throws {
    let first = file()
    #expect(try await first.open(bootID: "one").marks == nil)
    try await first.write([1, 2, 3, 4], 1..<3, at: Self.chunkSize, chunk: 1, count: 2)
    try await first.mark(2, Self.chunkSize - 7)
    let again = try await file().open(bootID: "one")
    #expect(again.marks == [1: 2, 2: Self.chunkSize - 7])
    #expect(again.contentBytes == Self.layout.size)
    #expect(try await file().open(bootID: "two").marks == nil)
    #expect(try await file().open(bootID: "two").marks == [:])
    let content = file()
    _ = try await content.open(bootID: nil)
    #expect(try await content.read(Self.chunkSize..<Self.chunkSize + 2) == [2, 3])
  }

  @Test("a partial file ignores another file's marks, and impossible ones")
  func otherMarks() async throws {
    let first = file()
    _ = try await first.open(bootID: "one")
    try await first.mark(0, Self.chunkSize + 1)
    try await first.mark(1, -1)
    #expect(try await file().open(bootID: "one").marks == [:])
    let other = PartialLayout(
      size: Self.layout.size, chunkSize: Self.chunkSize * 2, chunkCount: 2)
    #expect(try await file(other).open(bootID: "one").marks == nil)
  }

  @Test("a partial file stores encrypted content, and reads, hashes and copies it in plain")
  func encrypted() async throws {
    let cipher = try #require(
      PartialCipher(key: [UInt8](repeating: 1, count: 32), content: hash([1])))
    var layout = Self.layout
    layout.isEncrypted = true
    let first = PartialFile(
      path: directory.file("partial").path, layout: layout, cipher: cipher, executor: executor)
    #expect(try await first.open(bootID: "one").marks == nil)
    let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0) }
    try await first.write(bytes, 3..<1_000, at: 21, chunk: 0, count: 1_018)
    #expect(try await first.read(21..<1_018) == Array(bytes[3...]))
    #expect(try await first.digest(of: 22..<1_018) == SHA256.digest(of: Array(bytes[4...])))
    let raw = Array(try Data(contentsOf: directory.file("partial")))
    #expect(raw[21..<1_018] == cipher.applied(to: Array(bytes[3...]), at: 21)[...])
    #expect(Array(raw[21..<121]) != Array(bytes[3..<103]))
    // Marks of unencrypted content are of other bytes.
    let again = PartialFile(
      path: directory.file("partial").path, layout: layout, cipher: cipher, executor: executor)
    #expect(try await again.open(bootID: "one").marks == [0: 1_018])
    #expect(try await file().open(bootID: "one").marks == nil)
  }

  @Test("a finished partial file contains its content only")
  func finished() async throws {
    let first = file()
    _ = try await first.open(bootID: "one")
    try await first.write([7], 0..<1, at: Self.layout.size - 1, chunk: 2, count: 1)
    try await first.finish(isDurable: true)
    let bytes = try Data(contentsOf: directory.file("partial"))
    #expect(bytes.count == Int(Self.layout.size))
    #expect(bytes.last == 7)
  }

  @Test("a partial file copies a chunk from another file only if its hash is right")
  func copies() async throws {
    let source = directory.file("source")
    let bytes = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 / 3) }
    try Data(bytes).write(to: source)
    let part = Array(bytes[5..<5 + Int(Self.chunkSize)])
    let hash = try #require(ContentHash(SHA256.digest(of: part)))
    let local = LocalChunk(path: source.path, offset: 5, length: Int(Self.chunkSize))
    let target = file()
    _ = try await target.open(bootID: "one")
    #expect(try await target.copy(local, to: Self.chunkSize, expecting: hash))
    #expect(try await target.digest(of: Self.chunkSize..<2 * Self.chunkSize) == hash.bytes)
    var moved = local
    moved.offset = 6
    #expect(try await !target.copy(moved, to: 0, expecting: hash))
    moved.offset = 1_999_000
    #expect(try await !target.copy(moved, to: 0, expecting: hash))
    moved.path = directory.file("absent").path
    #expect(try await !target.copy(moved, to: 0, expecting: hash))
  }

  @Test("a partial file never writes through a symbolic link in its place")
  func link() async throws {
    let victim = directory.file("victim")
    try Data("precious".utf8).write(to: victim)
    let place = directory.file("partial")
    try FileManager.default.createSymbolicLink(at: place, withDestinationURL: victim)
    await #expect(throws: DownloadError.self) { _ = try await file().open(bootID: "one") }
    #expect(try Data(contentsOf: victim) == Data("precious".utf8))
  }

  @Test("a partial file reports a full disk, and names itself in other failures")
  func failures() async throws {
    let small = PartialLayout(size: 100, chunkSize: 100, chunkCount: 1)
    let full = PartialFile(path: "/dev/full", layout: small, executor: executor)
    _ = try await full.open(bootID: nil)
    await #expect {
      try await full.write([1], 0..<1, at: 0, chunk: 0, count: 1)
    } throws: {
      ($0 as? DownloadError)?.kind == .diskFull
    }
    let nowhere = PartialFile(path: "/nowhere/partial", layout: small, executor: executor)
    await #expect {
      _ = try await nowhere.open(bootID: nil)
    } throws: {
      ($0 as? DownloadError)?.kind == .file && "\($0)".contains("/nowhere/partial")
    }
  }
}
