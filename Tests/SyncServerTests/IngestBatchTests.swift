import FerryProtocol
import SyncServer
import TestSupport
import Testing

/// What a batch operation becomes in the history, by the machine alone.
@Suite(.hangLimit)
struct IngestBatchTests {
  @Test("each sequence of a batch has its own entry of the history, with an id of its own")
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
    var print = HistoryPrint.empty
    for row in space.rows {
      print = HistoryPrint.appending(row.id, to: print)
      #expect(row.print == print)
    }
    #expect(space.state.print == print)
    let vain = try maker.batch(.delete, where: "false")
    _ = space.send(maker.packet([vain]))
    #expect(space.state.newest == vain.id)
    #expect(space.state.print == HistoryPrint.appending(vain.id, to: print))
  }

  @Test("a batch's entry says what it was: its effect, its predicate and its columns")
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
        try reader.keptBatch(limits: .standard)
      }
      #expect(kept.batch == batch.batch)
      #expect(kept.columns == batch.columns)
    }
  }

  @Test("the ids of a batch's effects are the same whenever it is applied")
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

  @Test("a parked packet whose batch matches too much is dropped, and refused when it comes again")
  func excessiveParked() throws {
    var maker = PacketMaker(1)
    var space = IngestSpace()
    space.limits.batchRecords = 1
    var other = PacketMaker(2)
    _ = space.send(other.packet("a", "b"))
    let first = maker.packet("x")
    let second = maker.packet([try maker.batch(where: "true", [Column("w", 1)])])
    let third = maker.packet("c")
    #expect(space.send(second).word == "parked")
    #expect(space.send(third).word == "parked")
    let answer = space.send(first)
    #expect(answer.word == "applied")
    #expect(answer.released.isEmpty)
    #expect(space.send(second).word == "operation_refused")
    #expect(space.rows.map(\.key.record) == ["a", "b", "x"])
    #expect(space.records.count == 3)
  }

  @Test("what an effect breaks of the space's schema is told of the batch, and nothing remains")
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
    space.limits.batchBytes = 100
    _ = space.send(maker.packet("a"))
    #expect(
      space.send(maker.packet([try maker.batch(where: "true", [Column("w", 1)])])).word
        == "operation_refused")
  }
}
