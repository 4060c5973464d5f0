import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("The mission store", .hangLimit)
struct MissionStoreTests {
  private let folder: TemporaryFolder
  private let store: SQLiteMissionStore
  private let published = Publication(
    "m", [("a.txt", content(1, 10)), ("b.bin", content(2, 200_000))], after: ["k"], priority: 5,
    url: { "https://example.org/\($0)" })

  init() async throws {
    folder = try TemporaryFolder()
    store = try await SQLiteMissionStore.open(folder.path + "/missions.db")
  }

  private var version: MissionVersion { MissionVersion(mission("m"), 1) }

  private func add(_ publication: Publication) async throws -> MissionVersion {
    let row = try await store.add(publication.record, at: 100)
    try await store.setManifest(
      publication.document, publication.manifest,
      of: MissionVersion(publication.manifest.id, publication.manifest.version))
    return row.version
  }

  private func addContent(_ publication: Publication) async throws {
    for item in publication.manifest.items {
      let content = StoredContent(hash: item.hash, size: item.size)
      try await store.addObject(
        ObjectRow(content: content, isDurable: false, at: 200),
        chunkSize: publication.manifest.chunkSize, chunks: item.chunks, path: "/x/\(item.path)")
    }
  }

  @Test("a row contains all that is needed to continue, and survives the process")
  func rows() async throws {
    let row = try await store.add(published.record, at: 100)
    #expect(row.record == published.record && row.state == .ready && !row.isComplete)
    #expect(try await store.add(published.record, at: 999) == row)
    let reason = MissionError(.offline, item: "b.bin", "no network")
    #expect(try await store.setState(.downloading, reason: reason, of: version))
    try await store.setManifest(
      published.document, published.manifest,
      of: MissionVersion(published.manifest.id, published.manifest.version))
    try await store.setProgress(bytesDone: 7, itemsDone: 1, of: version)
    let again = try await SQLiteMissionStore.open(store.path)
    let kept = try #require(try await again.missions().first)
    #expect(kept.state == .downloading && kept.reason == reason && kept.bytesDone == 7)
    #expect(kept.record == published.record && kept.itemsDone == 1)
    #expect(try await again.manifest(of: version) == published.document)
    #expect(try await again.files(of: version).map(\.path) == ["a.txt", "b.bin"])
  }

  @Test("a file's row has its original address, its place, its size and its time")
  func files() async throws {
    _ = try await add(published)
    try await addContent(published)
    let file = try #require(try await store.files(of: version).last)
    #expect(file.url == "https://example.org/b.bin" && file.localPath == "/x/b.bin")
    #expect(file.content.size == 200_000 && file.completedAt == 200)
    // Only a version in use is found by an address.
    #expect(try await store.file(url: "https://example.org/b.bin") == nil)
    try await store.complete(version, at: 300)
    #expect(try await store.file(url: "https://example.org/b.bin") == file)
    #expect(try await store.file(url: "https://example.org/c.bin") == nil)
  }

  @Test("a version that was never complete is replaced by another one")
  func superseded() async throws {
    _ = try await add(published)
    let next = Publication("m", version: 2, [("a.txt", content(1, 10))])
    _ = try await add(next)
    #expect(try await store.missions().map(\.record.version) == [2])
    #expect(try await store.files(of: version).isEmpty)
  }

