import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let historyHashes = [
    StoreContract("an operation at its old place behind other operations is another history") {
      under in
      try await under.withSpace { space in
        let other = try await space.another("other")
        var (first, second, again) = (Author(1), Author(2), Author(3))
        let packet = again.packet(inserting: ["x", "y"])
        try await space.send(first.packet(inserting: ["a", "b"]))
        try await other.send(second.packet(inserting: ["c", "d"]))
        for space in [space, other] {
          try require(try await space.receipt(for: packet).sequences, is: 3...4, "the places")
        }
        let given = try unwrap(try await space.page(after: nil).head.cursor.anchor, "no anchor")
        try require(given.operation, is: packet.tail, "the operation of the anchor")
        try await space.send(first.packet(inserting: ["e"]))
        try await other.send(second.packet(inserting: ["f"]))
        try require(try await space.problem(given), is: nil, "the anchor in its own history")
        try require(try await other.problem(given), is: .historyLost, "the anchor in another one")
        try await space.prune()
        let newest = try unwrap(try await space.page(after: nil).head.cursor.anchor, "no anchor")
        try require(try await space.problem(newest), is: nil, "the anchor at the retention horizon")
        let wrong = Cursor.Anchor(head: newest.head, operation: newest.operation, historyHash: 1)
        try require(
          try await space.problem(wrong), is: .historyLost,
          "a history hash at the retention horizon")
      }
    },
    StoreContract("the same operations with other stamps are another history") { under in
      try await under.withSpace { space in
        let other = try await space.another("other")
        // The author's clock is ahead, and this server's behind the other's.
        var author = Author(1)
        author.wall = SpaceUnderTest.now + 3_600_000
        let packet = author.packet(inserting: ["a", "b"])
        try await space.send(packet)
        try await other.send(packet, now: SpaceUnderTest.now + 7_200_000)
        let given = try unwrap(try await space.page(after: nil).head.cursor.anchor, "no anchor")
        let there = try unwrap(try await other.page(after: nil).head.cursor.anchor, "no anchor")
        try require(given.operation, is: there.operation, "the newest operation")
        try require(try await space.problem(given), is: nil, "the anchor in its own history")
        try require(try await other.problem(given), is: .historyLost, "the anchor in another one")
      }
    },
    StoreContract("pages and receipts report the history hash of all operations in their order") {
      under in
      try await under.withSpace { space in
        var (author, other) = (Author(1), Author(2))
        let packets = ["a", "b", "c"].map { author.packet(inserting: [$0, $0 + "2"]) }
        let foreign = other.packet(inserting: ["x"])
        var all = packets[0].operations + foreign.operations
        let first = try await space.receipt(for: packets[0])
        try require(first.historyHashBefore, is: HistoryHash.empty, "the history hash before all")
        try require(
          first.historyHash, is: historyHash(of: all.prefix(2)), "the history hash after two")
        try require(
          try await space.receipt(for: packets[2]).historyHash, is: nil, "of a buffered one")
        try require(
          try await space.receipt(for: foreign).historyHashBefore, is: first.historyHash,
          "before the third")
        let answer = try await space.send(packets[1])
        all += packets[1].operations
        try require(
          answer.receipt?.historyHash, is: historyHash(of: all), "the history hash after five")
        try require(
          answer.released.map(\.historyHashBefore), is: [answer.receipt?.historyHash],
          "before the released")
        all += packets[2].operations
        try require(
          answer.released.map(\.historyHash), is: [historyHash(of: all)], "after the released")
        try require(
          try await space.newestHistoryHash(), is: historyHash(of: all), "the page's history hash")
        let again = try await space.receipt(for: packets[0])
        try require(again.status, is: .duplicate, "a packet sent again")
        try require(
          again.historyHash == nil && again.historyHashBefore == nil,
          "a duplicate has history hashes")
        var copy = Author(3)
        let partly = copy.packet([packets[2].operations[1], copy.insert("d", [:])])
        let receipt = try await space.receipt(for: partly)
        try require(receipt.sequences, is: 7...8, "the places of a packet that is partly known")
        try require(
          receipt.historyHash == nil && receipt.historyHashBefore == nil, "it has history hashes")
        all.append(partly.operations[1])
        try require(
          try await space.newestHistoryHash(), is: historyHash(of: all), "the history hash at last")
      }
    },
    StoreContract(
      "each operation is known by its own history hash, and so is a batch with its effects"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        var anchors: [Cursor.Anchor] = []
        try await space.send(author.packet(inserting: ["a", "b"]))
        let batch = try author.batch(where: "title > ''", set: ["n": 1])
        let insert = author.insert("c", [:])
        try await space.send(author.packet([batch, insert]))
        anchors.append(try unwrap(try await space.page(after: nil).head.cursor.anchor, "none"))
        try require(anchors[0].head, is: 6, "the head")
        // A batch sent alone has the history hash of the other one.
        let other = try await space.another("other")
        var (again, third) = (Author(1), Author(3))
        try await other.send(again.packet(inserting: ["a", "b"]))
        for operation in [batch, insert] {
          try await other.send(third.packet([operation]))
          let anchor = try unwrap(try await other.page(after: nil).head.cursor.anchor, "none")
          try require(try await space.problem(anchor), is: nil, "the anchor \(anchor)")
          let historyHash = try unwrap(anchor.historyHash, "no history hash")
          let wrong = Cursor.Anchor(
            head: anchor.head, operation: anchor.operation, historyHash: historyHash ^ 1)
          try require(try await space.problem(wrong), is: .historyLost, "another history hash")
          anchors.append(anchor)
        }
        try require(anchors[1].head, is: 5, "the place of the batch's last effect")
        try require(anchors[2].head, is: anchors[0].head, "the place of all")
        try require(anchors[2].historyHash, is: anchors[0].historyHash, "the history hash of all")
        let own = HistoryHash.appending(
          batch.id, at: batch.time, base: batch.base,
          to: historyHash(of: ["a", "b"], by: Author(1)))
        let alone = Cursor.Anchor(head: 3, operation: batch.id, historyHash: own)
        try require(try await space.problem(alone), is: nil, "the history hash of the batch itself")
      }
    },
  ]

  private static func historyHash(of operations: some Sequence<SyncOperation>) -> UInt64 {
    operations.reduce(HistoryHash.empty) {
      HistoryHash.appending($1.id, at: $1.time, base: $1.base, to: $0)
    }
  }

  private static func historyHash(of records: [String], by author: Author) -> UInt64 {
    var author = author
    return historyHash(of: author.packet(inserting: records).operations)
  }
}

extension SpaceUnderTest {
  /// Returns a second space in the same store.
  fileprivate func another(_ name: String) async throws -> SpaceUnderTest {
    let name = try unwrap(SpaceName(name), "no name")
    return SpaceUnderTest(store: store, space: try await store.createSpace(name))
  }

  fileprivate func newestHistoryHash() async throws -> UInt64? {
    try await page(after: nil).head.cursor.anchor?.historyHash
  }

  /// Returns the code with which pulls and digests alike refuse a cursor with the anchor; `nil` if
  /// they serve it.
  fileprivate func problem(_ anchor: Cursor.Anchor) async throws -> ProblemCode? {
    let cursor = Cursor(epoch: space.epoch, applied: anchor.head, anchor: anchor)
    let page = try await store.changes(
      in: space.id, PullRequest(cursor: cursor, limit: 9, byteLimit: 9_999, device: nil),
      now: Self.now)
    let digests = try await store.digests(in: space.id, DigestQuery(cursor: cursor))
    switch (page, digests) {
    case (.success, .success): return nil
    case (.failure(let problem), .failure(let other)):
      try require(problem.code, is: other.code, "the problem of digests")
      return problem.code
    default: throw ContractViolation(description: "pulls and digests differ over \(anchor)")
    }
  }
}
