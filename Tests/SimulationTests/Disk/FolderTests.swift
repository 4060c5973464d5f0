import FerryTestSupport
import Foundation
import Testing

/// Folders of a simulated machine: POSIX's rules for names, locks and durability.
@Suite("Folders", .hangLimit)
struct FolderTests {
  private let disk: SimulatedDisk
  private let folders: SimulatedFolders
  private static let place = "/device"

  init() { (disk, folders) = Self.make(seed: 1) }

  private static func make(seed: UInt64) -> (SimulatedDisk, SimulatedFolders) {
    let disk = DiskWorld(seed: seed).disk
    return (disk, disk.folders(of: place))
  }

  private static func write(
    _ folders: SimulatedFolders, _ path: String, _ text: String, syncs: Bool = true
  ) throws {
    let file = try folders.open(path, O_RDWR | O_CREAT)
    #expect(try write(folders, file, Array(text.utf8)) == text.utf8.count)
    if syncs { try folders.sync(file) }
    folders.close(file)
  }

  private static func write(
    _ folders: SimulatedFolders, _ file: Int32, _ bytes: [UInt8]
  ) throws -> Int {
    try bytes.withUnsafeBytes { buffer in
      let start = try #require(buffer.baseAddress)
      return try folders.write(file, start, buffer.count, at: 0)
    }
  }

  private static func sync(_ folders: SimulatedFolders, _ path: String) throws {
    let folder = try folders.open(path, O_RDONLY | O_DIRECTORY)
    try folders.sync(folder)
    folders.close(folder)
  }

  private static func text(_ folders: SimulatedFolders, _ path: String) -> String? {
    folders.bytes(of: path).map { String(decoding: $0, as: UTF8.self) }
  }

  private func code(_ body: () throws -> Void) -> Int32? {
    do {
      try body()
      return nil
    } catch {
      return (error as? SimulatedFolders.Failure)?.code
    }
  }

  @Test("names are created, removed, moved and linked as in POSIX")
  func names() throws {
    try folders.makeFolder("/device/a")
    #expect(code { try folders.makeFolder("/device/a") } == EEXIST)
    try Self.write(folders, "/device/a/one", "1")
    let folder = try folders.open("/device/a", O_RDONLY | O_DIRECTORY)
    #expect(code { _ = try folders.open(in: folder, "one", O_RDONLY | O_DIRECTORY) } == ENOTDIR)
    #expect(code { _ = try folders.open(in: folder, "one", O_RDWR | O_CREAT | O_EXCL) } == EEXIST)
    #expect(code { _ = try folders.open(in: folder, "two", O_RDONLY) } == ENOENT)
    try folders.link(in: folder, "one", to: folder, "two")
    #expect(try folders.facts(in: folder, "one").number == folders.facts(in: folder, "two").number)
    try Self.write(folders, "/device/a/two", "2")
    #expect(Self.text(folders, "a/one") == "2")
    try folders.move(in: folder, "two", to: folder, "three")
    #expect(try folders.names(in: folder) == ["one", "three"])
    try folders.remove(in: folder, "one", isFolder: false)
    #expect(Self.text(folders, "a/three") == "2")
    #expect(code { try folders.remove("/device/a") } == EISDIR)
    #expect(folders.paths() == ["a/three"])
    #expect(folders.strays.isEmpty)
    #expect(code { try folders.makeFolder("/elsewhere/a") } == ENOENT)
    #expect(folders.strays == ["/elsewhere/a"])
  }

