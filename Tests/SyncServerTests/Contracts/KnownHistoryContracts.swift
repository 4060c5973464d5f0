import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let knownHistories = [
    StoreContract("a packet enters only the history that its sender knows") { under in
      try await under.withSpace { space in
        var (author, other) = (Author(1), Author(2))
        let first = author.packet(inserting: ["a", "b"])
        try await space.send(first)
        let anchor = try unwrap(try await space.page(after: nil).head.cursor.anchor, "no anchor")
        try await space.send(other.packet(inserting: ["c"]))
        let next = author.packet(inserting: ["d"])
        let lost: [(Cursor, ProblemCode)] = [
          (space.cursor(at: Cursor.Anchor(head: 9, operation: anchor.operation)), .cursorAhead),
          (space.cursor(at: Cursor.Anchor(head: 1, operation: anchor.operation)), .historyLost),
          (
            space.cursor(at: Cursor.Anchor(head: 2, operation: next.operations[0].id)), .historyLost
          ),
          (
            space.cursor(
              at: Cursor.Anchor(head: 2, operation: anchor.operation, historyHash: 1)), .historyLost
          ),
          (Cursor(epoch: Epoch(space.space.epoch.value ^ 1), applied: 2), .epochChanged),
        ]
        for (cursor, code) in lost {
          // Also a known packet: the sender has to receive the problem.
          for packet in [next, first] {
            try require(
              try await space.send(packet, knowing: cursor).problem?.code, is: code, "\(cursor)")
          }
        }
        try require(try await space.head(), is: 3, "the head after refusals")
        let known = space.cursor(at: anchor)
        try require(
          try await space.send(next, knowing: known).receipt?.sequences, is: 4...4, "the place")
        try require(
          try await space.send(first, knowing: known).receipt?.status, is: .duplicate, "again")
      }
    },
    StoreContract("a packet of another history does not affect the other packets of its batch") {
      under in
      try await under.withSpace { space in
        var (author, other) = (Author(1), Author(2))
        let stray = Cursor.Anchor(head: 1, operation: author.insert("x", [:]).id)
        var first = Author(3)
        try await space.send(first.packet(inserting: ["a"]))
        let packets = [
          IncomingPacket(
            author.packet(inserting: ["b"]), byteCount: 100, cursor: space.cursor(at: stray)),
          IncomingPacket(other.packet(inserting: ["c"]), byteCount: 100),
        ]
        let batch = try await space.store.ingest(
          packets, into: space.space.id, now: SpaceUnderTest.now)
        try require(batch.results[0].problem?.code, is: .historyLost, "the stray one")
        try require(batch.results[1].receipt?.sequences, is: 2...2, "the other one")
      }
    },
    StoreContract("an anchor before the retention horizon is accepted with any history") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]))
        let anchor = try unwrap(try await space.page(after: nil).head.cursor.anchor, "no anchor")
        try await space.send(author.packet(inserting: ["b"]))
        try await space.prune()
        let receipt = try await space.send(
          author.packet(inserting: ["c"]), knowing: space.cursor(at: anchor)
        ).receipt
        try require(receipt?.status, is: .applied, "a packet whose anchor is gone")
      }
    },
  ]
}

extension SpaceUnderTest {
  fileprivate func cursor(at anchor: Cursor.Anchor) -> Cursor {
    Cursor(epoch: space.epoch, applied: 0, anchor: anchor)
  }

  fileprivate func send(_ packet: Packet, knowing cursor: Cursor) async throws -> IngestResult {
    try await store.ingest(
      [IncomingPacket(packet, byteCount: 100, cursor: cursor)], into: space.id, now: Self.now
    ).results[0]
  }
}
