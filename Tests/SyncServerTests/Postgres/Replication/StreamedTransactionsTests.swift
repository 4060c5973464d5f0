import FerryTestSupport
import Testing

@testable import FerryPostgres

@Suite("Open transactions of a log", .hangLimit)
struct StreamedTransactionsTests {
  private typealias Bytes = PgoutputBytes
  private typealias Effect = StreamedTransactions.Effect

  private static func start(_ xid: UInt32, isFirst: Bool) -> [UInt8] {
    Array("S".utf8) + Bytes.integer(xid) + [isFirst ? 1 : 0]
  }

  private static let stop = Array("E".utf8)

  private static func abort(_ xid: UInt32, _ part: UInt32) -> [UInt8] {
    Array("A".utf8) + Bytes.integer(xid) + Bytes.integer(part)
  }

  private static func commit(_ xid: UInt32) -> [UInt8] {
    Array("c".utf8) + Bytes.integer(xid) + [0] + Bytes.integer(UInt64(10))
      + Bytes.integer(UInt64(12)) + Bytes.integer(Int64(7))
  }

  private static func insert(_ part: UInt32, _ id: String) -> [UInt8] {
    let plain = Bytes.insert(1, [id])
    return [plain[0]] + Bytes.integer(part) + plain.dropFirst()
  }

  private static func effects(_ messages: [[UInt8]]) throws -> [Effect] {
    var streamed = StreamedTransactions()
    return try messages.map { try streamed.add($0[...]) }.filter { $0 != .nothing }
  }

  @Test("messages are stored until the commit, and others go on between the blocks")
  func stores() throws {
    let effects = try Self.effects([
      Self.start(5, isFirst: true), Self.insert(5, "a"), Bytes.origin, Self.stop,
      Bytes.begin(6, commit: 8), Self.start(7, isFirst: true), Self.insert(7, "b"), Self.stop,
      Self.start(5, isFirst: false), Self.insert(5, "c"), Self.stop, Self.commit(5),
      Self.abort(7, 7),
    ])
    #expect(
      effects == [
        .store(xid: 5, Bytes.insert(1, ["a"])), .decode(Bytes.begin(6, commit: 8)[...]),
        .store(xid: 7, Bytes.insert(1, ["b"])), .store(xid: 5, Bytes.insert(1, ["c"])),
        .commit(
          begin: .begin(xid: 5, commit: PostgresLSN(10), time: 7),
          commit: .commit(commit: PostgresLSN(10), end: PostgresLSN(12), time: 7)),
        .drop(xid: 7),
      ])
  }

  @Test("an aborted part goes with all behind it, and an unknown one with nothing")
  func aborts() throws {
    let effects = try Self.effects([
      Self.start(5, isFirst: true), Self.insert(5, "a"), Self.insert(9, "b"), Self.insert(8, "c"),
      Self.insert(9, "d"), Self.stop, Self.abort(5, 8), Self.abort(5, 9), Self.abort(5, 4),
      Self.start(5, isFirst: false), Self.insert(5, "e"), Self.insert(11, "f"), Self.stop,
      Self.abort(5, 11), Self.abort(6, 6),
    ])
    #expect(
      effects.filter { if case .store = $0 { false } else { true } } == [
        .cut(xid: 5, length: 2), .cut(xid: 5, length: 1), .cut(xid: 5, length: 2),
      ])
  }

  @Test(
    "blocks in an impossible order are errors",
    arguments: [
      [start(5, isFirst: false)], [stop], [commit(5)],
      [start(5, isFirst: true), start(6, isFirst: true)],
      [start(5, isFirst: true), commit(5)],
      [start(5, isFirst: true), stop, start(5, isFirst: true)],
      [start(5, isFirst: true), Bytes.begin(6, commit: 8)],
    ])
  func impossible(_ messages: [[UInt8]]) {
    #expect(throws: ReplicationFault.self) { try Self.effects(messages) }
  }

  @Test("a message of a block cut short anywhere is an error, and so is a byte behind it")
  func truncated() {
    for message in [Self.start(5, isFirst: true), Self.commit(5), Self.abort(5, 6)] {
      for length in message.indices {
        #expect(throws: ReplicationFault.self) { try Self.effects([Array(message[..<length])]) }
      }
      #expect(throws: ReplicationFault.self) { try Self.effects([message + [0]]) }
    }
    #expect(throws: ReplicationFault.self) {
      try Self.effects([Self.start(5, isFirst: true), Array("I".utf8) + [0, 0, 0]])
    }
  }
}
