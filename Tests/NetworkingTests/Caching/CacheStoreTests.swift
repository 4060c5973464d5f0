import FerryNetworking
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerryCaching

@Suite("The cache's storage", .hangLimit)
struct CacheStoreTests {
  private let folder = Folder()

  private func store(_ limits: CacheLimits = CacheLimits()) -> CacheStore {
    CacheStore(folder: folder.path, limits: limits)
  }

  private func large(_ fill: UInt8, _ count: Int = 20_000) -> [UInt8] {
    [UInt8](repeating: fill, count: count)
  }

  @Test("small bodies are kept in the index and large ones in files, over a restart")
  func restart() async {
    let bodies: [[UInt8]] = [[], [1, 0, 2], large(3)]
    for (index, body) in bodies.enumerated() {
      let head = CachedHead(["ETag": "\"\(index)\"", "X": "a: b\u{E9}", "X": ""], status: 201)
      await store().store(body, as: head, under: CacheKey("\(index)"), now: arrival)
    }
    #expect(folder.bodies.count == 1)
    let reopened = store()
    for (index, body) in bodies.enumerated() {
      let found = await reopened.body(of: "\(index)")
      #expect(found?.body == body && found?.head.status == 201)
      #expect(found?.head.headers == ["ETag": "\"\(index)\"", "X": "a: b\u{E9}", "X": ""])
      #expect(found?.head.received == arrival)
    }
    #expect(await reopened.body(of: "3") == nil)
  }

  @Test("without a folder, or if it cannot be created, everything is kept in memory")
  func inMemory() async {
    for folder in [nil, "/proc/nowhere/cache"] as [String?] {
      let store = CacheStore(folder: folder, limits: CacheLimits(memoryBytes: 100_000))
      for index in 0..<8 { await store.keep(large(1), under: "\(index)") }
      #expect(await store.body(of: "7")?.body == large(1))
      #expect(await store.body(of: "0") == nil)
    }
  }

  @Test("the store keeps its limit of bytes, and drops the least recently used, files included")
  func leastRecentlyUsed() async {
    // Nothing in memory: dropped entries must not come from there.
    let store = store(CacheLimits(memoryBytes: 0, diskBytes: 210_000))
    for index in 0..<10 { await store.keep(large(UInt8(index)), under: "\(index)") }
    #expect(await store.bytes(now: arrival) <= 210_000)
    #expect(folder.bodies.count == 10)
    #expect(await store.body(of: "0")?.body == large(0))
    await store.keep(large(10), under: "10")
    #expect(await store.bytes(now: arrival) <= 189_000)
    #expect(await store.body(of: "0")?.body == large(0))
    for dropped in ["1", "2"] { #expect(await store.body(of: dropped) == nil) }
    #expect(await store.body(of: "10")?.body == large(10))
    #expect(folder.bodies.count == 9)
  }

  @Test("the store drops many entries in slices until the limit holds")
  func slices() async throws {
    let first = store()
    for index in 0..<300 { await first.keep([1], under: "\(index)") }
    let second = store(CacheLimits(memoryBytes: 0, diskBytes: 10_000))
    await second.trim(now: arrival)
    #expect(await second.bytes(now: arrival) <= 9000)
    #expect(await second.body(of: "299") != nil)
    #expect(await second.body(of: "200") == nil)
    // The stored sum is the sum of the present entries.
    let index = try SQLiteConnection(path: folder.path + "/index.db")
    #expect(
      try index.integer("SELECT sum(size) FROM entries")
        == index.integer("SELECT bytes FROM state"))
  }

  @Test("the store drops entries that are too old, and those that a wrong clock dated later")
  func ages() async {
    let patient = store()
    await patient.keep([1], under: "a")
    await patient.keep([1], under: "b", now: arrival + 50_000)
    await patient.keep([1], under: "c", now: arrival + 999_000)
    let store = store(CacheLimits(age: .seconds(100)))
    #expect(await store.body(of: "a", now: arrival + 100_000) != nil)
    #expect(await store.body(of: "a", now: arrival + 100_001) == nil)
    await store.trim(now: arrival + 120_000)
    #expect(await store.body(of: "a") == nil)
    #expect(await store.body(of: "b") != nil)
    #expect(await store.body(of: "c", now: arrival + 999_000) == nil)
  }

  @Test("the store keeps one answer for each variant, and a bounded number for one key")
  func variants() async {
    let store = store()
    for index in 0..<12 {
      let head = CachedHead(["Vary": "A"], for: ["A": "\(index)"])
      await store.store([UInt8(index)], as: head, under: CacheKey("a"), now: arrival)
      await store.store([UInt8(index)], as: head, under: CacheKey("a"), now: arrival)
    }
    let heads = await store.heads(of: "a")
    #expect(heads.count == DiskLevel.variantsMax)
    #expect(heads.last?.variant.matches(["A": "11"]) == true)
  }

