import FerryProtocol
import FerryTestSupport
import Testing

/// The exact bytes of signed or stored documents without a file in Protocol/fixtures.
@Suite("Written forms", .hangLimit)
struct WrittenFormTests {
  private static let zeros = String(repeating: "0", count: 62)

  private func manifest() throws -> MissionManifest {
    let bytes = [UInt8](repeating: 0, count: 31)
    let (hash, chunk) = (
      try #require(ContentHash(bytes + [1])), try #require(ContentHash(bytes + [2]))
    )
    var manifest = MissionManifestTests.manifest([
      MissionItem(
        path: "a/\"b\".mp4", kind: .video, mediaType: "video/mp4", size: 6, hash: hash,
        chunks: [chunk, hash], after: ["c", "d"]),
      MissionItem(
        path: "c", kind: .json, mediaType: "application/json", size: 0, hash: chunk,
        url: "https://school.example/c?page=1", isHosted: false),
    ])
    manifest.title = "one\ttwo"
    manifest.summary = "three\nfour"
    manifest.priority = -3
    manifest.after = [try #require(MissionID("intro")), try #require(MissionID("start"))]
    return manifest
  }

  @Test("a manifest")
  func signed() throws {
    let manifest = try manifest()
    let text = """
      {"format":1,"space":"school","mission":"lesson-1","version":1,"title":"one\\ttwo",\
      "summary":"three\\nfour","priority":-3,"after":["intro","start"],"chunkSize":\
      \(manifest.chunkSize),"items":[{"path":"a/\\"b\\".mp4","kind":"video",\
      "mediaType":"video/mp4","size":6,"sha256":"\(Self.zeros)01",\
      "chunks":["\(Self.zeros)02","\(Self.zeros)01"],"after":["c","d"]},\
      {"path":"c","kind":"json","mediaType":"application/json","size":0,\
      "sha256":"\(Self.zeros)02","url":"https://school.example/c?page=1","hosted":false}]}
      """
    #expect(String(decoding: manifest.encoded(), as: UTF8.self) == text)
  }

  @Test("a mission, and a list of them")
  func missions() throws {
    let record = MissionRecord(
      of: try manifest(), hash: try #require(ContentHash([UInt8](repeating: 0, count: 32))),
      manifestSize: 99, signature: [1, 2, 3], signer: [4], publishedAt: 5)
    let text = """
      {"mission":"lesson-1","version":1,"items":2,"size":6,"priority":-3,"manifestSize":99,\
      "publishedAt":5,"title":"one\\ttwo","summary":"three\\nfour","after":["intro","start"],\
      "manifest":"\(Self.zeros)00","signature":"AQID","signer":"BA=="}
      """
    #expect(String(decoding: record.encoded(), as: UTF8.self) == text)
    #expect(
      String(
        decoding: MissionPage(records: [record, record], next: record.id).encoded(), as: UTF8.self)
        == "{\"missions\":[\(text),\(text)],\"next\":\"lesson-1\"}")
    let none = MissionPage().encoded()
    #expect(none == Array("{\"missions\":[],\"next\":null}".utf8))
  }

  @Test("a batch in a history")
  func batch() {
    let predicate = RecordPredicate.and([
      .compare(.column("a\"b"), .less, .real(2)), .not(.among(.record, ["x", 1])),
    ])
    func text(_ effect: Batch.Effect, _ predicate: RecordPredicate) -> String {
      let batch = Batch(effect, where: predicate)
      var json = JSONWriter()
      json.storedBatch(
        batch,
        of: SyncOperation(
          id: .sample(1), table: "t", batch: batch, time: .at(1),
          columns: [Column("a", nil), Column("b", .blob([1]))]))
      return String(decoding: json.finish(), as: UTF8.self)
    }
    let normal = predicate.normalized
    var json = JSONWriter()
    json.predicate(normal)
    let part = String(decoding: json.finish(), as: UTF8.self)
    #expect(
      part == #"["and",["<","a\"b",{"real":"2.0"}],["not",["in",{"key":true},"x",1]]]"#)
    #expect(
      text(.set, predicate)
        == "{\"effect\":\"set\",\"where\":\(part),\"data\":{\"a\":null,\"b\":{\"blob\":\"AQ==\"}}}")
    #expect(text(.delete, .always) == #"{"effect":"delete","where":["always"]}"#)
  }
}
