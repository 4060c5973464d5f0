import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// The exact bytes of JSON written only by the server: the log, the tables and the lists.
@Suite("Written forms of the server", .hangLimit)
struct WrittenFormTests {
  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  @Test("a line of the log")
  func line() {
    var line = LogLine(.info, "request", wall: 1_790_000_000_000)
    line.add("path", "/\"\n")
    line.add("absent", nil)
    line.add("status", 200)
    line.add("durationMs", milliseconds: .microseconds(12_034))
    #expect(
      text(line.finish()) == """
        {"time":"2026-09-21T14:13:20.000Z","level":"info","message":"request","path":"/\\"\\n",\
        "status":200,"durationMs":12.034}

        """)
  }

  @Test("parts of an operation in the history")
  func operation() {
    var operation = SyncOperation(
      id: OperationID(UniqueID(high: 1, low: 2)), key: RecordKey(table: "t", record: "r"),
      kind: .update, time: HybridTimestamp(milliseconds: 9),
      columns: [Column("a", 1), Column("b", "x\"")],
      columnTimes: [
        "b": HybridTimestamp(milliseconds: 3), "a": HybridTimestamp(milliseconds: 7),
      ])
    let (early, late) = (HybridTimestamp(milliseconds: 3), HybridTimestamp(milliseconds: 5))
    #expect(text(operation.encodedColumns()) == #"{"a":1,"b":"x\""}"#)
    #expect(
      text(operation.encodedTimes(clampedTo: late))
        == "{\"a\":\"\(late)\",\"b\":\"\(early)\"}")
    #expect(operation.encodedMarks() == nil)
    operation.increments = ["b", "a"]
    #expect(operation.encodedMarks().map(text) == #"{"adds":["a","b"]}"#)
    operation.originals = [Column("b", nil)]
    #expect(operation.encodedMarks().map(text) == #"{"adds":["a","b"],"originals":{"b":null}}"#)
    operation.increments = []
    #expect(operation.encodedMarks().map(text) == #"{"originals":{"b":null}}"#)
  }

  @Test("the values of a unique key")
  func claim() {
    let values: [Name: Value] = ["a": 1.0, "b": "x"]
    let claim = UniqueClaim(table: "t", key: ["b", "a"]) { values[$0] }
    #expect(claim.map { text($0.columns) } == #"["b","a"]"#)
    #expect(claim.map { text($0.value) } == #"["x",1]"#)
    #expect(text(UniqueClaim.stored(columns: [])) == "[]")
  }

  @Test("lists of tokens and of the audit log")
  func lists() async throws {
    let fixture = ServiceFixture(spaces: ["notes"])
    let secret = AccessRuleTests.token()
    let everything = try #require(SpacePattern("*"))
    let notes = try #require(SpacePattern("notes"))
    let grants = try #require(AccessGrants([everything: .admin, notes: .writer]))
    try await fixture.store.addToken(secret, grants, owner: "a\"b", expiresAt: .max)
    let wall = ServiceClockDouble.wall
    let member =
      "\"id\":\"\(TokenID(hash: secret.hash))\",\"name\":\"\",\"owner\":\"a\\\"b\","
      + "\"account\":\"owner:a\\\"b\","
      + "\"spaces\":{\"*\":\"admin\",\"notes\":\"writer\"},\"createdAt\":\(wall),"
      + "\"expiresAt\":\(Int64.max),\"lastUsedAt\":null"
    let list = await fixture.send("GET", "/v1/tokens", token: secret)
    #expect(text(list.bytes) == "{\"tokens\":[{\(member)}],\"next\":null}")
    let made = await fixture.send(
      "POST", "/v1/tokens", token: secret,
      body: Array(#"{"name":"n","spaces":{"notes":"reader"}}"#.utf8))
    let answer = try JSONSerialization.jsonObject(with: Data(made.bytes)) as? [String: Any]
    let token = try #require(answer?["token"] as? String)
    let id = try #require(answer?["id"] as? String)
    #expect(
      text(made.bytes) == """
        {"token":"\(token)","id":"\(id)","name":"n","owner":null,"account":"token:\(id)",\
        "spaces":{"notes":"reader"},\
        "createdAt":\(wall),"expiresAt":null,"lastUsedAt":null}
        """)
    let audit = text(await fixture.send("GET", "/v1/audit", token: secret).bytes)
    #expect(
      audit == """
        {"entries":[{"number":1,"time":\(wall),"principal":"owner:a\\"b",\
        "action":"token_created","space":"notes",\
        "detail":"\(id) (n: reader of notes)"}]}
        """)
  }
}
