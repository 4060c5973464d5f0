import FerryMissions
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@Suite("A file store", .hangLimit)
struct FileStoreTests {
  private let directory: TemporaryDirectory
  private let folder: String

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-files")
    folder = directory.file("a/store").path
  }

  /// Sizes around the limits of parts and blocks.
  private static let sizes = [
    0, 1, 1_000, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 3 << 20, (4 << 20) + 5,
  ]

  @Test("returns the stored bytes, also after it was opened again", arguments: [nil, storeKey])
  func roundTrip(key: [UInt8]?) async throws {
    let files = try await FileStore.open(folder, key: key)
    for size in Self.sizes {
      let bytes = seededBytes(UInt64(size), size)
      let stored = try await files.put(bytes, for: url(size), expecting: hash(bytes))
      #expect(stored.size == Int64(size) && stored.hash == hash(bytes))
    }
    let again = try await FileStore.open(folder, key: key)
    for size in Self.sizes {
      let bytes = seededBytes(UInt64(size), size)
      #expect(try await again.read(url(size)) == bytes)
      #expect(try await again.check(url(size), expecting: hash(bytes)) == .intact)
      #expect(try await again.file(url(size))?.size == Int64(size))
    }
    #expect(try await again.usage().count == Self.sizes.count)
    #expect(again.drafts.isEmpty)
  }

  @Test("reads any range, within and across parts", arguments: [nil, storeKey])
  func ranges(key: [UInt8]?) async throws {
    let files = try await FileStore.open(folder, key: key)
    let bytes = seededBytes(1, (1 << 20) + 77)
    try await files.put(bytes, for: "film")
    let film = try await files.open("film")
    var random = SeededGenerator(seed: 5)
    for _ in 0..<200 {
      let start = Int.random(in: 0..<bytes.count, using: &random)
      let count = Int.random(in: 1...400_000, using: &random)
      let part = try await film.read(from: Int64(start), count: count)
      #expect(part == Array(bytes[start..<min(bytes.count, start + count)]))
    }
    #expect(try await film.read(from: Int64(bytes.count), count: 5) == [])
    #expect(try await film.read(from: -1, count: 5) == [])
    #expect(try await film.read(from: 5, count: -1) == [])
    #expect(try await files.read("film", from: 10, count: 3) == Array(bytes[10..<13]))
  }

  @Test(
    "a path ends as the URL of its key does",
    arguments: [
      ("https://example.org/film.mp4?v=1.2#t", ".mp4"), ("a/b.tar.gz", ".gz"), ("x.HTML", ".HTML"),
      ("https://example.org", ""), ("https://example.org/", ""), ("https://example.org/v1.2/a", ""),
      ("https://example.org/.hidden", ""), ("https://example.org/a.", ""), ("a.jp/g", ""),
      ("a.b c", ""), ("a.mp\u{301}4", ""), ("a.0123456789abc", ""), ("a..\u{0}", ""),
    ])
  func suffixes(key: String, suffix: String) async throws {
    let files = try await FileStore.open(folder)
    let path = files.path(for: key)
    #expect(path.hasSuffix(suffix) && path.utf8.count == folder.utf8.count + 71 + suffix.utf8.count)
    try await files.put([1], for: key)
    try await files.put([1, 2], for: key)
    #expect(FileManager.default.contents(atPath: path) == Data([1, 2]))
    #expect(try await FileStore.open(folder).read(key) == [1, 2])
    #expect(try await files.remove(key))
    #expect(!FileManager.default.fileExists(atPath: path))
    // An encrypted file shows nothing of the key.
    let sealed = try await FileStore.open(folder + "-sealed", key: [UInt8](repeating: 7, count: 32))
    #expect(sealed.path(for: key).utf8.count == folder.utf8.count + "-sealed".utf8.count + 71)
  }

  @Test("a path has only the hash of the key, stays below the folder, and stays the same")
  func paths() async throws {
    let files = try await FileStore.open(folder)
    let keys = [
      "../../etc/passwd", "https://example.org/ä?q=/..//", "a\0b", "/", ".", "é", "e\u{301}",
    ]
    var paths: Set<String> = []
    for key in keys {
      let path = files.path(for: key)
      #expect(path.hasPrefix(folder + "/files/"))
      #expect(
        path.dropFirst(folder.count).wholeMatch(of: /\/files\/[0-9a-f]{64}/) != nil)
      #expect(!FileManager.default.fileExists(atPath: path))
      try await files.put(Array(key.utf8), for: key)
      #expect(FileManager.default.contents(atPath: path) == Data(key.utf8))
      #expect(try await files.read(key) == Array(key.utf8))
      paths.insert(path)
    }
    // Keys are compared by their bytes.
    #expect(paths.count == keys.count)
    #expect(try await FileStore.open(folder).path(for: "/") == files.path(for: "/"))
  }

  @Test("an empty and a huge key are rejected")
  func badKeys() async throws {
    let files = try await FileStore.open(folder)
    for key in ["", String(repeating: "k", count: 8_193)] {
      #expect(await failure { try await files.put([1], for: key) } == .badKey)
      #expect(try await !files.contains(key))
    }
    try await files.put([1], for: String(repeating: "k", count: 8_192))
  }

  @Test("a missing file is reported as such")
  func missing() async throws {
    let files = try await FileStore.open(folder)
    #expect(try await !files.contains("x"))
    #expect(try await files.file("x") == nil)
    #expect(try await files.check("x") == .missing)
    #expect(try await !files.remove("x"))
    #expect(await failure { _ = try await files.read("x") } == .notFound)
    // A file removed by another program is missing, too, and can be stored again.
    try await files.put([1], for: "x")
    try FileManager.default.removeItem(atPath: files.path(for: "x"))
    #expect(try await !files.contains("x"))
    #expect(try await files.check("x") == .missing)
    try await files.put([2], for: "x")
    #expect(try await files.read("x") == [2])
    #expect(try await files.usage().count == 1)
  }

  @Test("a new version replaces the old one at once; an open reader keeps the old one")
  func replacing() async throws {
    let files = try await FileStore.open(folder)
    try await files.put([1, 2, 3], for: "x")
    let old = try await files.open("x")
    try await files.put([4], for: "x")
    #expect(try await files.read("x") == [4])
    #expect(try await old.readAll() == [1, 2, 3])
    #expect(FileManager.default.contents(atPath: files.path(for: "x")) == Data([4]))
    let usage = try await files.usage()
    #expect(usage.count == 1 && usage.bytes == 1 && usage.bytesOnDisk == 1)
    try await files.remove("x")
    #expect(try await old.isIntact())
  }

  @Test("files and sequences are copied part by part")
  func sources() async throws {
    let files = try await FileStore.open(folder)
    let bytes = seededBytes(9, (9 << 20) + 3)
    let source = directory.file("source")
    try Data(bytes).write(to: source)
    let stored = try await files.put(contentsOf: source.path, for: "file")
    #expect(stored.hash == hash(bytes))
    let (parts, feed) = AsyncStream<[UInt8]>.makeStream()
    for part in stride(from: 0, to: bytes.count, by: 700_001) {
      feed.yield(Array(bytes[part..<min(bytes.count, part + 700_001)]))
    }
    feed.yield([])
    feed.finish()
    #expect(try await files.put(parts, for: "stream").hash == hash(bytes))
    #expect(await failure { try await files.put(contentsOf: folder, for: "x") } == .files)
    let absent = directory.file("absent").path
    #expect(await failure { try await files.put(contentsOf: absent, for: "x") } == .files)
    #expect(try await !files.contains("x"))
    #expect(files.drafts.isEmpty)
  }

  private struct Broken: Error, Equatable {}

  @Test("a failed sequence, a wrong hash and a cancelled task change nothing")
  func failures() async throws {
    let files = try await FileStore.open(folder)
    try await files.put([1], for: "x")
    let broken = AsyncThrowingStream<[UInt8], any Error> { feed in
      feed.yield([2, 2])
      feed.finish(throwing: Broken())
    }
    await #expect(throws: Broken()) { try await files.put(broken, for: "x") }
    #expect(
      await failure { try await files.put([3], for: "x", expecting: hash([4])) } == .damaged)
    let (parts, feed) = AsyncStream<[UInt8]>.makeStream()
    feed.yield([5])
    let task = Task { try await files.put(parts, for: "x") }
    task.cancel()
    #expect(await failure { _ = try await task.value } == .cancelled)
    #expect(try await files.read("x") == [1])
    #expect(files.drafts.isEmpty && files.filesOnDisk == 1)
  }

  @Test("a check finds a changed byte and another known hash", arguments: [nil, storeKey])
  func checks(key: [UInt8]?) async throws {
    let files = try await FileStore.open(folder, key: key)
    try await files.put(seededBytes(1, 600_000), for: "x")
    #expect(try await files.check("x") == .intact)
    guard case .damaged = try await files.check("x", expecting: hash([1])) else {
      Issue.record("another hash was accepted")
      return
    }
    try change(files.path(for: "x")) { $0[400_000] ^= 1 }
    guard case .damaged = try await files.check("x") else {
      Issue.record("the changed byte was not found")
      return
    }
    try change(files.path(for: "x")) { $0.removeLast() }
    guard case .damaged = try await files.check("x") else {
      Issue.record("the missing byte was not found")
      return
    }
    #expect(await failure { _ = try await files.open("x") } == .damaged)
    #expect(try await !files.contains("x"))
  }

  @Test("lists all files page by page, and those of a prefix", arguments: [nil, storeKey])
  func listing(key: [UInt8]?) async throws {
    let files = try await FileStore.open(folder, key: key)
    for number in 0..<25 {
      try await files.put([UInt8](repeating: 1, count: number), for: url(number))
    }
    try await files.put([1], for: "http://other.org/")
    var (pages, last): ([[StoredFile]], String?) = ([], nil)
    repeat {
      let page = try await files.list(after: last, limit: 10)
      pages.append(page)
      last = page.last?.key
    } while last != nil
    #expect(pages.map(\.count) == [10, 10, 6, 0])
    let keys = pages.flatMap { $0 }.map(\.key)
    #expect(keys.sorted() == ((0..<25).map(url) + ["http://other.org/"]).sorted())
    let some = try await files.list(prefix: "https://example.org/files/1", limit: 100)
    #expect(some.map(\.key).sorted() == ([1] + (10..<20)).map(url).sorted())
    #expect(try await files.list(prefix: "https://example.org/", limit: 3).count == 3)
    let usage = try await files.usage()
    #expect(usage.count == 26 && usage.bytes == 301 && usage.bytesFree > 0)
    #expect(usage.bytesOnDisk == (key == nil ? 301 : 301 + 26 * 44))
  }

  @Test("removes one file, the old ones, and all")
  func removing() async throws {
    let files = try await FileStore.open(folder)
    for number in 0..<600 { try await files.put([1], for: url(number)) }
    #expect(try await files.remove(url(3)))
    #expect(try await !files.contains(url(3)))
    #expect(!FileManager.default.fileExists(atPath: files.path(for: url(3))))
    #expect(try await files.removeAll(olderThan: .seconds(3_600)) == 0)
    #expect(try await files.removeAll(olderThan: .seconds(Int64.max)) == 0)
    #expect(try await files.removeAll(olderThan: .seconds(-3_600)) == 599)
    #expect(try await files.usage().count == 0)
    for number in 0..<600 { try await files.put([1], for: url(number)) }
    #expect(try await files.removeAll() == 600)
    #expect(files.filesOnDisk == 0)
    #expect(try await files.usage().bytesOnDisk == 0)
  }

  @Test("an absent store is created only on request")
  func creating() async throws {
    #expect(
      await failure { _ = try await FileStore.open(folder, creating: false) } == .notFound)
    #expect(!FileManager.default.fileExists(atPath: folder))
    _ = try await FileStore.open(folder)
    _ = try await FileStore.open(folder, creating: false)
    // A file in the place of the folder.
    let file = directory.file("file").path
    try Data([1]).write(to: URL(filePath: file))
    #expect(await failure { _ = try await FileStore.open(file) } == .files)
  }
}
