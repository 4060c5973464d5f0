import FerryHTTPServer
import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissionServer

@Suite(
  "An object store that fails",
  .enabled(if: ObjectStoreServer.isAvailable, "\(ObjectStoreServer.skipReason)"), .hangLimit)
struct ObjectStoreFaultTests {
  private struct Stage {
    let faulty: FaultyStore
    let fixture: ContentFixture

    init() async throws {
      let server = try await ObjectStoreServer.forAll()
      faulty = try FaultyStore(before: server)
      fixture = try ContentFixture(over: faulty.endpoint, bucket: try await server.bucket())
    }
  }

  @Test("a wrong bucket, a wrong key and a key without rights are named")
  func refusals() async throws {
    let server = try await ObjectStoreServer.forAll()
    let bucket = try await server.bucket()
    func reason(_ bucket: String, _ key: ObjectStoreServer.Key) async -> String {
      do {
        try await ContentFixture.client(server.endpoint, bucket: bucket, key).check()
        return ""
      } catch {
        return "\(error)"
      }
    }
    let key = ObjectStoreServer.key
    #expect(await reason(bucket, key) == "")
    #expect(await reason("absent-bucket", key).contains("NoSuchBucket"))
    let unknown = ObjectStoreServer.Key(accessKey: "unknown", secretKey: "x")
    #expect(await reason(bucket, unknown).contains("InvalidAccessKeyId"))
    let wrong = ObjectStoreServer.Key(accessKey: key.accessKey, secretKey: "wrong")
    #expect(await reason(bucket, wrong).contains("SignatureDoesNotMatch"))
    let reader = try ContentFixture.client(
      server.endpoint, bucket: bucket, ObjectStoreServer.reader)
    await #expect(throws: ObjectStoreError.self) { try await reader.put([1], as: "some/a") }
    do { try await reader.put([1], as: "some/a") } catch {
      #expect("\(error)".contains("AccessDenied"))
    }
  }

  @Test("a new key in the file of credentials counts at the next refusal")
  func newKey() async throws {
    let server = try await ObjectStoreServer.forAll()
    let folder = try TemporaryDirectory(prefix: "ferry-keys")
    let file = folder.file("credentials")
    try ObjectStoreServer.write(ObjectStoreServer.reader, to: file)
    let client = try ObjectStoreClient(
      ObjectStoreSettings(
        "s3://\(try await server.bucket())", endpoint: server.endpoint, region: "us-east-1"),
      .file(file.path), transport: SystemTransport())
    await #expect(throws: ObjectStoreError.self) { try await client.put([1], as: "a") }
    try ObjectStoreServer.write(ObjectStoreServer.key, to: file)
    try await client.put([1], as: "a")
    #expect(try await client.content(of: "a", limit: 1) == [1])
  }

  @Test("a key that has expired is replaced by the file's new one, also in addresses")
  func expiredKey() async throws {
    let server = try await ObjectStoreServer.forAll()
    let faulty = try FaultyStore(before: server)
    let folder = try TemporaryDirectory(prefix: "ferry-keys")
    let file = folder.file("credentials")
    let bucket = try await server.bucket()
    func expired() throws -> ObjectStoreClient {
      try ObjectStoreServer.write(ObjectStoreServer.reader, to: file)
      let client = try ObjectStoreClient(
        ObjectStoreSettings("s3://\(bucket)", endpoint: faulty.endpoint, region: "us-east-1"),
        .file(file.path), transport: SystemTransport())
      try ObjectStoreServer.write(ObjectStoreServer.key, to: file)
      return client
    }
    for code in ["ExpiredToken", "InvalidToken"] {
      faulty.play(.answer(.storeError(400, code))) { $0.method == "PUT" }
      try await expired().put([1], as: "a")
    }
    faulty.play(.answer(HTTPResponse(status: 400))) { $0.method == "HEAD" }
    #expect(try await expired().size(of: "a") == 1)
    let address = try expired().address(of: "a", validity: 60)
    #expect(address.contains(ObjectStoreServer.key.accessKey))
    // A request that is wrong with every key is not repeated.
    faulty.play(.answer(.storeError(400, "InvalidRequest"))) { $0.method == "PUT" }
    await #expect(throws: ObjectStoreError.self) { try await expired().put([1], as: "a") }
    // A file that cannot be read leaves the last key.
    let client = try expired()
    try FileManager.default.removeItem(at: file)
    #expect(client.address(of: "a", validity: 60).contains(ObjectStoreServer.reader.accessKey))
  }

