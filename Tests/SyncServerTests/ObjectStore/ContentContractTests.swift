import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("Both stores of content", .hangLimit)
struct ContentContractTests {
  @Test(
    "an upload in parts is visible when it is whole, and not before",
    arguments: ContentKind.available, [700, 9_000_000])
  func upload(_ kind: ContentKind, count: Int) async throws {
    let fixture = try await ContentFixture(kind)
    let bytes = ContentFixture.bytes(count)
    let hash = ContentHash(of: bytes)
    let upload = BlobDirectory.Upload(owner: "1", hash: hash, total: Int64(count))
    let half = count / 2
    #expect(try await fixture.store.append(Array(bytes[..<half]), at: 0, to: upload) == half)
    #expect(try await fixture.store.size(of: hash) == nil)
    #expect(try await fixture.listed() == [])
    await #expect(throws: BlobError.wrongOffset(Int64(half))) {
      _ = try await fixture.store.append([1], at: 1, to: upload)
    }
    #expect(
      try await fixture.store.append(Array(bytes[half...]), at: Int64(half), to: upload) == count)
    #expect(try await fixture.store.size(of: hash) == Int64(count))
    #expect(try await fixture.store.content(of: hash, limit: count) == bytes)
    #expect(try await fixture.store.isIntact(hash) { _ in } == true)
    #expect(try await fixture.listed() == [hash])
    // Nothing is left of the upload.
    #expect(try await fixture.store.offset(owner: "1", hash) == 0)
    #expect(try await fixture.store.removeUnfinished(before: .max).count == 0)
  }

  @Test("an upload goes on from the place that a wrong part gets", arguments: ContentKind.available)
  func wrongParts(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    let store = fixture.store
    let bytes = ContentFixture.bytes(900)
    let hash = ContentHash(of: bytes)
    let upload = BlobDirectory.Upload(owner: "1", hash: hash, total: 900)
    func refuse(_ part: [UInt8], at offset: Int64, reached: Int64) async {
      await #expect(throws: BlobError.wrongOffset(reached)) {
        _ = try await store.append(part, at: offset, to: upload)
      }
    }
    await refuse([1], at: 1, reached: 0)
    await refuse([1], at: 899, reached: 0)
    #expect(try await store.append(Array(bytes[..<400]), at: 0, to: upload) == 400)
    #expect(try await store.offset(owner: "1", hash) == 400)
    #expect(try await store.offset(owner: "2", hash) == 0)
    #expect(try await store.append([], at: 400, to: upload) == 400)
    await refuse(Array(bytes[..<399]), at: 0, reached: 400)
    await refuse([1], at: 399, reached: 400)
    await refuse([1], at: 500, reached: 400)
    // It would be longer than the whole.
    await refuse(Array(bytes[..<501]), at: 400, reached: 400)
    await refuse([1], at: .max, reached: 400)
    #expect(try await store.append(Array(bytes[400..<401]), at: 400, to: upload) == 401)
    #expect(try await store.append(Array(bytes[401...]), at: 401, to: upload) == 900)
    #expect(try await fixture.listed() == [hash])
  }

  @Test(
    "a whole of wrong parts is dropped, and the upload begins again",
    arguments: ContentKind.available)
  func wrongWhole(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    let bytes = ContentFixture.bytes(900)
    let upload = BlobDirectory.Upload(owner: "1", hash: ContentHash(of: bytes), total: 900)
    _ = try await fixture.store.append([UInt8](repeating: 7, count: 500), at: 0, to: upload)
    await #expect(throws: BlobError.self) {
      _ = try await fixture.store.append(Array(bytes[500...]), at: 500, to: upload)
    }
    #expect(try await fixture.listed() == [])
    #expect(try await fixture.store.offset(owner: "1", upload.hash) == 0)
    _ = try await fixture.store.append(Array(bytes[..<500]), at: 0, to: upload)
    #expect(try await fixture.store.append(Array(bytes[500...]), at: 500, to: upload) == 900)
    #expect(try await fixture.listed() == [upload.hash])
  }

  @Test("unfinished uploads of one owner are bounded together", arguments: ContentKind.available)
  func quota(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    let store = fixture.store
    func upload(_ number: UInt8, owner: String = "1") -> BlobDirectory.Upload {
      BlobDirectory.Upload(
        owner: owner, hash: ContentHash(of: [number]), total: 600, quota: 1_000)
    }
    let part = [UInt8](repeating: 1, count: 500)
    #expect(try await store.append(part, at: 0, to: upload(1)) == 500)
    await #expect(throws: BlobError.overQuota(used: 500, total: 600, quota: 1_000)) {
      _ = try await store.append(part, at: 0, to: upload(2))
    }
    #expect(try await store.append(part, at: 0, to: upload(2, owner: "11")) == 500)
    #expect(try await store.removeUnfinished(before: .max).count == 2)
    #expect(try await store.append(part, at: 0, to: upload(2)) == 500)
    #expect(try await fixture.listed() == [])
  }

  @Test(
    "a whole with another hash is dropped, and the upload begins again",
    arguments: ContentKind.available)
  func mismatch(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    let (bytes, wrong) = (ContentFixture.bytes(900), ContentFixture.bytes(900, seed: 2))
    let upload = BlobDirectory.Upload(owner: "1", hash: ContentHash(of: bytes), total: 900)
    await #expect(
      throws: BlobError.mismatch(expected: upload.hash, found: ContentHash(of: wrong))
    ) {
      _ = try await fixture.store.append(wrong, at: 0, to: upload)
    }
    #expect(try await fixture.listed() == [])
    #expect(try await fixture.store.append(bytes, at: 0, to: upload) == 900)
    #expect(try await fixture.listed() == [upload.hash])
  }

  @Test("ranges are read, and missing content is an error", arguments: ContentKind.available)
  func ranges(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    let bytes = ContentFixture.bytes(700_000)
    let hash = try await fixture.store.store(bytes)
    for range in [0..<700_000, 0..<1, 1..<10, 300_000..<699_999, 699_999..<700_000] {
      let wanted = Int64(range.lowerBound)..<Int64(range.upperBound)
      #expect(try await fixture.read(hash, wanted, of: 700_000) == Array(bytes[range]), "\(range)")
    }
    await #expect(throws: BlobError.self) { try await fixture.read(hash, 0..<5, of: 700_001) }
    let absent = ContentHash(of: [9])
    await #expect(throws: BlobError.self) { try await fixture.read(absent, 0..<1, of: 1) }
    #expect(try await fixture.store.content(of: absent, limit: 10) == nil)
    #expect(try await fixture.store.isIntact(absent) { _ in } == nil)
    await #expect(throws: BlobError.self) {
      _ = try await fixture.store.content(of: hash, limit: 699_999)
    }
  }

  @Test("files are kept once, also large and empty ones", arguments: ContentKind.available)
  func files(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    var sources = [try fixture.source("empty", [])]
    for (index, count) in [10, 8 << 20, (8 << 20) + 1, 20_000_000].enumerated() {
      sources.append(
        try fixture.source("\(index)", ContentFixture.bytes(count, seed: UInt64(index))))
    }
    sources.append(try fixture.source("again", ContentFixture.bytes(10, seed: 0)))
    try await fixture.store.store(files: sources) { _ in }
    // All of it is there already.
    try await fixture.store.store(files: sources) { _ in Issue.record("it was kept again") }
    let hashes = sources.map(\.digest.hash)
    let sizes = try await fixture.store.sizes(of: hashes + [ContentHash(of: [7])])
    #expect(sizes.count == 5)
    for source in sources {
      #expect(sizes[source.digest.hash] == source.digest.size)
      #expect(try await fixture.store.isIntact(source.digest.hash) { _ in } == true)
    }
    #expect(try await fixture.listed() == Set(hashes).sorted())
  }

  @Test("a file that has changed is not kept", arguments: ContentKind.available)
  func changed(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    let source = try fixture.source("a", ContentFixture.bytes(3_000_000))
    _ = try fixture.source("a", ContentFixture.bytes(3_000_000, seed: 2))
    await #expect(throws: BlobError.changed(path: source.path)) {
      try await fixture.store.store(files: [source]) { _ in }
    }
    #expect(try await fixture.listed() == [])
  }

  @Test("damage is found", arguments: ContentKind.available)
  func damage(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    let hash = try await fixture.store.store(ContentFixture.bytes(500))
    try await fixture.damage(hash, with: ContentFixture.bytes(500, seed: 2))
    #expect(try await fixture.store.isIntact(hash) { _ in } == false)
  }

  @Test("content is listed by its age, and removed with its size", arguments: ContentKind.available)
  func collecting(_ kind: ContentKind) async throws {
    let fixture = try await ContentFixture(kind)
    var hashes: [ContentHash] = []
    for seed in 0..<5 {
      hashes.append(try await fixture.store.store(ContentFixture.bytes(100, seed: UInt64(seed))))
    }
    #expect(try await fixture.listed() == hashes.sorted())
    #expect(try await fixture.listed(before: 1_000_000_000) == [])
    let removed = try await fixture.store.remove(
      Array(hashes.prefix(2)) + [ContentHash(of: [8])])
    #expect(removed == [100, 100])
    #expect(try await fixture.listed() == hashes.dropFirst(2).sorted())
    let upload = BlobDirectory.Upload(owner: "1", hash: ContentHash(of: [1, 2]), total: 2)
    _ = try await fixture.store.append([1], at: 0, to: upload)
    #expect(try await fixture.store.removeUnfinished(before: 1_000_000_000).count == 0)
    #expect(try await fixture.store.removeUnfinished(before: .max).count == 1)
  }
}