  @Test("a complete version stays beside the next one until that is complete, and after it")
  func complete() async throws {
    _ = try await add(published)
    try await addContent(published)
    try await store.complete(version, at: 300)
    #expect(try await store.object(published.manifest.items[0].hash)?.isDurable == true)
    let next = Publication("m", version: 2, [("a.txt", content(1, 10))])
    let later = try await add(next)
    #expect(try await store.missions().filter(\.isActive).map(\.record.version) == [1])
    try await store.complete(later, at: 400)
    let rows = try await store.missions()
    #expect(rows.map(\.isActive) == [false, true])
    #expect(rows.map(\.activation) == [1, 2])
    // A complete version's state cannot be changed any more.
    #expect(try await !store.setState(.paused, reason: nil, of: later))
    await #expect(throws: MissionError.self) {
      try await store.complete(MissionVersion(mission("m"), 9), at: 1)
    }
  }

  @Test("removing a version releases only content that no other version has")
  func orphans() async throws {
    _ = try await add(published)
    try await addContent(published)
    _ = try await add(Publication("n", [("copy.txt", content(1, 10))]))
    let ending = MissionEnding(
      version: version, title: "Mission m", state: .failed,
      reason: MissionError(.wrongContent, item: "b.bin", "bad"), at: 5)
    let orphans = try await store.remove(version, ending: ending)
    #expect(orphans == [hash(content(2, 200_000))])
    #expect(try await store.object(hash(content(2, 200_000))) == nil)
    #expect(try await store.object(hash(content(1, 10))) != nil)
    #expect(try await store.part(published.manifest.items[1].chunks[0]) == nil)
    #expect(try await store.endings() == [ending])
    #expect(try await store.missions().map(\.record.id.value) == ["n"])
    // A new request replaces the ending.
    _ = try await store.add(published.record, at: 6)
    #expect(try await store.endings().isEmpty)
  }

  @Test("a chunk of complete content is found again")
  func chunks() async throws {
    _ = try await add(published)
    try await addContent(published)
    let item = published.manifest.items[1]
    let last = try #require(try await store.part(item.chunks[3]))
    #expect(last.content.hash == item.hash && last.offset == 196_608 && last.length == 3_392)
    #expect(try await store.part(hash([9])) == nil)
    let (size, chunks) = try await store.chunks(of: item.hash)
    #expect(size == 65_536 && chunks == item.chunks)
    #expect(try await store.chunks(of: published.manifest.items[0].hash).1.isEmpty)
    #expect(try await store.file("b.bin", of: version)?.content.hash == item.hash)
    #expect(try await store.file("c.bin", of: version) == nil)
    try await store.removeObject(item.hash)
    #expect(try await store.part(item.chunks[3]) == nil)
    #expect(try await store.files(of: version)[1].localPath == nil)
  }

  @Test("the stored chunks are recorded for their file, and for no other")
  func maps() async throws {
    let item = published.manifest.items[1]
    var map = ChunkMap(chunkCount: 4)
    map[2] = true
    map.validator = "\"v1\""
    try await store.setChunkMap(map, of: item.hash)
    #expect(try await store.chunkMap(of: item.hash, chunkCount: 4) == map)
    #expect(try await store.chunkMap(of: item.hash, chunkCount: 5) == nil)
    try await store.removeChunkMap(of: item.hash)
    #expect(try await store.chunkMap(of: item.hash, chunkCount: 4) == nil)
  }

  @Test("content with a row is needed, and the rest is forgotten")
  func needed() async throws {
    _ = try await add(published)
    try await addContent(published)
    try await store.setChunkMap(ChunkMap(chunkCount: 0), of: published.record.manifest)
    try await store.setChunkMap(ChunkMap(chunkCount: 0), of: hash([1]))
    let stray = StoredContent(hash: hash([2]), size: 1)
    try await store.addObject(
      ObjectRow(content: stray, isDurable: true, at: 1), chunkSize: 1, chunks: [], path: nil)
    let needed = try await store.needed()
    let hashes = Set(published.manifest.items.map(\.hash))
    #expect(needed.objects == hashes && needed.bundles == [version])
    #expect(needed.partials == hashes.union([published.record.manifest]))
    #expect(try await store.object(stray.hash) == nil)
    #expect(try await store.chunkMap(of: hash([1]), chunkCount: 0) == nil)
    #expect(try await store.chunkMap(of: published.record.manifest, chunkCount: 0) != nil)
  }

  @Test("the key that is trusted last is the only one")
  func signers() async throws {
    #expect(try await store.signers().isEmpty)
    try await store.trust([1], at: 1)
    try await store.trust([2], at: 2)
    #expect(try await store.signers() == [[2]])
  }

  @Test("another process's writes are noticed, and own writes are not")
  func dataVersion() async throws {
    let other = try await SQLiteMissionStore.open(store.path)
    let before = try await store.dataVersion()
    try await store.trust([1], at: 1)
    #expect(try await store.dataVersion() == before)
    try await other.trust([2], at: 1)
    #expect(try await store.dataVersion() != before)
  }

  @Test("a file that a later version of Ferry wrote is not changed")
  func laterFormat() async throws {
    try SQLiteConnection(path: store.path).execute("PRAGMA user_version=99")
    let error = await #expect(throws: MissionError.self) {
      try await SQLiteMissionStore.open(store.path)
    }
    #expect(error?.kind == .database)
  }
}
