import FerryProtocol
import SyncServer

extension StoreContract {
  static let historyPrints = [
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
        let old = Cursor.Anchor(head: given.head, operation: given.operation)
        try require(try await other.problem(old), is: nil, "a cursor that has no print")
        try await space.prune()
        let newest = try unwrap(try await space.page(after: nil).head.cursor.anchor, "no anchor")
        try require(try await space.problem(newest), is: nil, "the anchor at the floor")
        let wrong = Cursor.Anchor(head: newest.head, operation: newest.operation, print: 1)
        try require(try await space.problem(wrong), is: .historyLost, "a print at the floor")
      }
    },
    StoreContract("the same operations with other stamps are another history") { under in
      try await under.withSpace { space in
        let other = try await space.another("other")
        // The author's clock is ahead, and this server's behind that of the other.
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
        try require(first.printBefore, is: HistoryPrint.empty, "the print before all")
        try require(first.print, is: print(of: all.prefix(2)), "the print after two")
        try require(try await space.receipt(for: packets[2]).print, is: nil, "of a buffered one")
        try require(
          try await space.receipt(for: foreign).printBefore, is: first.print, "before the third")
        let answer = try await space.send(packets[1])
        all += packets[1].operations
        try require(answer.receipt?.print, is: print(of: all), "the print after five")
        try require(
          answer.released.map(\.printBefore), is: [answer.receipt?.print], "before the released")
        all += packets[2].operations
        try require(answer.released.map(\.print), is: [print(of: all)], "after the released")
        try require(try await space.newestPrint(), is: print(of: all), "the page's print")
        let again = try await space.receipt(for: packets[0])
        try require(again.status, is: .duplicate, "a packet sent again")
        try require(again.print == nil && again.printBefore == nil, "a duplicate has prints")
        var copy = Author(3)
        let partly = copy.packet([packets[2].operations[1], copy.insert("d", [:])])
        let receipt = try await space.receipt(for: partly)
        try require(receipt.sequences, is: 7...8, "the places of a packet that is partly known")
        try require(receipt.print == nil && receipt.printBefore == nil, "it has prints")
        all.append(partly.operations[1])
        try require(try await space.newestPrint(), is: print(of: all), "the print at last")
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
        // A batch that is sent alone has the history hash of the other one.
        let other = try await space.another("other")
        var (again, third) = (Author(1), Author(3))
        try await other.send(again.packet(inserting: ["a", "b"]))
        for operation in [batch, insert] {
          try await other.send(third.packet([operation]))
          let anchor = try unwrap(try await other.page(after: nil).head.cursor.anchor, "none")
          try require(try await space.problem(anchor), is: nil, "the anchor \(anchor)")
          let print = try unwrap(anchor.print, "no print")
          let wrong = Cursor.Anchor(
            head: anchor.head, operation: anchor.operation, print: print ^ 1)
          try require(try await space.problem(wrong), is: .historyLost, "another print")
          anchors.append(anchor)
        }
        try require(anchors[1].head, is: 5, "the place of the batch's last effect")
        try require(anchors[2].head, is: anchors[0].head, "the place of all")
        try require(anchors[2].print, is: anchors[0].print, "the print of all")
        let own = HistoryPrint.appending(
          batch.id, at: batch.time, base: batch.base, to: print(of: ["a", "b"], by: Author(1)))
        let alone = Cursor.Anchor(head: 3, operation: batch.id, print: own)
        try require(try await space.problem(alone), is: nil, "the print of the batch itself")
      }
    },
  ]

  private static func print(of operations: some Sequence<Operation>) -> UInt64 {
    operations.reduce(HistoryPrint.empty) {
      HistoryPrint.appending($1.id, at: $1.time, base: $1.base, to: $0)
    }
  }

  private static func print(of records: [String], by author: Author) -> UInt64 {
    var author = author
    return print(of: author.packet(inserting: records).operations)
  }
}

extension SpaceUnderTest {
  /// Returns a second space in the same store.
  fileprivate func another(_ name: String) async throws -> SpaceUnderTest {
    let name = try unwrap(SpaceName(name), "no name")
    return SpaceUnderTest(store: store, space: try await store.createSpace(name))
  }

  fileprivate func newestPrint() async throws -> UInt64? {
    try await page(after: nil).head.cursor.anchor?.print
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
