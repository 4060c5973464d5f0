import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerryCaching

@Suite("A folder shared by two caches", .hangLimit)
struct SharedFolderTests {
  private let folder = Folder()

  private func store() -> CacheStore { CacheStore(folder: folder.path, limits: CacheLimits()) }

  private func large(_ fill: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(truncatingIfNeeded: fill), count: 20_000 + fill)
  }

  @Test("each cache sees the other's kept, replaced, renewed and removed answers")
  func visibility() async {
    let (one, other) = (store(), store())
    await one.keep([1], under: "a")
    #expect(await other.body(of: "a")?.body == [1])
    #expect(await one.body(of: "a")?.body == [1])
    await other.keep([2], under: "a")
    #expect(await one.body(of: "a")?.body == [2])
    _ = await other.renew(CacheKey("a"), now: arrival) { heads in
      var head = heads.last
      head?.headers = ["X": "renewed"]
      return head
    }
    let renewed = await one.body(of: "a")
    #expect(renewed?.head.headers == ["X": "renewed"] && renewed?.body == [2])
    await other.remove(endpoints: ["http://host/a"], now: arrival)
    #expect(await one.body(of: "a") == nil)
    await one.keep([3], under: "a")
    await other.removeAll(now: arrival)
    #expect(await one.body(of: "a") == nil)
  }

  @Test("concurrent keeping, reading and removing never return a wrong body")
  func contention() async throws {
    let stores = [store(), store()]
    await withTaskGroup { group in
      for (number, store) in stores.enumerated() {
        for round in 0..<40 {
          group.addTask { [large] in
            let name = round % 5
            await store.keep(large(name), under: "\(name)")
            let found = await store.body(of: "\((round + 1) % 5)")
            if let body = found?.body { #expect(body == large((round + 1) % 5)) }
            if (round + number) % 7 == 0 {
              await store.remove(endpoints: ["http://host/\(name)"], now: arrival)
            }
          }
        }
      }
    }
    try expectWhole()
  }

  @Test("one cache removes a damaged folder, and both use it afterwards")
  func damage() async {
    let (one, other) = (store(), store())
    await one.keep(large(1), under: "a")
    #expect(await other.body(of: "a") != nil)
    for ending in ["-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: folder.path + "/index.db" + ending)
    }
    folder.write([UInt8](repeating: 9, count: 9000), to: "index.db")
    await one.keep(large(2), under: "b")
    await other.keep(large(3), under: "c")
    for store in [one, other] {
      #expect(await store.body(of: "a") == nil)
      #expect(await store.body(of: "b")?.body == large(2))
      #expect(await store.body(of: "c")?.body == large(3))
    }
  }

  @Test("another process can fill the folder, and sees the answers of this one")
  func otherProcess() async throws {
    let here = store()
    await here.keep([1], under: "from here")
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let there = CacheStore(folder: path, limits: CacheLimits())
      guard await there.body(of: "from here")?.body == [1] else { exit(1) }
      await there.keep([2], under: "from here")
      await there.keep([UInt8](repeating: 5, count: 50_000), under: "from there")
    }
    #expect(await here.body(of: "from here")?.body == [2])
    #expect(await here.body(of: "from there")?.body == [UInt8](repeating: 5, count: 50_000))
  }

  @Test(
    "the folder is consistent after a process was killed while it worked", arguments: [3, 20, 60])
  func killed(count: Int) async throws {
    let folder = Folder()
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = folder.path as String, count = count as Int] in
      let there = CacheStore(folder: path, limits: CacheLimits(diskBytes: 400_000))
      await withTaskGroup { group in
        for index in 0..<100 {
          group.addTask {
            let body = [UInt8](repeating: UInt8(index), count: 20_000)
            await there.keep(body, under: "\(index % 30)")
            if index == count { kill(getpid(), SIGKILL) }
          }
        }
      }
    }
    let here = CacheStore(folder: folder.path, limits: CacheLimits())
    for index in 0..<30 {
      if let body = await here.body(of: "\(index)")?.body { #expect(body.count == 20_000) }
    }
    await here.keep([1], under: "after")
    #expect(await here.body(of: "after")?.body == [1])
    try Self.expectWhole(folder)
  }

  private func expectWhole() throws { try Self.expectWhole(folder) }

  /// Checks that every row has a file, and every finished file a row.
  private static func expectWhole(_ folder: Folder) throws {
    let index = try SQLiteConnection(path: folder.path + "/index.db")
    let rows = try index.prepare(
      "SELECT DISTINCT lower(hex(hash)) FROM entries WHERE isFile = 1 ORDER BY 1"
    ).rows { $0.text(0) }
    let files = folder.bodies.filter { !$0.contains("new-") }
    #expect(rows == files.map { String($0.suffix(64)) }.sorted())
    #expect(try index.integer("SELECT count(*) FROM garbage") == 0)
    #expect(
      try index.integer("SELECT coalesce(sum(size), 0) FROM entries")
        == index.integer("SELECT bytes FROM state"))
  }
}
