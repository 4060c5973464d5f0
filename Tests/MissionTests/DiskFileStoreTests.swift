import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("The file store", .hangLimit)
struct DiskFileStoreTests {
  private let folder: TemporaryFolder
  private let files: DiskFileStore
  static let key = [UInt8](repeating: 3, count: 32)

  init() throws {
    folder = try TemporaryFolder()
    files = try DiskFileStore(root: folder.path + "/store")
  }

  private func put(_ bytes: [UInt8], in files: DiskFileStore) async throws -> StoredContent {
    let stored = StoredContent(hash: hash(bytes), size: Int64(bytes.count))
    let job = DownloadJob(
      source: .blob(stored.hash), size: stored.size, hash: stored.hash,
      partialPath: files.partialPath(of: stored.hash), seal: files.seal)
    try job.write(bytes, at: 0)
    try await files.adopt(stored)
    return stored
  }

  private func plan(_ paths: [(String, StoredContent)], version: Int64 = 1) -> BundlePlan {
    BundlePlan(
      mission: mission("m"), version: version,
      files: paths.map { BundlePlan.File(path: $0.0, content: $0.1) })
  }

  @Test("complete content is stored under its hash")
  func objects() async throws {
    let stored = try await put(content(1, 1_000), in: files)
    #expect(try await files.has(stored))
    #expect(try await files.isIntact(stored))
    #expect(try await !files.has(StoredContent(hash: stored.hash, size: 999)))
    let path = try #require(files.plainPath(of: stored.hash))
    #expect(FileManager.default.contents(atPath: path) == Data(content(1, 1_000)))
    #expect(!FileManager.default.fileExists(atPath: files.partialPath(of: stored.hash)))
    try await files.sync([stored.hash])
    try await files.removeObject(stored.hash)
    try await files.removeObject(stored.hash)
    #expect(try await !files.has(stored))
  }

  @Test("the store finds one changed byte")
  func damaged() async throws {
    let stored = try await put(content(1, 100_000), in: files)
    let path = try #require(files.plainPath(of: stored.hash))
    damage(path, at: 70_000)
    #expect(try await files.has(stored))
    #expect(try await !files.isIntact(stored))
    let part = hash(Array(content(1, 100_000)[..<65_536]))
    let rest = hash(Array(content(1, 100_000)[65_536...]))
    let opened = try await files.open(stored, partSize: 65_536, parts: [part, rest])
    #expect(try await opened.read(from: 10, count: 20) == Array(content(1, 100_000)[10..<30]))
    await #expect(throws: MissionError.self) { try await opened.read(from: 65_530, count: 20) }
    let whole = try await files.open(stored, partSize: 0, parts: [])
    await #expect(throws: MissionError.self) { try await whole.read(from: 0, count: 1) }
  }

  private func damage(_ path: String, at offset: UInt64) {
    chmod(path, 0o600)
    let file = FileHandle(forUpdatingAtPath: path)
    file?.seek(toFileOffset: offset)
    let byte = file?.readData(ofLength: 1).first ?? 0
    file?.seek(toFileOffset: offset)
    file?.write(Data([byte ^ 1]))
    try? file?.close()
  }

  @Test("content of a wrong size is refused")
  func shortPartial() async throws {
    let stored = StoredContent(hash: hash([1]), size: 5)
    try Data([1]).write(to: URL(fileURLWithPath: files.partialPath(of: stored.hash)))
    await #expect(throws: MissionError.self) { try await files.adopt(stored) }
    #expect(try await !files.has(stored))
  }

  // MARK: Folders of versions

