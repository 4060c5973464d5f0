import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("Uploads in parts", .hangLimit)
struct BlobUploadTests {
  private static let bytes = BlobFixture.bytes(1_000)

  private func upload(_ owner: String = "1", total: Int64 = 1_000) -> BlobDirectory.Upload {
    BlobDirectory.Upload(owner: owner, hash: ContentHash(of: Self.bytes), total: total)
  }

  @Test("parts in order make the whole, which is visible only then")
  func parts() throws {
    let fixture = try BlobFixture()
    let hash = ContentHash(of: Self.bytes)
    var end: Int64 = 0
    while end < 1_000 {
      #expect(try fixture.blobs.offset(owner: "1", hash) == end)
      #expect(try fixture.blobs.size(of: hash) == nil)
      let part = Array(Self.bytes[Int(end)..<min(1_000, Int(end) + 300)])
      // Another process each time: the disk is the only memory.
      end = try BlobDirectory(fixture.blobs.path).append(part, at: end, to: upload())
    }
    #expect(try fixture.blobs.isIntact(hash) == true)
    #expect(try fixture.blobs.offset(owner: "1", hash) == 0)
    #expect(try fixture.names().count == 1)
  }

  @Test("a part at a wrong offset is refused with the right one, and changes nothing")
  func wrongOffset() throws {
    let fixture = try BlobFixture()
    #expect(throws: BlobError.wrongOffset(0)) {
      _ = try fixture.blobs.append([1], at: 1, to: upload())
    }
    _ = try fixture.blobs.append(Array(Self.bytes[..<400]), at: 0, to: upload())
    for offset in [0, 399, 401, 1_000] as [Int64] {
      #expect(throws: BlobError.wrongOffset(400)) {
        _ = try fixture.blobs.append([1, 2], at: offset, to: upload())
      }
    }
    // More than the whole, or a whole smaller than the present part.
    #expect(throws: BlobError.wrongOffset(400)) {
      _ = try fixture.blobs.append(Self.bytes, at: 400, to: upload())
    }
    #expect(try fixture.blobs.offset(owner: "1", upload().hash) == 400)
    #expect(throws: BlobError.wrongOffset(0)) {
      _ = try fixture.blobs.append([1], at: 400, to: upload(total: 300))
    }
    #expect(try fixture.blobs.offset(owner: "1", upload().hash) == 0)
  }

  @Test(
    "a whole that a killed server never checked is checked with the next part")
  func killedInTheCheck() throws {
    let fixture = try BlobFixture()
    let part = fixture.blobs.incoming + "/part-1-\(upload().hash)"
    try Data(Self.bytes).write(to: URL(fileURLWithPath: part))
    #expect(try fixture.blobs.offset(owner: "1", upload().hash) == 1_000)
    #expect(try fixture.blobs.append([Self.bytes[999]], at: 999, to: upload()) == 1_000)
    #expect(try fixture.blobs.isIntact(upload().hash) == true)
    try Data(Self.bytes.reversed()).write(to: URL(fileURLWithPath: part))
    #expect(throws: BlobError.self) {
      _ = try fixture.blobs.append([Self.bytes[999]], at: 999, to: upload())
    }
    #expect(try fixture.blobs.offset(owner: "1", upload().hash) == 0)
  }

  @Test("a whole with another hash than its name is dropped, and the upload starts again")
  func mismatch() throws {
    let fixture = try BlobFixture()
    var wrong = Self.bytes
    wrong[500] ^= 1
    let found = ContentHash(of: wrong)
    #expect(throws: BlobError.mismatch(expected: upload().hash, found: found)) {
      _ = try fixture.blobs.append(wrong, at: 0, to: upload())
    }
    #expect(try fixture.names() == [])
    #expect(try fixture.blobs.append(Self.bytes, at: 0, to: upload()) == 1_000)
    #expect(try fixture.blobs.isIntact(upload().hash) == true)
  }

  @Test("uploads of two owners are separate, and empty content is whole at once")
  func owners() throws {
    let fixture = try BlobFixture()
    _ = try fixture.blobs.append(Array(Self.bytes[..<400]), at: 0, to: upload("1"))
    #expect(try fixture.blobs.offset(owner: "2", upload().hash) == 0)
    #expect(try fixture.blobs.append(Self.bytes, at: 0, to: upload("2")) == 1_000)
    #expect(try fixture.blobs.offset(owner: "1", upload().hash) == 400)
    #expect(
      try fixture.blobs.append(Array(Self.bytes[400...]), at: 400, to: upload("1")) == 1_000)
    let empty = BlobDirectory.Upload(owner: "1", hash: ContentHash(of: []), total: 0)
    #expect(try fixture.blobs.append([], at: 0, to: empty) == 0)
    #expect(try fixture.blobs.size(of: empty.hash) == 0)
  }

  @Test("long work is left to callers that can wait, and nothing is done")
  func quickly() throws {
    let fixture = try BlobFixture()
    let large = BlobDirectory.Upload(
      owner: "1", hash: ContentHash(of: [1]), total: BlobDirectory.quicklyChecked + 1)
    #expect(try fixture.blobs.appendQuickly([1], at: 0, to: large) == 1)
    let rest = [UInt8](repeating: 0, count: Int(BlobDirectory.quicklyChecked))
    #expect(try fixture.blobs.appendQuickly(rest, at: 1, to: large) == nil)
    #expect(try fixture.blobs.offset(owner: "1", large.hash) == 1)
    #expect(throws: BlobError.self) { _ = try fixture.blobs.append(rest, at: 1, to: large) }
    // A small whole is checked at once; if another process holds it, no caller waits.
    #expect(try fixture.blobs.appendQuickly(Self.bytes, at: 0, to: upload()) == 1_000)
    let other = BlobDirectory.Upload(owner: "2", hash: upload().hash, total: 1_000)
    #expect(try fixture.blobs.appendQuickly([1], at: 0, to: other) == 1)
    let busy = try BlobFile(fixture.blobs.incoming + "/part-2-\(other.hash)", O_RDWR)
    try busy.lock(LOCK_EX)
    #expect(try fixture.blobs.appendQuickly([1], at: 1, to: other) == nil)
  }

  @Test("an upload above the quota is refused before it is written, and others continue")
  func quota() throws {
    let fixture = try BlobFixture()
    func upload(_ seed: UInt8, _ total: Int64, owner: String = "1") -> BlobDirectory.Upload {
      BlobDirectory.Upload(
        owner: owner, hash: ContentHash(of: [seed]), total: total, quota: 1_000)
    }
    _ = try fixture.blobs.append(Array(Self.bytes[..<600]), at: 0, to: upload(1, 1_000))
    #expect(throws: BlobError.overQuota(used: 600, total: 401, quota: 1_000)) {
      _ = try fixture.blobs.append([1], at: 0, to: upload(2, 401))
    }
    #expect(throws: BlobError.overQuota(used: 600, total: .max, quota: 1_000)) {
      _ = try fixture.blobs.append([1], at: 0, to: upload(2, .max))
    }
    #expect(try fixture.names().count == 1)
    #expect(try fixture.blobs.append([1], at: 0, to: upload(2, 400)) == 1)
    #expect(try fixture.blobs.append([1], at: 0, to: upload(3, 900, owner: "10")) == 1)
    // A whole upload is never unfinished.
    let whole = BlobDirectory.Upload(
      owner: "1", hash: ContentHash(of: Self.bytes), total: 1_000, quota: 10)
    #expect(try fixture.blobs.append(Self.bytes, at: 0, to: whole) == 1_000)
    #expect(try fixture.blobs.unfinished(of: "1").bytes == 601)
  }

  @Test("unfinished uploads are bounded in number, and each may be continued")
  func number() throws {
    let fixture = try BlobFixture()
    func upload(_ number: Int, owner: String = "1") -> BlobDirectory.Upload {
      BlobDirectory.Upload(
        owner: owner, hash: ContentHash(of: Array("\(number)".utf8)), total: 2, quota: 1 << 30)
    }
    let most = BlobDirectory.unfinishedMax
    for number in 0..<most {
      let path = fixture.blobs.part("1", upload(number).hash)
      #expect(close(open(path, O_WRONLY | O_CREAT, 0o600)) == 0)
    }
    #expect(throws: BlobError.tooManyUploads(limit: most)) {
      _ = try fixture.blobs.append([1], at: 0, to: upload(most))
    }
    #expect(try fixture.names().count == most)
    #expect(try fixture.blobs.append([1], at: 0, to: upload(0)) == 1)
    #expect(try fixture.blobs.append([1], at: 0, to: upload(most, owner: "2")) == 1)
  }

  @Test("one of several concurrent senders of a part succeeds, and the others get the offset")
  func together() async throws {
    let fixture = try BlobFixture()
    let threads = BlobThreads(fixture.blobs, threads: 8)
    let whole = upload()
    let results = await withTaskGroup(of: Result<Int64, BlobError>.self) { group in
      for _ in 0..<16 {
        group.addTask {
          await Result(catching: { () async throws(BlobError) in
            try await threads.run { (directory, _) throws(BlobError) in
              try directory.append(Array(Self.bytes[..<600]), at: 0, to: whole)
            }
          })
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.count { $0 == .success(600) } == 1)
    #expect(results.count { $0 == .failure(.wrongOffset(600)) } == 15)
  }
}

extension Result where Failure == BlobError {
  fileprivate init(catching body: () async throws(BlobError) -> Success) async {
    do {
      self = .success(try await body())
    } catch {
      self = .failure(error)
    }
  }
}
