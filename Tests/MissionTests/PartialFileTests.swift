import FerryCryptography
import FerryPlatform
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

  private func sealedFile(_ key: UInt8 = 1, layout: PartialLayout = Self.layout) throws
    -> PartialFile
  {
    var layout = layout
    layout.isSealed = true
    return PartialFile(
      path: directory.file("partial").path, layout: layout,
      seal: ContentSeal(key: [UInt8](repeating: key, count: 32)), executor: executor)
  }

  @Test("a partial file stores encrypted content, and reads, hashes and continues it in plain")
  func encrypted() async throws {
    let part = Int(SealedFile.partBytes)
    let bytes = DownloadFixture.bytes(3 * part, seed: 2)
    let first = try sealedFile()
    #expect(try await first.open(bootID: "one").marks == nil)
    // Pieces of any length, over the ends of parts.
    for start in stride(from: 0, to: 2 * part + 100, by: 10_007) {
      let end = min(start + 10_007, 2 * part + 100)
      try await first.write(bytes, start..<end, at: Int64(start), chunk: 0, count: Int64(end))
    }
    #expect(
      try await first.digest(of: 1..<Int64(2 * part + 100))
        == SHA256.digest(of: Array(bytes[1..<2 * part + 100])))
    #expect(
      try await first.read(Int64(2 * part)..<Int64(2 * part + 200))
        == Array(bytes[2 * part..<2 * part + 100]), "the open part is in memory")
    let raw = try Data(contentsOf: directory.file("partial"))
    for start in stride(from: 0, to: 2 * part, by: 1_009) {
      #expect(raw.firstRange(of: Data(bytes[start..<start + 32])) == nil)
    }
    // The next process has the whole parts, and continues after them.
    let next = try sealedFile()
    let remains = try await next.open(bootID: "one")
    #expect(remains.marks == [0: Int64(2 * part)])
    try await next.write(
      bytes, 2 * part..<3 * part, at: Int64(2 * part), chunk: 0, count: Int64(3 * part))
    #expect(try await next.digest(of: 0..<Int64(3 * part)) == SHA256.digest(of: bytes))
    await #expect(throws: DownloadError.self, "nothing is written behind a gap") {
      try await next.write([1], 0..<1, at: Int64(5 * part + 7), chunk: 0, count: 1)
    }
    // Neither another key nor a plain file has these parts.
    #expect(try await sealedFile(2).open(bootID: "one").marks == nil)
    #expect(try await file().open(bootID: "one").marks == nil)
  }

  @Test("parts fill in any order of chunks, and an empty or unknown size ends with a last part")
  func sealingBuffer() {
    let part = SealedFile.partBytes
    let bytes = [UInt8](repeating: 7, count: Int(part))
    var buffer = SealingBuffer()
    let size = 2 * part + 5
    #expect(buffer.add(bytes[..<5], at: 2 * part, size: size)?.map(\.number) == [2])
    #expect(buffer.add(bytes[..<9], at: part, size: size) == [])
    #expect(buffer.add(bytes[...], at: 0, size: size)?.map(\.number) == [0])
    #expect(buffer[1]?.count == 9)
    #expect(buffer.add(bytes[9...], at: part + 8, size: size) == [], "the last byte came again")
    #expect(buffer.add(bytes[..<1], at: part + 100_000, size: size) == nil)
    buffer.remove(1..<2)
    #expect(buffer[1] == nil)
    #expect(buffer.add(bytes[...], at: part, size: size)?.map(\.bytes.count) == [Int(part)])
    #expect(buffer.finish() == SealingBuffer.Part(number: 0, bytes: []))
    #expect(buffer.add(bytes[...], at: 0, size: nil) == [], "it may be the last part")
    #expect(buffer.add(bytes[..<1], at: part, size: nil)?.map(\.number) == [0])
    #expect(buffer.finish() == SealingBuffer.Part(number: 1, bytes: [7]))
  }

  @Test("the size of content follows from the size of its sealed file")
  func sealedSizes() {
    let part = SealedFile.partBytes
    for size in [0, 1, part - 1, part, part + 1, 5 * part, 5 * part + 9] {
      #expect(ContentSeal.contentBytes(inFile: ContentSeal.fileSize(size)) == size)
      #expect(ContentSeal.wholeBytes(inFile: ContentSeal.fileSize(size)) == size / part * part)
    }
    #expect(ContentSeal.contentBytes(inFile: 0) == 0)
    #expect(ContentSeal.wholeBytes(inFile: 100) == 0)
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