  @Test("a version's folder has all items under their names, linked to content stored once")
  func bundle() async throws {
    let (a, b) = (try await put([1, 2], in: files), try await put(content(2, 50), in: files))
    let plan = plan([("index.html", a), ("img/deep/x.png", b), ("img/copy.png", b)])
    try await files.build(plan)
    let root = files.bundlePath(of: mission("m"), version: 1)
    #expect(FileManager.default.contents(atPath: root + "/index.html") == Data([1, 2]))
    let inodes = try ["/img/deep/x.png", "/img/copy.png"].map {
      try FileManager.default.attributesOfItem(atPath: root + $0)[.systemFileNumber] as? Int
    }
    #expect(inodes[0] == inodes[1] && inodes[0] != nil)
    #expect(try await files.fault(in: plan) == nil)
    // Again, as after a process that ended before it could report success.
    try await files.build(plan)
    try await files.removeBundle(of: mission("m"), version: 1)
    #expect(!FileManager.default.fileExists(atPath: root))
    #expect(try await files.has(b))
  }

  @Test(
    "no path leaves the folder",
    arguments: ["../x", "/etc/x", "a/../../x", "a//x", ".", "a\0b", ""])
  func traversal(path: String) async throws {
    let stored = try await put([1], in: files)
    let error = await #expect(throws: MissionError.self) {
      try await files.build(plan([("ok", stored), (path, stored)]))
    }
    #expect(error?.kind == .badManifest)
    let left = try FileManager.default.subpathsOfDirectory(atPath: files.root + "/bundles")
    #expect(left == ["m"])
  }

  @Test("symbolic links in the store's folders are not followed")
  func links() async throws {
    let outside = folder.path + "/outside"
    try FileManager.default.createDirectory(
      atPath: outside, withIntermediateDirectories: false)
    let stored = try await put([1], in: files)
    try FileManager.default.createSymbolicLink(
      atPath: files.root + "/bundles/m", withDestinationPath: outside)
    await #expect(throws: MissionError.self) {
      try await files.build(plan([("x", stored)]))
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside).isEmpty)
    // Nor does an object replaced by a link pass for content.
    let path = try #require(files.plainPath(of: stored.hash))
    try Data([1]).write(to: URL(fileURLWithPath: outside + "/same"))
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(
      atPath: path, withDestinationPath: outside + "/same")
    #expect(try await !files.has(stored))
  }

  @Test("missing content leaves no partial folder")
  func incomplete() async throws {
    let stored = try await put([1], in: files)
    let missing = StoredContent(hash: hash([9]), size: 1)
    await #expect(throws: MissionError.self) {
      try await files.build(plan([("a/x", stored), ("a/y", missing)]))
    }
    #expect(try FileManager.default.subpathsOfDirectory(atPath: files.root + "/bundles") == ["m"])
  }

  @Test("a changed folder is found, and repaired file by file")
  func repair() async throws {
    let (a, b) = (try await put([1, 2], in: files), try await put([3], in: files))
    let plan = plan([("a", a), ("d/b", b)])
    try await files.build(plan)
    let root = files.bundlePath(of: mission("m"), version: 1)
    try FileManager.default.removeItem(atPath: root + "/d")
    try Data([7]).write(to: URL(fileURLWithPath: root + "/d"))
    try Data().write(to: URL(fileURLWithPath: root + "/stray"))
    #expect(try await files.fault(in: plan)?.kind == .damaged)
    try await files.repair(plan)
    #expect(try await files.fault(in: plan) == nil)
    #expect(FileManager.default.contents(atPath: root + "/d/b") == Data([3]))
    try FileManager.default.removeItem(atPath: root)
    #expect(try await files.fault(in: plan) != nil)
    try await files.repair(plan)
    #expect(try await files.fault(in: plan) == nil)
    let left = try FileManager.default.contentsOfDirectory(atPath: files.root + "/bundles/m")
    #expect(left == ["1"])
  }

  // MARK: Sealed

  @Test(
    "encrypted content is read at any place, and none of it is on the disk in plain",
    arguments: [0, 1, 65_535, 65_536, 65_537, 131_072, 700_000])
  func sealed(size: Int) async throws {
    let sealed = try DiskFileStore(root: folder.path + "/sealed", key: Self.key)
    let bytes = content(5, size)
    let stored = try await put(bytes, in: sealed)
    #expect(try await sealed.isIntact(stored))
    #expect(sealed.plainPath(of: stored.hash) == nil)
    let opened = try await sealed.open(stored, partSize: 0, parts: [])
    #expect(try await opened.readAll() == bytes)
    for start in stride(from: 0, to: size, by: max(1, size / 5)) {
      let end = min(size, start + 1_000)
      #expect(
        try await opened.read(from: Int64(start), count: 1_000) == Array(bytes[start..<end]))
    }
    #expect(try await opened.read(from: Int64(size), count: 1).isEmpty)
    let raw = object(stored, in: sealed)
    if size > 100 {
      let found = try #require(FileManager.default.contents(atPath: raw))
      #expect(found.range(of: Data(bytes[..<64])) == nil)
    }
  }

  private func object(_ stored: StoredContent, in files: DiskFileStore) -> String {
    "\(files.root)/objects/\(stored.hash.description.prefix(2))/\(stored.hash)"
  }

  @Test("encrypted content that was changed, cut, swapped or has another key is refused")
  func sealedDamage() async throws {
    let sealed = try DiskFileStore(root: folder.path + "/sealed", key: Self.key)
    let stored = try await put(content(5, 600_000), in: sealed)
    let path = object(stored, in: sealed)
    let whole = try #require(FileManager.default.contents(atPath: path))
    let (head, part) = (128, 65_536 + 28)
    var exchanged = Data(whole[..<head])
    exchanged += whole[(head + part)..<(head + 2 * part)]
    exchanged += whole[head..<(head + part)]
    exchanged += whole[(head + 2 * part)...]
    var (altered, label) = (whole, whole)
    altered[300_000] ^= 1
    label[40] ^= 1
    let (shorter, longer) = (Data(whole.dropLast()), whole + Data([0]))
    // Another content of the same size, and a part of it in the right place.
    let second = try await put(content(6, 600_000), in: sealed)
    let other = try #require(FileManager.default.contents(atPath: object(second, in: sealed)))
    let mixed =
      whole[..<(head + part)] + other[(head + part)..<(head + 2 * part)]
      + whole[(head + 2 * part)...]
    for bytes in [exchanged, altered, label, shorter, longer, other, mixed] {
      chmod(path, 0o600)
      try bytes.write(to: URL(fileURLWithPath: path))
      #expect(try await !sealed.isIntact(stored))
    }
    try whole.write(to: URL(fileURLWithPath: path))
    #expect(try await sealed.isIntact(stored))
    let stranger = try DiskFileStore(
      root: folder.path + "/sealed", key: [UInt8](repeating: 4, count: 32))
    #expect(try await !stranger.isIntact(stored))
    #expect(sealed.accepts(sealProof: sealed.sealProof()))
    #expect(!stranger.accepts(sealProof: sealed.sealProof()))
    #expect(!files.accepts(sealProof: sealed.sealProof()))
    #expect(!sealed.accepts(sealProof: files.sealProof()))
    #expect(throws: MissionError.self) { try DiskFileStore(root: folder.path, key: [1]) }
  }

  @Test("a part of complete content is copied if its bytes are right, encrypted or not")
  func copying() async throws {
    let sealed = try DiskFileStore(root: folder.path + "/sealed", key: Self.key)
    let bytes = content(5, 600_000)
    for files in [files, sealed] {
      let stored = try await put(bytes, in: files)
      let cut = Array(bytes[200_000..<331_072])
      var part = StoredPart(
        content: stored, offset: 200_000, length: cut.count, hash: hash(cut))
      let start = [UInt8](repeating: 9, count: 65_536)
      let target = StoredContent(hash: hash(start + cut), size: Int64(start.count + cut.count))
      #expect(try await files.copy(part, to: target, at: Int64(start.count)))
      let path = files.partialPath(of: target.hash)
      let partial = try #require(FileManager.default.contents(atPath: path))
      #expect((partial.firstRange(of: Data(cut[..<64])) == nil) == files.isSealed)
      let job = DownloadJob(
        source: .blob(target.hash), size: target.size, hash: target.hash, partialPath: path,
        seal: files.seal)
      try job.write(start, at: 0)
      try await files.adopt(target)
      #expect(try await files.isIntact(target))
      part.hash = hash([2])
      #expect(try await !files.copy(part, to: target, at: 0))
    }
  }

  // MARK: Locks and garbage

  @Test("a lock is exclusive until it is released, and leaves no file behind")
  func locks() throws {
    let lock = try #require(try files.lock(.mission(mission("m"))))
    #expect(try files.lock(.mission(mission("m"))) == nil)
    let part = try #require(try files.lock(.content(hash([1]))))
    #expect(try files.lock(.content(hash([1]))) == nil)
    #expect(try files.lock(.content(hash([2]))) != nil)
    part.release()
    #expect(try files.lock(.content(hash([1]))) != nil)
    lock.release()
    #expect(try files.lock(.mission(mission("m"))) != nil)
    let left = try FileManager.default.contentsOfDirectory(atPath: files.root + "/locks")
    #expect(left == ["content"])
  }

  @Test("content and folders without a row are collected, except for those in use")
  func collecting() async throws {
    let (a, b) = (try await put([1], in: files), try await put([2], in: files))
    try await files.build(plan([("a", a)], version: 1))
    try await files.build(plan([("a", a)], version: 2))
    for name in ["bundles/m/.building-7", "bundles/n"] {
      try FileManager.default.createDirectory(
        atPath: files.root + "/" + name, withIntermediateDirectories: true)
    }
    try FileManager.default.createDirectory(
      atPath: files.root + "/bundles/n/.building-1", withIntermediateDirectories: true)
    try Data([1]).write(to: URL(fileURLWithPath: files.partialPath(of: hash([3]))))
    let busy = try files.lock(.mission(mission("n")))
    var needed = NeededFiles()
    needed.objects = [a.hash]
    needed.bundles = [MissionVersion(mission("m"), 2)]
    let kept = needed
    let count = try await files.collect { () throws(MissionError) in kept }
    #expect(count == 5)
    #expect(try await files.has(a))
    #expect(try await !files.has(b))
    let found = FileManager.default
    #expect(found.fileExists(atPath: files.bundlePath(of: mission("m"), version: 2)))
    #expect(!found.fileExists(atPath: files.bundlePath(of: mission("m"), version: 1)))
    #expect(!found.fileExists(atPath: files.partialPath(of: hash([3]))))
    #expect(!found.fileExists(atPath: files.root + "/bundles/m/.building-7"))
    #expect(found.fileExists(atPath: files.root + "/bundles/n/.building-1"))
    busy?.release()
  }

  // MARK: A full disk

  /// A file system of one's own needs the right to mount one.
  static let canMount = geteuid() == 0 && mountProbe()

  private static func mountProbe() -> Bool {
    guard let folder = try? TemporaryFolder(), mount(folder.path, bytes: 1 << 20) else {
      return false
    }
    unmount(folder.path)
    return true
  }

  @Test("a full disk is reported as such", .enabled(if: canMount))
  func fullDisk() async throws {
    try #require(mount(folder.path, bytes: 1 << 20))
    defer { unmount(folder.path) }
    let files = try DiskFileStore(root: folder.path + "/small", key: Self.key)
    #expect(try await files.freeBytes() <= 1 << 20)
    // Content is encrypted where it is: there is no room for another copy.
    let stored = try await put(content(1, 700_000), in: files)
    #expect(try await files.isIntact(stored))
    let copied = StoredPart(
      content: stored, offset: 0, length: 700_000, hash: stored.hash)
    let target = StoredContent(hash: hash([1]), size: 700_000)
    let error = await #expect(throws: MissionError.self) {
      try await files.copy(copied, to: target, at: 0)
    }
    #expect(error?.kind == .diskFull)
  }
}

/// Mounts a file system in memory.
func mount(_ path: String, bytes: Int) -> Bool {
  Glibc.mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0
}

func unmount(_ path: String) { umount2(path, Int32(2)) }