  @Test("answers with one body share its file until the last answer is removed")
  func sharedBodies() async {
    let store = store(CacheLimits(memoryBytes: 0))
    await store.keep(large(1), under: "a")
    await store.keep(large(1), under: "b")
    #expect(folder.bodies.count == 1)
    await store.remove(endpoints: ["http://host/a"], now: arrival)
    #expect(await store.body(of: "b")?.body == large(1))
    await store.keep(large(2), under: "b")
    #expect(folder.bodies.count == 1)
    await store.removeAll(now: arrival)
    #expect(folder.bodies.isEmpty)
    #expect(await store.bytes(now: arrival) == 0)
  }

  @Test("a damaged body, in a file or in the index, is ignored and removed")
  func damagedBodies() async throws {
    let first = store()
    for name in ["a", "b", "c", "d"] {
      let body = name == "d" ? [4, 5] : large(name.utf8.first ?? 0)
      await first.keep(body, under: name)
    }
    let index = try SQLiteConnection(path: folder.path + "/index.db")
    try index.execute("UPDATE entries SET body = x'0406' WHERE endpoint = 'http://host/d'")
    let files = folder.bodies
    folder.write(large(0), to: files[0])
    folder.write([1], to: files[1])
    try FileManager.default.removeItem(atPath: folder.path + "/" + files[2])
    let second = store()
    for name in ["a", "b", "c", "d"] { #expect(await second.body(of: name) == nil) }
    #expect(try index.integer("SELECT count(*) FROM entries") == 0)
    #expect(folder.bodies.isEmpty)
    await second.keep(large(9), under: "a")
    #expect(await store().body(of: "a")?.body == large(9))
  }

  @Test("a damaged index is created again", arguments: [true, false])
  func damagedIndex(whileOpen: Bool) async {
    let first = store(CacheLimits(memoryBytes: 0))
    await first.keep(large(1), under: "a")
    for ending in ["-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: folder.path + "/index.db" + ending)
    }
    folder.write(Array("this is no index of answers".utf8), to: "index.db")
    let store = whileOpen ? first : store()
    #expect(await store.body(of: "a") == nil)
    await store.keep(large(2), under: "b")
    #expect(await store.body(of: "b")?.body == large(2))
    #expect(await self.store().body(of: "b")?.body == large(2))
    #expect(folder.bodies.count == 1)
  }

  @Test("an index of another version, or without its tables, is created again")
  func otherVersion() async throws {
    for change in ["PRAGMA user_version = 99", "DROP TABLE entries"] {
      await store().keep(large(1), under: "a")
      try SQLiteConnection(path: folder.path + "/index.db").execute(change)
      let reopened = store()
      #expect(await reopened.body(of: "a") == nil)
      await reopened.keep(large(2), under: "a")
      #expect(await store().body(of: "a")?.body == large(2))
      #expect(folder.bodies.count == 1)
    }
  }

  @Test("the store starts empty when its folder is removed during its use")
  func removedFolder() async throws {
    let store = store()
    await store.keep(large(1), under: "a")
    #expect(await store.body(of: "a") != nil)
    try FileManager.default.removeItem(atPath: folder.path)
    #expect(await store.body(of: "a") == nil)
    await store.keep(large(2), under: "a")
    #expect(await store.body(of: "a")?.body == large(2))
  }

  @Test("opening removes the remains of a crash, but nothing that may be in use")
  func orphans() async throws {
    await store().keep(large(1), under: "a")
    let orphan = "bodies/00/" + String(repeating: "0", count: 64)
    folder.write([1], to: orphan)
    folder.write([1], to: "bodies/00/strange")
    folder.write([1], to: "bodies/new-old")
    folder.write([1], to: "bodies/new-young")
    let old = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1)]
    try FileManager.default.setAttributes(old, ofItemAtPath: folder.path + "/bodies/new-old")
    let reopened = store()
    #expect(await reopened.body(of: "a")?.body == large(1))
    #expect(folder.bodies.count == 2 && folder.bodies.contains("bodies/new-young"))
  }

  @Test("removing a partition keeps the others")
  func partitions() async {
    let store = store()
    for name in ["ada", "ben"] {
      let key = CacheKey("a", partition: .named(name))
      await store.store(Array(name.utf8), as: CachedHead([:]), under: key, now: arrival)
    }
    await store.remove(partition: "named:ada", now: arrival)
    #expect(await store.heads(of: CacheKey("a", partition: .named("ada"))).isEmpty)
    #expect(await store.heads(of: CacheKey("a", partition: .named("ben"))).count == 1)
  }
}

extension CacheStore {
  func keep(_ body: [UInt8], under name: String, now: Int64 = arrival) {
    store(body, as: CachedHead([:], received: now), under: CacheKey(name), now: now)
  }

  func body(of name: String, now: Int64 = arrival) -> Found? {
    find(CacheKey(name), now: now) { heads in heads.last.map { ($0, true) } }
  }

  func heads(of name: String) -> [CachedHead] { heads(of: CacheKey(name)) }

  func heads(of key: CacheKey) -> [CachedHead] {
    let box = HeadBox()
    _ = find(key, now: arrival) { heads in
      box.set(heads)
      return nil
    }
    return box.heads
  }
}