  @Test("a failure that passes is tried again, and one that stays is an error")
  func transient() async throws {
    let stage = try await Stage()
    let bytes = ContentFixture.bytes(100)
    stage.faulty.play(.answer(.storeError(500, "InternalError")), times: 2) { $0.method == "PUT" }
    stage.faulty.play(.answer(.storeError(503, "SlowDown"))) { $0.method == "PUT" }
    let hash = try await stage.fixture.store.store(bytes)
    #expect(stage.faulty.requests.count { $0.hasPrefix("PUT") } == 4)
    #expect(try await stage.fixture.store.content(of: hash, limit: 100) == bytes)
    stage.faulty.play(.answer(.storeError(500, "InternalError")), times: 4) { $0.method == "GET" }
    await #expect(throws: BlobError.self) {
      _ = try await stage.fixture.store.content(of: hash, limit: 100)
    }
    stage.faulty.play(.answer(.storeError(403, "AccessDenied"))) { $0.method == "GET" }
    let before = stage.faulty.requests.count
    await #expect(throws: BlobError.self) {
      _ = try await stage.fixture.store.content(of: hash, limit: 100)
    }
    #expect(stage.faulty.requests.count == before + 1)
    #expect(try await stage.fixture.store.content(of: hash, limit: 100) == bytes)
  }

  @Test("wrong bytes are an error, and so is an answer of another length")
  func wrongBytes() async throws {
    let stage = try await Stage()
    let hash = try await stage.fixture.store.store(ContentFixture.bytes(100))
    let other = ContentFixture.bytes(100, seed: 2)
    stage.faulty.play(
      .change { HTTPResponse(status: 200, headers: $0.headers, body: .bytes(other)) }
    ) { $0.method == "GET" }
    await #expect(throws: BlobError.mismatch(expected: hash, found: ContentHash(of: other))) {
      _ = try await stage.fixture.store.content(of: hash, limit: 100)
    }
    for status in [200, 206] {
      stage.faulty.play(
        .change { HTTPResponse(status: status, headers: $0.headers, body: .bytes([1, 2, 3])) }
      ) { $0.method == "GET" }
      await #expect(throws: BlobError.self) {
        _ = try await stage.fixture.store.read(hash, 0..<100, of: 100)
      }
      // A store that ignores the range, or answers with another one.
      stage.faulty.play(
        .change { answer in
          var headers = answer.headers
          headers["Content-Range"] = "bytes 0-9/100"
          return HTTPResponse(status: status, headers: headers, body: answer.body)
        }
      ) { $0.method == "GET" }
      await #expect(throws: BlobError.self) {
        _ = try await stage.fixture.store.read(hash, 10..<20, of: 100)
      }
    }
  }

  @Test("a part that fails aborts the last step of an upload, whose bytes stay and are sent again")
  func failedPart() async throws {
    let stage = try await Stage()
    let bytes = ContentFixture.bytes(18_000_000)
    let upload = BlobDirectory.Upload(
      owner: "1", hash: ContentHash(of: bytes), total: Int64(bytes.count))
    stage.faulty.play(.answer(.storeError(500, "InternalError")), times: 4) {
      $0.query["partNumber"] == "3"
    }
    await #expect(throws: BlobError.self) {
      try await stage.fixture.send(bytes[...], to: upload)
    }
    #expect(stage.faulty.requests.contains { $0.hasPrefix("DELETE uploadId=") })
    let client = try #require(stage.fixture.client)
    #expect(try await client.unfinished().isEmpty)
    #expect(try await stage.fixture.listed() == [])
    // An error after the status is one as well.
    stage.faulty.play(
      .answer(HTTPResponse(status: 200, body: HTTPResponse.storeError(500, "X").body)), times: 4
    ) { $0.method == "POST" && $0.query["uploadId"] != nil }
    await #expect(throws: BlobError.self) {
      _ = try await stage.fixture.store.append([], at: upload.total, to: upload)
    }
    // The last byte is enough: the others are here.
    let end = try await stage.fixture.store.append(
      [bytes[bytes.count - 1]], at: upload.total - 1, to: upload)
    #expect(end == upload.total)
    #expect(try await stage.fixture.store.isIntact(upload.hash) { _ in } == true)
  }

  @Test("an upload whose answer was lost is complete, and one that was abandoned is removed")
  func lostAnswer() async throws {
    let stage = try await Stage()
    let source = try stage.fixture.source("film", ContentFixture.bytes(9_000_000))
    stage.faulty.play(.change { _ in .storeError(500, "InternalError") }) {
      $0.method == "POST" && $0.query["uploadId"] != nil
    }
    try await stage.fixture.store.store(files: [source]) { _ in }
    #expect(try await stage.fixture.store.isIntact(source.digest.hash) { _ in } == true)
    let client = try #require(stage.fixture.client)
    let key = try stage.fixture.objects().key(of: ContentHash(of: [1]))
    _ = try await client.send(ObjectStoreRequest(.post, key, query: [("uploads", "")]))
    #expect(try await client.unfinished().count == 1)
    #expect(try await stage.fixture.store.removeUnfinished(before: 1_000_000_000).count == 0)
    #expect(try await stage.fixture.store.removeUnfinished(before: .max).count == 1)
    #expect(try await client.unfinished().isEmpty)
  }

  @Test("a list of several pages is read to its end, and foreign names in it are left alone")
  func pages() async throws {
    let stage = try await Stage()
    let client = try #require(stage.fixture.client)
    var hashes: [ContentHash] = []
    for seed in 0..<7 {
      hashes.append(
        try await stage.fixture.store.store(ContentFixture.bytes(10, seed: UInt64(seed))))
    }
    let name = hashes[0].description
    let foreign = [
      "some/prefix/notes & <plans>/ü+x.txt", "some/prefix/\(name)", "some/prefix/00/00/\(name)",
      "some/prefix/\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name).part",
    ]
    for key in foreign { try await client.put([1], as: key) }
    #expect(try await stage.fixture.listed() == hashes.sorted())
    var (found, next, pages) = ([String](), String?.none, 0)
    repeat {
      let page = try await client.list(after: next, limit: 2)
      found += page.entries.map(\.key)
      next = page.next
      pages += 1
    } while next != nil
    #expect(pages >= 6)
    let own = try hashes.map { try stage.fixture.objects().key(of: $0) }
    #expect(Set(found) == Set(own + foreign) && found.count == own.count + foreign.count)
  }

  @Test("a list that is hostile removes nothing and ends")
  func hostileList() async throws {
    let stage = try await Stage()
    let client = try #require(stage.fixture.client)
    func list(_ key: String, _ isTruncated: Bool) -> HTTPResponse {
      let text = """
        <ListBucketResult><IsTruncated>\(isTruncated)</IsTruncated><Contents><Key>\(key)</Key>\
        <LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>\
        </ListBucketResult>
        """
      return HTTPResponse(status: 200, body: .bytes(Array(text.utf8)))
    }
    let name = ContentHash(of: [1]).description
    for key in [
      "../../etc/passwd", "some/prefix/../\(name)", "/\(name)", "", "some/prefix/\u{0}",
      "other/prefix/\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name)",
    ] {
      stage.faulty.play(.answer(list(key, false))) { $0.query["list-type"] != nil }
      #expect(try await stage.fixture.listed() == [], "\(key)")
    }
    stage.faulty.play(.answer(list("a", true)), times: 2) { $0.query["list-type"] != nil }
    await #expect(throws: BlobError.self) { _ = try await stage.fixture.listed() }
    for text in ["", "<html>", "<a><b></a>", "<!DOCTYPE a []><a/>", "<a>&unknown;</a>"] {
      stage.faulty.play(.answer(HTTPResponse(status: 200, body: .bytes(Array(text.utf8))))) {
        $0.query["list-type"] != nil
      }
      await #expect(throws: ObjectStoreError.self) { _ = try await client.list(after: nil) }
    }
  }

  @Test("a store that is killed during an upload loses nothing, and gets it when it is back")
  func killed() async throws {
    let server = try await ObjectStoreServer()
    let fixture = try ContentFixture(over: server.endpoint, bucket: try await server.bucket())
    let bytes = ContentFixture.bytes(9_000_000)
    let upload = BlobDirectory.Upload(
      owner: "1", hash: ContentHash(of: bytes), total: Int64(bytes.count))
    try await fixture.send(bytes.dropLast(), to: upload)
    try await server.kill()
    let last = [bytes[bytes.count - 1]]
    await #expect(throws: BlobError.self) {
      _ = try await fixture.store.append(last, at: upload.total - 1, to: upload)
    }
    try await server.start()
    #expect(
      try await fixture.store.append(last, at: upload.total - 1, to: upload) == upload.total)
    #expect(try await fixture.store.isIntact(upload.hash) { _ in } == true)
  }

  @Test("an upload with a gap is not whole, although others have its content")
  func gap() async throws {
    let stage = try await Stage()
    let bytes = ContentFixture.bytes(900)
    let hash = try await stage.fixture.store.store(bytes)
    let upload = BlobDirectory.Upload(owner: "1", hash: hash, total: 900)
    let client = try #require(stage.fixture.client)
    // The part before it was removed meanwhile.
    try await client.put(
      Array(bytes[300..<400]),
      as: client.settings.prefix + "incoming/1-\(hash)-900/0000000000000000400")
    await #expect(throws: BlobError.busy) {
      _ = try await stage.fixture.store.append(Array(bytes[400...]), at: 400, to: upload)
    }
    #expect(try await stage.fixture.store.offset(owner: "1", hash) == 0)
    await #expect(throws: BlobError.wrongOffset(0)) {
      _ = try await stage.fixture.store.append([1], at: 899, to: upload)
    }
    // The parts behind the gap are dropped, and the upload begins again.
    #expect(
      try await stage.fixture.store.append(Array(bytes[..<300]), at: 0, to: upload) == 300)
    #expect(
      try await stage.fixture.store.append(Array(bytes[300...]), at: 300, to: upload) == 900)
    #expect(try await stage.fixture.store.offset(owner: "1", hash) == 0)
  }

  @Test("an owner whose uploads have no room stays refused until there is room")
  func refused() async throws {
    let stage = try await Stage()
    let files = ObjectFiles(
      try #require(stage.fixture.client), partBytes: ContentFixture.partBytes)
    let store = ObjectContent(files, local: stage.fixture.store.local, uncheckedMax: 600)
    func upload(_ number: UInt8, total: Int64) -> BlobDirectory.Upload {
      BlobDirectory.Upload(
        owner: "1", hash: ContentHash(of: [number]), total: total, quota: 2_000)
    }
    func send(_ count: Int, at offset: Int64, to upload: BlobDirectory.Upload) async throws {
      _ = try await store.append([UInt8](repeating: 1, count: count), at: offset, to: upload)
    }
    let (one, two) = (upload(1, total: 1_900), upload(2, total: 1_850))
    // Each has room while it begins.
    try await send(100, at: 0, to: one)
    try await send(100, at: 0, to: two)
    try await send(500, at: 100, to: one)
    try await send(500, at: 600, to: one)
    try await send(500, at: 100, to: two)
    for _ in 1...3 {
      await #expect(throws: BlobError.overQuota(used: 1_100, total: 1_850, quota: 2_000)) {
        try await send(500, at: 600, to: two)
      }
    }
    #expect(try await store.removeUnfinished(before: .max).count == 2)
    try await send(500, at: 0, to: two)
  }

  @Test("a node copies an upload once at a time, and drops what a kill left of a copy")
  func copies() async throws {
    let stage = try await Stage()
    let bytes = ContentFixture.bytes(900)
    let upload = BlobDirectory.Upload(owner: "1", hash: ContentHash(of: bytes), total: 900)
    try await stage.fixture.store.local.run { (directory, _) throws(BlobError) in
      let copy = try directory.copy(of: upload)
      try copy.write([UInt8](repeating: 9, count: 2_000), at: 0)
      #expect(throws: BlobError.busy) { _ = try directory.copy(of: upload) }
    }
    #expect(try await stage.fixture.store.append(bytes, at: 0, to: upload) == 900)
    #expect(try await stage.fixture.store.isIntact(upload.hash) { _ in } == true)
  }
}
