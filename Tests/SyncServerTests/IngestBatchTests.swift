import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// The effects of a batch operation in the history, by the machine alone.
@Suite(.hangLimit)
struct IngestBatchTests {
  @Test("each sequence of a batch has its own history entry with its own identifier")
  func rows() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    _ = space.send(maker.packet("b", "a"))
    let batch = try maker.batch(where: "v > ''", [Column("w", 1)])
    let receipt = try #require(space.send(maker.packet([batch])).receipt)
    #expect(receipt.sequences == 3...5)
    let rows = space.rows.suffix(3)
    #expect(rows.map(\.sequence) == [3, 4, 5])
    #expect(rows.map(\.kind) == [.batch, .update, .update])
    #expect(rows.map(\.key.record) == ["", "a", "b"])
    #expect(rows.first?.id == batch.id)
    #expect(Set(rows.map(\.id)).count == 3)
    #expect(rows.allSatisfy { $0.time == batch.time && $0.device == maker.device })
    for row in rows.dropFirst() {
      #expect(row.id.value.high >> 12 & 0xF == 8 && row.id.value.low >> 62 == 2)
      #expect(row.id.value.high >> 16 == batch.id.value.high >> 16)
    }
    #expect(space.chains[maker.device]?.operations == 5)
    #expect(space.state.newest == rows.last?.id)
    var historyHash = HistoryHash.empty
    for row in space.rows {
      historyHash = HistoryHash.appending(row.id, at: row.time, base: row.base, to: historyHash)
      #expect(row.historyHash == historyHash)
    }
    #expect(space.state.historyHash == historyHash)
    let vain = try maker.batch(.delete, where: "false")
    _ = space.send(maker.packet([vain]))
    #expect(space.state.newest == vain.id)
    #expect(
      space.state.historyHash
        == HistoryHash.appending(vain.id, at: vain.time, base: vain.base, to: historyHash))
  }

  @Test("a batch's history entry contains its effect, its predicate and its columns")
  func stored() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    let batches = [
      try maker.batch(where: "id = 'x'", [Column("w", 1)]),
      try maker.batch(.delete, where: "n < 0"),
    ]
    _ = space.send(maker.packet(batches))
    for (row, batch) in zip(space.rows, batches) {
      let data = try #require(row.data)
      let kept = try decode(data) { (reader) throws(MalformedMessage) in
        try Batch.stored(from: &reader, limits: .standard)
      }
      #expect(kept.batch == batch.batch)
      #expect(kept.columns == batch.columns)
    }
  }

  @Test("the identifiers of a batch's effects are the same at each application")
  func deterministic() throws {
    func ids() throws -> [OperationID] {
      var maker = PacketMaker(1)
      var space = IngestSpace()
      _ = space.send(maker.packet("a", "b", "c"))
      _ = space.send(maker.packet([try maker.batch(.delete, where: "true")]))
      return space.rows.map(\.id)
    }
    #expect(try ids() == ids())
  }

  @Test("a clamped batch writes all its records at one time")
  func clamped() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    _ = space.send(maker.packet("a", "b"))
    maker.milliseconds = space.now + 1_000_000_000
    _ = space.send(maker.packet([try maker.batch(where: "true", [Column("w", 1)])]))
    let times = Set(space.rows.suffix(3).map(\.time))
    #expect(times.count == 1)
    #expect(times.first?.milliseconds == space.now + space.limits.clockSkewMax)
  }

  @Test(
    "a buffered packet is dropped and then refused if its batch matches too much")
  func excessiveBuffered() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.limits.batchRecords = 1
    var other = PacketMaker(2)
    _ = space.send(other.packet("a", "b"))
    let first = maker.packet("x")
    let second = maker.packet([try maker.batch(where: "true", [Column("w", 1)])])
    let third = maker.packet("c")
    #expect(space.send(second).word == "buffered")
    #expect(space.send(third).word == "buffered")
    let answer = space.send(first)
    #expect(answer.word == "applied")
    #expect(answer.released.isEmpty)
    #expect(space.send(second).word == "operation_refused")
    #expect(space.rows.map(\.key.record) == ["a", "b", "x"])
    #expect(space.records.count == 3)
  }

  @Test("an effect that violates the schema is reported for the batch, which leaves nothing")
  func schema() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.schema = try SpaceSchema(
      decoding: Array(
        #"{"tables":{"t":{"columns":{"n":{"type":"integer"}},"unique":[["email"]]}}}"#.utf8),
      limits: .standard)
    _ = space.send(maker.packet("a", "b"))
    let state = space.state
    let batches = [
      try maker.batch(where: "true", [Column("n", "one")]),
      try maker.batch(where: "true", [Column("email", "x")]),
    ]
    let codes: [RefusalCode] = [.schemaViolation, .uniqueTaken]
    for (batch, code) in zip(batches, codes) {
      var copy = maker
      let refusals = space.send(copy.packet([batch])).refusals
      #expect(refusals.map(\.operation) == [batch.id])
      #expect(refusals.map(\.code) == [code])
    }
    #expect(space.state == state)
    #expect(space.rows.count == 2)
    let one = try maker.batch(where: "id = 'a'", [Column("email", "x"), Column("n", 1)])
    #expect(space.send(maker.packet([one])).word == "applied")
    let free = try maker.batch(where: "email = 'x'", [Column("email", "y")])
    #expect(space.send(maker.packet([free])).word == "applied")
    let other = try maker.batch(where: "id = 'b'", [Column("email", "x")])
    #expect(space.send(maker.packet([other])).word == "applied")
  }

  @Test("a batch's matches are bounded in bytes as well")
  func bytes() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.limits.batchBytes = 30
    _ = space.send(maker.packet("a"))
    #expect(
      space.send(maker.packet([try maker.batch(where: "true", [Column("w", 1)])])).word
        == "operation_refused")
  }

  /// Returns a space with so many records, made by another device than ``PacketMaker`` 1.
  static func space(records: Int) -> IngestSpace {
    var space = IngestSpace()
    var other = PacketMaker(9)
    let names = (0..<records).map { "r\(10_000 + $0)" }
    let inserts = names.map { other.operation(.insert, $0, [Column("v", .text($0))]) }
    _ = space.send(other.packet(inserts))
    return space
  }

  @Test("a packet is refused if its batches cost too much, with their names; others are applied")
  func tooExpensive() throws {
    var space = Self.space(records: 100)
    space.limits.batchEvaluations = 100 * (BatchMatcher.recordCost + 2 * 2) - 1
    var (hostile, good) = (PacketMaker(1), PacketMaker(2))
    let batches = try (0..<2).map { _ in try hostile.batch(where: "v = 'x'", [Column("w", 1)]) }
    let answers = space.send([
      hostile.packet(batches), good.packet([try good.batch(where: "v = 'x'", [Column("w", 1)])]),
    ])
    #expect(answers[0].refusals.map(\.operation) == batches.map(\.id))
    #expect(Set(answers[0].refusals.map(\.code)) == [.batchTooExpensive])
    #expect(answers[1].word == "applied")
    space.limits.batchEvaluations += 1
    var again = PacketMaker(3)
    let same = try (0..<2).map { _ in try again.batch(where: "v = 'x'", [Column("w", 1)]) }
    #expect(space.send(again.packet(same)).word == "applied", "just what is allowed")
  }

  @Test("long values cost as much as their comparison")
  func longValues() throws {
    var space = Self.space(records: 10)
    space.limits.batchEvaluations = 1_000
    var maker = PacketMaker(1)
    let text = String(repeating: "x", count: 64 * 100)
    let batch = try maker.batch(where: "v = '\(text)'", [Column("w", 1)])
    #expect(space.send(maker.packet([batch])).refusals.map(\.code) == [.batchTooExpensive])
  }

  @Test("records that the packet itself has changed are counted in the cost as well")
  func touched() throws {
    var space = IngestSpace()
    space.limits.batchEvaluations = 4 * 100 * 3
    var maker = PacketMaker(1)
    let inserts = (0..<100).map { maker.operation(.insert, "r\($0)", [Column("v", 1)]) }
    let first = try maker.batch(where: "v = 2", [Column("w", 1)])
    let second = try maker.batch(where: "v = 3", [Column("w", 1)])
    let refusals = space.send(maker.packet(inserts + [first, second])).refusals
    #expect(refusals.map(\.operation) == [second.id])
    #expect(refusals.map(\.code) == [.batchTooExpensive])
    #expect(space.rows.isEmpty)
  }

  @Test("a table that its author must not write is refused before anything is evaluated")
  func checkedBefore() throws {
    var space = Self.space(records: 10)
    space.schema = try SpaceSchema(
      decoding: Array(#"{"tables":{"t":{"write":"admin"}}}"#.utf8), limits: .standard)
    var maker = PacketMaker(1)
    let batch = try maker.batch(where: "true", [Column("w", 1)])
    #expect(space.send(maker.packet([batch])).refusals.map(\.code) == [.forbiddenTable])
    #expect(space.recordsShown == 0)
  }

  @Test("records that a predicate names by their keys are looked up, and no others")
  func keys() throws {
    var space = Self.space(records: 50)
    var maker = PacketMaker(1)
    let batches = try [
      maker.batch(where: "id = 'r10007'", [Column("w", 1)]),
      maker.batch(
        where: "id in ('r10001', 'r10002', 'absent') and v <> 'r10002'", [Column("w", 2)]),
      maker.batch(where: "id = 'r10003' or id = 'r10004'", [Column("w", 3)]),
    ]
    let receipt = try #require(space.send(maker.packet(batches)).receipt)
    #expect(receipt.outcomes.map(\.records) == [1, 1, 2])
    #expect(space.recordsShown == 6)
  }

  @Test("a search ends when its packet matches too much, or costs too much")
  func endsEarly() throws {
    var space = Self.space(records: 5_000)
    space.limits.batchRecords = 10
    var maker = PacketMaker(1)
    let all = try maker.batch(where: "true", [Column("w", 1)])
    #expect(space.send(maker.packet([all])).refusals.map(\.code) == [.invalidPredicate])
    #expect(space.recordsShown <= 2_000, "no more than the slice under way")
    space.limits.batchEvaluations = 100
    let before = space.recordsShown
    var other = PacketMaker(2)
    let vain = try other.batch(where: "v = 'x'", [Column("w", 1)])
    #expect(space.send(other.packet([vain])).refusals.map(\.code) == [.batchTooExpensive])
    #expect(space.recordsShown - before <= 2_000)
  }

  @Test("a search in several slices finds every match")
  func slices() throws {
    var space = Self.space(records: 4_500)
    var maker = PacketMaker(1)
    let batch = try maker.batch(where: "v >= 'r11000' and v < 'r14000'", [Column("w", 1)])
    let receipt = try #require(space.send(maker.packet([batch])).receipt)
    #expect(receipt.outcomes.map(\.records) == [3_000])
    #expect(space.recordsShown == 4_500)
  }
}
