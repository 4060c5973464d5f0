import FerryTestSupport
import Testing

@testable import FerryPostgres

@Suite("The decoder of pgoutput", .hangLimit)
struct PgoutputDecoderTests {
  private typealias Bytes = PgoutputBytes

  @Test("each kind of message is decoded")
  func decodes() throws {
    let decoded = try Bytes.all.map { try PgoutputDecoder.decode($0[...]) }
    let (plain, values) = (Bytes.values(["a", "x"]), Bytes.values)
    let relation = PgoutputRelation(
      id: 1, schema: "public", name: "tasks", identity: UInt8(ascii: "f"),
      columns: [
        .init(name: "id", type: 25, isKey: true), .init(name: "title", type: 25, isKey: false),
      ])
    let expected: [PgoutputMessage] = [
      .begin(xid: 5, commit: PostgresLSN(10), time: 7),
      .commit(commit: PostgresLSN(10), end: PostgresLSN(12), time: 7),
      .relation(relation), .origin("other"), .type(id: 99),
      .insert(relation: 1, new: values(["a", nil])),
      .update(relation: 1, old: nil, new: values(["a", "…"])),
      .update(relation: 1, old: .row(plain), new: values(["a", "y"])),
      .update(relation: 1, old: .key(values(["a", nil])), new: values(["b", "y"])),
      .delete(relation: 1, old: .key(values(["a", nil]))), .delete(relation: 1, old: .row(plain)),
      .truncate(relations: [1, 2]),
      .message(isTransactional: true, prefix: "ferry.mirror", content: Array("7".utf8)),
    ]
    #expect(decoded == expected)
    #expect(relation.hasWholeRows)
  }

  @Test("a message cut short anywhere, or followed by a byte, is an error")
  func truncated() {
    for message in Bytes.all {
      for length in message.indices {
        #expect(throws: ReplicationFault.self) {
          try PgoutputDecoder.decode(message[..<length])
        }
      }
      #expect(throws: ReplicationFault.self) { try PgoutputDecoder.decode((message + [0])[...]) }
    }
  }

  @Test("a message with any changed byte gives a message or an error")
  func changedBytes() throws {
    var random = SeededGenerator(seed: 7)
    for message in Bytes.all {
      for place in message.indices {
        for value in [0, 0x7F, 0x80, 0xFF, UInt8.random(in: 0...255, using: &random)] {
          var bytes = message
          bytes[place] = value
          do {
            _ = try PgoutputDecoder.decode(bytes[...])
          } catch {
            #expect(error.description.contains("PostgreSQL's log"))
          }
        }
      }
    }
  }

  @Test("random bytes give a message or an error", arguments: 0..<8)
  func random(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let kinds = Array("BCORYIUDTM".utf8)
    for _ in 0..<4_000 {
      let length = Int.random(in: 0..<40, using: &random)
      var bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
      if let kind = kinds.randomElement(using: &random), !bytes.isEmpty { bytes[0] = kind }
      _ = try? PgoutputDecoder.decode(bytes[...])
      _ = try? ReplicationFrame(bytes)
    }
  }

  @Test("hostile counts and lengths are errors, without memory for them")
  func hostile() {
    let huge: [[UInt8]] = [
      Array("I".utf8) + Bytes.integer(UInt32(1)) + Array("N".utf8) + Bytes.integer(Int16.max),
      Array("I".utf8) + Bytes.integer(UInt32(1)) + Array("N".utf8) + Bytes.integer(Int16(-1)),
      Array("T".utf8) + Bytes.integer(Int32.max) + [0],
      Array("T".utf8) + Bytes.integer(Int32(-1)) + [0],
      Array("M".utf8) + [1] + Bytes.integer(UInt64(9)) + Bytes.text("p")
        + Bytes.integer(Int32.max),
      Array("M".utf8) + [1] + Bytes.integer(UInt64(9)) + Bytes.text("p")
        + Bytes.integer(Int32.min),
      Array("O".utf8) + Bytes.integer(UInt64(9)) + [0xFF, 0xFE, 0],
      [], [0], Array("Z".utf8),
    ]
    for bytes in huge {
      #expect(throws: ReplicationFault.self) { try PgoutputDecoder.decode(bytes[...]) }
    }
  }

  @Test("frames of the stream are decoded, and reports have the form of the server")
  func frames() throws {
    let data =
      Array("w".utf8) + Bytes.integer(UInt64(8)) + Bytes.integer(UInt64(9))
      + Bytes.integer(Int64(1)) + [1, 2]
    guard case .data(let start, let message) = try ReplicationFrame(data) else {
      Issue.record("no data")
      return
    }
    #expect(start == PostgresLSN(8) && Array(message) == [1, 2])
    let keepalive =
      Array("k".utf8) + Bytes.integer(UInt64(9)) + Bytes.integer(Int64(1)) + [1]
    #expect(
      try ReplicationFrame(keepalive) == .keepalive(end: PostgresLSN(9), wantsReply: true))
    for length in keepalive.indices {
      #expect(throws: ReplicationFault.self) {
        try ReplicationFrame(Array(keepalive[..<length]))
      }
    }
    let status = ReplicationFrame.status(received: PostgresLSN(3), confirmed: PostgresLSN(5))
    #expect(status.count == 34)
    #expect(Array(status[1..<9]) == Bytes.integer(UInt64(5)))
  }

  @Test("positions have the form of PostgreSQL")
  func positions() {
    #expect(PostgresLSN("16/B374D848")?.description == "16/B374D848")
    #expect(PostgresLSN("0/0") == .zero)
    #expect(PostgresLSN("FFFFFFFF/FFFFFFFF")?.value == .max)
    #expect(PostgresLSN(1 << 32) > PostgresLSN(UInt64(UInt32.max)))
    for text in ["", "/", "1", "1/", "/1", "1/2/3", "100000000/0", "g/0", "+1/0", "-1/0", "1/ 2"] {
      #expect(PostgresLSN(text) == nil, "\(text)")
    }
  }
}
