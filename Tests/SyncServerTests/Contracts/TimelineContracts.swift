import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let timelines = [
    StoreContract("each run of a server begins a timeline with the first operation that it adds") {
      under in
      var author = Author(1)
      var given: [Cursor.Anchor] = []
      var sent: Packet?
      for _ in 0..<3 {
        try await under.withSpace { space in
          // Present operations were written before: as long as none is added, the history is the
          // same.
          if let last = given.last, let sent {
            try require(try await space.newest(), is: last, "the anchor after a start")
            let receipt = try await space.receipt(for: sent)
            try require(receipt.timeline == nil, "a duplicate has a timeline")
            try require(try await space.newest(), is: last, "the anchor after a duplicate")
          }
          let first = try await space.receipt(for: author.packet(inserting: ["a\(given.count)"]))
          let anchor = try await space.newest()
          try require(anchor.timeline != nil, "the anchor has a timeline")
          try require(anchor.timeline, is: first.timeline, "the receipt's timeline")
          try require(!given.contains { $0.timeline == anchor.timeline }, "a timeline twice")
          let packet = author.packet(inserting: ["b\(given.count)"])
          let next = try await space.receipt(for: packet)
          sent = packet
          try require(next.timeline, is: anchor.timeline, "the timeline of what follows")
          given.append(try await space.newest())
        }
      }
    },
    StoreContract("pulls and packets find a place before the retention horizon by its timeline") {
      under in
      var author = Author(1)
      var given: [Cursor.Anchor] = []
      for run in 0..<3 {
        try await under.withSpace { space in
          for record in ["a", "b"] {
            try await space.send(author.packet(inserting: ["\(record)\(run)"]))
            given.append(try await space.newest())
          }
        }
      }
      try await under.withSpace { space in
        try await space.send(author.packet(inserting: ["c"]))
        try await space.prune()
        // Runs ended at 2 and at 4; the history of the third continues to 6.
        for (index, anchor) in given.enumerated() {
          let end = SequenceNumber(index / 2 + 1) * 2
          for head in anchor.head...6 {
            let known = anchor.moved(to: head)
            let lost = head > end
            try await space.expect(known, lost ? .lostAndExpired : .cursorExpired)
          }
          let nameless = Cursor.Anchor(
            head: 6, operation: anchor.operation, historyHash: anchor.historyHash, timeline: nil)
          try await space.expect(nameless, .cursorExpired)
          let unknown = Cursor.Anchor(
            head: anchor.head, operation: anchor.operation, historyHash: anchor.historyHash,
            timeline: Timeline(0x5EED))
          try await space.expect(unknown, .lostAndExpired)
        }
      }
    },
    StoreContract("nodes that write in turns begin one timeline each, and continue on the last one")
    { under in
      guard under.isShared else { return }
      let other = try await under.open(.standard)
      try await under.withSpace { space in
        let second = SpaceUnderTest(store: other, space: space.space)
        var author = Author(1)
        var timelines: [Timeline?] = []
        for turn in [space, second, space, second, second, space] {
          let packet = author.packet(inserting: ["r\(timelines.count)"])
          timelines.append(try await turn.receipt(for: packet).timeline)
        }
        try require(timelines[0] != timelines[1], "the second node has begun none")
        try require(timelines[2...].allSatisfy { $0 == timelines[1] }, "one more has begun")
        let last = try await space.newest()
        try require(last.timeline, is: timelines[1], "the timeline of pages")
      }
      await other.close()
    },
    StoreContract("a schema belongs to the timeline of its run") { under in
      var author = Author(1)
      var given: [Cursor.Anchor] = []
      try await under.withSpace { space in
        try await space.send(author.packet(inserting: ["a"]))
        given.append(try await space.newest())
      }
      try await under.withSpace { space in
        var schema = SpaceSchema.empty
        schema.tables["tasks"] = TableRules()
        _ = try await space.store.applySchema(
          schema, to: space.space.id, now: SpaceUnderTest.now, consent: SchemaConsent()
        ).get()
        given.append(try await space.newest())
        try await space.send(author.packet(inserting: ["b"]))
        given.append(try await space.newest())
      }
      try require(given[0].timeline != given[1].timeline, "the schema is of the run before")
      try require(given[1].timeline, is: given[2].timeline, "the timeline after the schema")
    },
  ]
}

extension Cursor.Anchor {
  fileprivate func moved(to head: SequenceNumber) -> Cursor.Anchor {
    Cursor.Anchor(head: head, operation: operation, historyHash: historyHash, timeline: timeline)
  }
}

extension SpaceUnderTest {
  fileprivate func newest() async throws -> Cursor.Anchor {
    try unwrap(try await page(after: nil).head.cursor.anchor, "no anchor")
  }

  /// Checks the response to a cursor at a pruned place. A packet is accepted unless its history is
  /// known to be another one.
  fileprivate func expect(_ anchor: Cursor.Anchor, _ code: ProblemCode) async throws {
    let cursor = Cursor(epoch: space.epoch, applied: anchor.head, anchor: anchor)
    let problem = await problem { _ = try await page(after: cursor) }
    try require(problem?.code, is: code, "a pull at \(anchor)")
    let digests = try await store.digests(in: space.id, DigestQuery(cursor: cursor))
    guard case .failure(let other) = digests else {
      throw ContractViolation(description: "digests at \(anchor)")
    }
    try require(other.code, is: code, "digests at \(anchor)")
    var author = Author(7)
    let packet = author.packet([author.update("c", ["n": 1])])
    let answer = try await store.ingest(
      [IncomingPacket(packet, byteCount: 100, cursor: cursor)], into: space.id, now: Self.now
    ).results[0]
    try require(
      answer.problem?.code, is: code == .lostAndExpired ? code : nil, "a packet at \(anchor)")
  }
}
