import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("The limit of a file store", .hangLimit)
struct FileLimitTests {
  private let directory: TemporaryDirectory
  private let folder: String

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-files")
    folder = directory.file("store").path
  }

  @Test(
    "the room of a new file",
    arguments: [
      (10, 0, 90, .fits), (11, 0, 90, .lacking(1)), (100, 0, 0, .fits), (101, 0, 0, .tooLarge),
      (20, 10, 90, .fits), (21, 10, 90, .lacking(1)), (5, 10, 150, .fits),
      (11, 10, 150, .lacking(51)),
    ] as [(Int64, Int64, Int64, RoomPlan.Verdict)])
  func verdicts(added: Int64, replaced: Int64, used: Int64, verdict: RoomPlan.Verdict) {
    let failing = RoomPlan(options: FileStoreOptions(bytesMax: 100))
    #expect(failing.verdict(added: added, replaced: replaced, used: used) == verdict)
    let removing = RoomPlan(
      options: FileStoreOptions(bytesMax: 100, overflow: .removeLeastRecentlyUsed))
    let found = removing.verdict(added: added, replaced: replaced, used: used)
    if case .lacking(let bytes) = verdict {
      #expect(found == .removing(bytes))
    } else {
      #expect(found == verdict)
    }
    #expect(RoomPlan(options: .init()).verdict(added: .max, replaced: 0, used: .max) == .fits)
    // A draft permitted to finish fits, and the reverse.
    let mayBegin = added <= failing.bytesMax(replaced: replaced, used: used)
    #expect(mayBegin == (verdict == .fits))
  }

  @Test("a file beyond the limit is rejected, and nothing is removed")
  func rejected() async throws {
    let files = try await FileStore.open(folder, options: FileStoreOptions(bytesMax: 1_000))
    try await files.put(seededBytes(1, 600), for: "a")
    #expect(
      await failure { try await files.put(seededBytes(2, 401), for: "b") } == .limitReached)
    try await files.put(seededBytes(2, 400), for: "b")
    // A replaced file gives its room to the new version.
    try await files.put(seededBytes(3, 600), for: "a")
    #expect(
      await failure { try await files.put(seededBytes(3, 601), for: "a") } == .limitReached)
    #expect(try await files.read("a") == seededBytes(3, 600))
    #expect(files.drafts.isEmpty)
    let usage = try await files.usage()
    #expect(usage.bytesOnDisk == 1_000 && usage.bytesMax == 1_000)
  }

  @Test("an endless sequence fails at the limit")
  func endless() async throws {
    for overflow in [FileStoreOptions.Overflow.fail, .removeLeastRecentlyUsed] {
      let files = try await FileStore.open(
        folder, options: FileStoreOptions(bytesMax: 100_000, overflow: overflow))
      let endless = AsyncStream<[UInt8]> { [UInt8](repeating: 1, count: 1_000) }
      let kind = await failure { try await files.put(endless, for: "x") }
      #expect(kind == .limitReached)
      #expect(files.drafts.isEmpty)
    }
  }

  @Test("the least recently used files make room", arguments: [nil, storeKey])
  func leastRecentlyUsed(key: [UInt8]?) async throws {
    // An encrypted file of one part has 44 bytes more.
    let each = Int64(key == nil ? 100 : 144)
    let options = FileStoreOptions(bytesMax: 3 * each, overflow: .removeLeastRecentlyUsed)
    let files = try await FileStore.open(folder, key: key, options: options)
    for name in ["a", "b", "c"] { try await files.put(seededBytes(1, 100), for: name) }
    _ = try await files.read("a")
    try await files.put(seededBytes(2, 100), for: "d")
    #expect(try await keys(files) == ["a", "c", "d"])
    // The order survives an opening of the store by another process.
    _ = try await files.open("c")
    try await files.close()
    let other = try await FileStore.open(folder, key: key, options: options)
    try await other.put(seededBytes(3, 100), for: "e")
    #expect(try await keys(other) == ["c", "d", "e"])
    // A file that needs the room of several.
    try await other.put(seededBytes(4, Int(3 * each) - (key == nil ? 0 : 44)), for: "f")
    #expect(try await keys(other) == ["f"])
    #expect(other.filesOnDisk == 1)
    #expect(
      await failure { try await other.put(seededBytes(4, 500), for: "g") } == .limitReached)
    #expect(try await keys(other) == ["f"])
  }

  private func keys(_ files: FileStore) async throws -> [String] {
    try await files.list().map(\.key).sorted()
  }
}

extension AsyncStream where Element == [UInt8] {
  /// Creates an endless sequence of the same part.
  fileprivate init(_ part: @escaping @Sendable () -> [UInt8]) { self.init(unfolding: { part() }) }
}
