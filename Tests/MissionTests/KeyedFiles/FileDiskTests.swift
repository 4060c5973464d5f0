import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

@Suite("A file store on a real disk", .hangLimit)
struct FileDiskTests {
  private let directory: TemporaryDirectory
  private let folder: String

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-files")
    folder = directory.file("store").path
  }

  @Test("leftovers of killed writers are removed at the next opening, and no others")
  func leftovers() async throws {
    let files = try await FileStore.open(folder)
    let (parts, feed) = AsyncStream<[UInt8]>.makeStream()
    let writing = Task { try await files.put(parts, for: "slow") }
    feed.yield([1, 2])
    try await eventually("a draft") { !files.drafts.isEmpty }
    let leftover = folder + "/new/" + String(repeating: "0", count: 32)
    try Data([1]).write(to: URL(filePath: leftover))
    let other = try await FileStore.open(folder)
    #expect(other.drafts.count == 1 && !FileManager.default.fileExists(atPath: leftover))
    feed.yield([3])
    feed.finish()
    _ = try await writing.value
    #expect(try await other.read("slow") == [1, 2, 3])
  }

  @Test("a version that was committed and not moved is read, and moved at the next opening")
  func unmoved() async throws {
    let files = try await FileStore.open(folder)
    try await files.put([1], for: "x")
    try await files.put([2, 2], for: "x")
    // The state left by a process killed between the commit and the move.
    let id = try IndexFile(folder).text("SELECT lower(hex(id)) FROM files")
    try FileManager.default.moveItem(
      atPath: files.path(for: "x"), toPath: folder + "/new/" + id)
    try Data([1]).write(to: URL(filePath: files.path(for: "x")))
    #expect(try await files.read("x") == [2, 2])
    let other = try await FileStore.open(folder)
    #expect(other.drafts.isEmpty)
    #expect(FileManager.default.contents(atPath: other.path(for: "x")) == Data([2, 2]))
    #expect(try await other.check("x") == .intact)
    #expect(try await files.check("x") == .intact)
  }

  @Test("two stores at one folder see each other's files while both write the same keys")
  func together() async throws {
    let stores = [try await FileStore.open(folder), try await FileStore.open(folder)]
    try await withThrowingTaskGroup { group in
      for (number, files) in stores.enumerated() {
        group.addTask {
          for round in 0..<60 {
            let bytes = seededBytes(UInt64(number * 1_000 + round), 1 + round * 37)
            try await files.put(bytes, for: url(round % 5))
          }
        }
        group.addTask {
          for round in 0..<200 {
            let check = try await files.check(url(round % 5))
            #expect(check == .intact || check == .missing)
          }
        }
      }
      group.addTask {
        for round in 0..<40 { try await stores[0].remove(url(round % 5)) }
      }
      try await group.waitForAll()
    }
    for number in 0..<5 {
      let first = try await stores[0].file(url(number))
      #expect(try await stores[1].file(url(number)) == first)
      let check = try await stores[1].check(url(number))
      #expect(check == (first == nil ? .missing : .intact))
    }
    #expect(stores[0].drafts.isEmpty)
    #expect(stores[0].filesOnDisk == (try await stores[0].usage().count))
  }

  // MARK: A full disk

  /// A file system of one's own needs the right to mount one.
  static let canMount = geteuid() == 0 && mountProbe()

  private static func mountProbe() -> Bool {
    guard let directory = try? TemporaryDirectory(), mounted(directory.url.path, 1 << 20) else {
      return false
    }
    umount2(directory.url.path, Int32(2))
    return true
  }

  private static func mounted(_ path: String, _ bytes: Int) -> Bool {
    mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0
  }

  @Test(
    "a full disk loses nothing, is reported as such, and removals make room again",
    .enabled(if: canMount, "only root may mount a file system"), arguments: [nil, storeKey])
  func fullDisk(key: [UInt8]?) async throws {
    let place = directory.file("disk").path
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    try #require(Self.mounted(place, 4 << 20))
    defer { umount2(place, Int32(2)) }
    let files = try await FileStore.open(place + "/store", key: key)
    var stored = 0
    var kind: FileStoreError.Kind?
    while kind == nil {
      do {
        try await files.put(seededBytes(UInt64(stored), 300_000), for: url(stored))
        stored += 1
      } catch {
        kind = error.kind
      }
    }
    #expect(kind == .diskFull && (5...13).contains(stored))
    // Not a byte is left.
    let rest = URL(filePath: place + "/rest")
    try Data().write(to: rest)
    let handle = try FileHandle(forWritingTo: rest)
    for size in [4_096, 1] {
      while (try? handle.write(contentsOf: Data(count: size))) != nil {}
    }
    #expect(
      await failure { try await files.put(seededBytes(0, 400_000), for: url(0)) } == .diskFull)
    for number in 0..<stored {
      #expect(try await files.read(url(number)) == seededBytes(UInt64(number), 300_000))
    }
    #expect(files.drafts.isEmpty)
    #expect(try await files.remove(url(1)))
    #expect(try await files.usage().count == stored - 1)
    try await files.put(seededBytes(7, 200_000), for: "new")
    #expect(try await files.check("new") == .intact)
    // A process can open the store on a full disk and remove files, too.
    while (try? handle.write(contentsOf: Data(count: 4_096))) != nil {}
    let other = try await FileStore.open(place + "/store", key: key)
    #expect(try await other.removeAll() == stored)
    try await other.put([1], for: "x")
  }
}