  @Test("synced changes survive a power loss, and others may be lost")
  func power() throws {
    var outcomes: Set<String> = []
    for seed in 0..<200 as Range<UInt64> {
      let (disk, folders) = Self.make(seed: seed)
      try folders.makeFolder("/device/a")
      try Self.sync(folders, "/device/a")
      try Self.write(folders, "/device/a/kept", "kept")
      try Self.sync(folders, "/device/a")
      // A folder's own name is in the folder above it, which was not synced.
      disk.losePower(under: "/device/")
      let isThere = folders.paths() == ["a/kept"]
      if isThere { #expect(Self.text(folders, "a/kept") == "kept") }
      outcomes.insert(isThere ? "kept" : "lost")
    }
    #expect(outcomes == ["kept", "lost"])
  }

  @Test("unsynced content is kept, lost or torn")
  func torn() throws {
    var outcomes: Set<Int> = []
    let text = String(repeating: "x", count: 4_096)
    for seed in 0..<200 as Range<UInt64> {
      let (disk, folders) = Self.make(seed: seed)
      try Self.write(folders, "/device/new", text, syncs: false)
      disk.losePower(under: "/device/")
      let left = folders.bytes(of: "new")
      outcomes.insert(left.map { $0.reduce(0) { $0 + ($1 == 0x78 ? 1 : 0) } } ?? -1)
    }
    #expect(outcomes.isSuperset(of: [-1, 0, 4_096]) && outcomes.count > 5)
  }

  @Test("a move to another folder may leave both names, and never none")
  func moves() throws {
    var outcomes: Set<[String]> = []
    for seed in 0..<400 as Range<UInt64> {
      let (disk, folders) = Self.make(seed: seed)
      let root = try Self.twoFolders(folders)
      try Self.write(folders, "/device/a/file", "x")
      try Self.sync(folders, "/device/a")
      try folders.move(in: root.a, "file", to: root.b, "moved")
      // Other calls change names in both folders.
      try Self.write(folders, "/device/a/other", "y")
      try Self.write(folders, "/device/b/other", "z")
      if seed % 2 == 0 { try folders.sync(root.b) }
      disk.losePower(under: "/device/")
      let left = folders.paths().filter { !$0.hasSuffix("other") }
      outcomes.insert(left)
      if seed % 2 == 0 { #expect(left.contains("b/moved")) }
    }
    #expect(outcomes == [["a/file"], ["b/moved"], ["a/file", "b/moved"]])
  }

  private static func twoFolders(_ folders: SimulatedFolders) throws -> (a: Int32, b: Int32) {
    try folders.makeFolder("/device/a")
    try folders.makeFolder("/device/b")
    folders.syncAll()
    return (
      try folders.open("/device/a", O_RDONLY | O_DIRECTORY),
      try folders.open("/device/b", O_RDONLY | O_DIRECTORY)
    )
  }

  @Test("a move is durable with the folder that it came from, too")
  func movesWithTheirSource() throws {
    for seed in 0..<60 as Range<UInt64> {
      let (disk, folders) = Self.make(seed: seed)
      let root = try Self.twoFolders(folders)
      for text in ["1", "2"] {
        try Self.write(folders, "/device/a/file", text)
        try Self.sync(folders, "/device/a")
        try folders.move(in: root.a, "file", to: root.b, "moved")
      }
      try folders.sync(root.a)
      disk.losePower(under: "/device/")
      #expect(folders.paths() == ["b/moved"])
      #expect(Self.text(folders, "b/moved") == "2")
    }
  }

  @Test("a folder that is built aside and moved into place is whole or absent")
  func building() throws {
    var outcomes: Set<[String]> = []
    for seed in 0..<200 as Range<UInt64> {
      let (disk, folders) = Self.make(seed: seed)
      try folders.makeFolder("/device/m")
      folders.syncAll()
      let folder = try folders.open("/device/m", O_RDONLY | O_DIRECTORY)
      try folders.makeFolder(in: folder, "aside")
      try Self.write(folders, "/device/m/aside/one", "1")
      try Self.write(folders, "/device/m/aside/two", "2")
      try Self.sync(folders, "/device/m/aside")
      try folders.move(in: folder, "aside", to: folder, "1")
      disk.losePower(under: "/device/")
      outcomes.insert(folders.paths())
    }
    let whole = ["m/1/one", "m/1/two"]
    #expect(outcomes == [[], ["m/aside/one", "m/aside/two"], whole])
  }

  @Test("a killed process has nothing open and holds no lock; its files stay")
  func killing() throws {
    let file = try folders.open("/device/lock", O_RDWR | O_CREAT)
    let other = try folders.open("/device/lock", O_RDWR)
    try folders.lock(file)
    try folders.lock(file, byte: 7)
    #expect(code { try folders.lock(other) } == EWOULDBLOCK)
    #expect(code { try folders.lock(other, byte: 7) } == EAGAIN)
    try folders.lock(other, byte: 8)
    disk.kill(under: "/device/")
    #expect(code { try folders.sync(file) } == EIO)
    let next = try folders.open("/device/lock", O_RDWR)
    try folders.lock(next)
    try folders.lock(next, byte: 7)
    folders.close(next)
    #expect(folders.paths() == ["lock"])
  }

  @Test("any number of handles share a lock, and one has it alone")
  func sharing() throws {
    let files = try (0..<3).map { _ in try folders.open("/device/lock", O_RDWR | O_CREAT) }
    try folders.share(files[0])
    try folders.share(files[1])
    #expect(code { try folders.lock(files[2]) } == EWOULDBLOCK)
    folders.close(files[0])
    #expect(code { try folders.lock(files[2]) } == EWOULDBLOCK)
    folders.close(files[1])
    try folders.lock(files[2])
    let next = try folders.open("/device/lock", O_RDWR)
    #expect(code { try folders.share(next) } == EWOULDBLOCK)
    disk.kill(under: "/device/")
    let last = try folders.open("/device/lock", O_RDWR)
    try folders.share(last)
  }

  @Test("a copy of a machine has the same files, and links stay links")
  func copying() throws {
    try Self.write(folders, "/device/one", "1")
    let root = try folders.open("/device/one", O_RDWR)
    folders.close(root)
    try folders.makeFolder("/device/sub")
    let sub = try folders.open("/device/sub", O_RDONLY | O_DIRECTORY)
    try Self.write(folders, "/device/sub/two", "2")
    try folders.link(in: sub, "two", to: sub, "three")
    disk.copyFiles(under: "/device/", to: "/copy/")
    let copy = disk.folders(of: "/copy")
    #expect(copy.paths() == ["one", "sub/three", "sub/two"])
    try Self.write(copy, "/copy/sub/two", "4")
    #expect(Self.text(copy, "sub/three") == "4" && Self.text(folders, "sub/two") == "2")
    disk.losePower(under: "/copy/")
    #expect(copy.paths().count == 3)
    disk.removeFiles(under: "/copy/")
    #expect(disk.existingFolders(of: "/copy") == nil)
  }

  @Test("a full disk refuses writes, and a process that dies leaves a first part of one")
  func faults() throws {
    disk.faults = { $0.operation == .write ? .diskFull : nil }
    let file = try folders.open("/device/file", O_RDWR | O_CREAT)
    #expect(code { try write(file) } == ENOSPC)
    #expect(try folders.facts(of: file).size == 0)
    disk.faults = { $0.operation == .sync ? .syncFailure : nil }
    try write(file)
    #expect(code { try folders.sync(file) } == EIO)
    var crashed = ""
    disk.onCrash = { crashed = $0 }
    disk.faults = { $0.operation == .write ? .crash : nil }
    #expect(code { try write(file) } == EIO)
    #expect(crashed == "/device/file")
    #expect(code { _ = try folders.facts(of: file) } == EIO)
  }

  private func write(_ file: Int32) throws {
    _ = try Self.write(folders, file, [UInt8](repeating: 7, count: 100))
  }
}
