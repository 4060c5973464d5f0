import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let pulling = [
    StoreContract("pages with edits between them lose no column") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(
          author.packet((0..<10).map { author.insert("r\($0)", ["a": 0, "b": 0]) }))
        var reader = try await space.everything()
        // One column before the list begins, another one while it is under way.
        try await space.send(
          author.packet((0..<10).map { author.update("r\($0)", ["a": 1]) }))
        for place in 0..<10 where place.isMultiple(of: 2) {
          _ = try await reader.pullPage(from: space, limit: 2)
          try await space.send(author.packet([author.update("r\(9 - place)", ["b": 1])]))
          try await space.send(author.packet([author.update("r\(place)", ["b": 1])]))
        }
        try await reader.pull(from: space, limit: 2)
        let wanted = try await space.everything()
        try require(reader.records, is: wanted.records, "the records")
        try require(
          reader.records.values.allSatisfy { $0["a"] == 1 && $0["b"] == 1 }, "a column is lost")
      }
    },
    StoreContract("a list contains only the records that changed after the cursor, each once") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(
          author.packet([author.insert("a", ["x": 1, "y": 1]), author.insert("b", ["x": 1])]))
        let cursor = try await space.page(after: nil).head.cursor
        for value in Int64(2)..<6 {
          try await space.send(author.packet([author.update("a", ["x": .integer(value)])]))
        }
        let (head, changes) = try await space.page(after: cursor)
        try require(changes.map(\.key), is: [.task("a")], "the records listed")
        try require(changes[0].state.columns.map(\.name), is: ["x"], "the columns listed")
        try require(changes[0].state.inserted == nil, "an update comes as an insert")
        try require(head.head, is: 6, "the head")
        try require(try await space.page(after: head.cursor).changes, is: [], "the next list")
      }
    },
    StoreContract("updates of records without an insert do not end a list early") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let ghosts = (0..<10).map { author.update("ghost\($0)", ["x": 1]) }
        try await space.send(author.packet(ghosts + [author.insert("real", ["x": 1])]))
        for limit in [1, 2, 5, 10, 11, 100] {
          var reader = Reader()
          try await reader.pull(from: space, limit: limit)
          try require(
            reader.records, is: [.task("real"): ["x": 1]], "records by pages of \(limit)")
        }
      }
    },
    StoreContract("a page ends at its limit of bytes and contains at least one change") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let large = Value.text(String(repeating: "x", count: 10_000))
        try await space.send(
          author.packet((0..<20).map { author.insert("r\($0)", ["x": large]) }))
        var cursor: Cursor?
        var pages = 0
        var records = Set<RecordKey>()
        while true {
          let (head, changes) = try await space.page(after: cursor, byteLimit: 25_000)
          try require((1...4).contains(changes.count), "\(changes.count) changes in a page")
          pages += 1
          records.formUnion(changes.map(\.key))
          cursor = head.cursor
          if !head.more { break }
        }
        try require(records.count, is: 20, "records in \(pages) pages")
        let (_, changes) = try await space.page(after: nil, byteLimit: 1)
        try require(changes.count, is: 1, "changes in the smallest page")
      }
    },
    StoreContract(
      "large records between small ones come in their order, within the bytes of a page"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let (small, large) = (Value.text("x"), Value.text(String(repeating: "x", count: 2_000)))
        // The first and the last ones are small, and some large ones follow each other.
        let isLarge = (0..<40).map { $0 > 9 && $0 < 31 && $0 % 4 < 2 }
        try await space.send(
          author.packet(
            isLarge.enumerated().map { author.insert("r\($0)", ["x": $1 ? large : small]) }))
        for limit in [1, 7, 100] {
          var cursor: Cursor?
          var keys: [RecordKey] = []
          while true {
            let (head, changes) = try await space.page(
              after: cursor, limit: limit, byteLimit: 5_000)
            try require((1...limit).contains(changes.count), "\(changes.count) changes in a page")
            keys += changes.map(\.key)
            cursor = head.cursor
            if !head.more { break }
          }
          try require(keys, is: (0..<40).map { .task("r\($0)") }, "records by pages of \(limit)")
        }
      }
    },
    StoreContract("deletes and re-inserts reach readers that were away") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(
          author.packet([author.insert("a", ["x": 1, "y": 1]), author.insert("b", ["x": 1])]))
        let early = try await space.everything()
        try await space.send(author.packet([author.delete("a"), author.delete("b")]))
        let middle = try await space.everything()
        try require(middle.records.isEmpty, "a deleted record is listed")
        try await space.send(author.packet([author.insert("a", ["x": 2])]))
        for var reader in [early, middle, Reader()] {
          try await reader.pull(from: space)
          try require(reader.records, is: [.task("a"): ["x": 2]], "the records")
        }
      }
    },
    StoreContract("a concurrent delete and edit end in the same state in both orders") { under in
      try await under.withSpace { space in
        var first = Author(1)
        var second = Author(2)
        try await space.send(first.packet([first.insert("a", ["x": 1])]))
        var reader = try await space.everything()
        (first.base, second.base) = (1, 1)
        (first.wall, second.wall) = (first.wall + 10, second.wall + 5)
        let delete = first.packet([first.delete("a")])
        let edit = second.packet([second.update("a", ["x": 2])])
        try await space.send(delete)
        let receipt = try await space.receipt(for: edit)
        try require(receipt.outcomes.map(\.isOverruled), is: [true], "the older edit's outcome")
        try await reader.pull(from: space)
        try require(reader.records.isEmpty, "the record is still there")
      }
    },
    StoreContract("an update of a record becomes visible with the record's later insert") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet([author.update("a", ["x": 1])]))
        var reader = try await space.everything()
        try require(reader.records.isEmpty, "a ghost is listed")
        var other = Author(2)
        other.wall -= 10
        try await space.send(other.packet([other.insert("a", ["x": 0, "y": 0])]))
        try await reader.pull(from: space)
        try require(reader.records, is: [.task("a"): ["x": 1, "y": 0]], "the record")
      }
    },
    StoreContract("operations without columns on absent records change nothing") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let empty = ["a", "b", "c"].map { author.update($0, [:]) }
        try require(try await space.send(author.packet(empty)).status, is: .applied, "the packet")
        let again = ["a", "d"].map { author.update($0, [:]) }
        try require(try await space.send(author.packet(again)).status, is: .applied, "the next")
        try await space.send(author.packet([author.insert("a", [:]), author.delete("e")]))
        try require(try await space.everything().records, is: [.task("a"): [:]], "the records")
        try require(try await space.head(), is: 7, "the head")
      }
    },
    StoreContract("a cursor of another epoch or ahead of the head is refused") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]))
        func problem(_ cursor: Cursor) async throws -> ProblemCode? {
          let request = PullRequest(cursor: cursor, limit: 10, byteLimit: 1_000, device: nil)
          let answer = try await space.store.changes(
            in: space.space.id, request, now: SpaceUnderTest.now)
          if case .failure(let problem) = answer { return problem.code }
          return nil
        }
        let epoch = space.space.epoch
        let other = Epoch(epoch.value ^ 1)
        try require(
          try await problem(Cursor(epoch: other, applied: 0)), is: .epochChanged, "an epoch")
        try require(
          try await problem(Cursor(epoch: epoch, applied: 2)), is: .cursorAhead, "a cursor")
        try require(
          try await problem(Cursor(epoch: epoch, applied: 1, received: 2)), is: .cursorAhead,
          "a cursor within a list")
        try require(try await problem(Cursor(epoch: epoch, applied: 1)), is: nil, "the head")
      }
    },
    StoreContract("a cursor's anchor is known in its own history and in no other") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let packet = author.packet(inserting: ["a", "b"])
        try await space.send(packet)
        let answer = try await space.store.changes(
          in: space.space.id, PullRequest(cursor: nil, limit: 1, byteLimit: 1_000, device: nil),
          now: SpaceUnderTest.now)
        let given = try PageReader.head(of: answer.get()).cursor
        let historyHash = packet.operations.reduce(HistoryHash.empty) {
          HistoryHash.appending($1.id, at: $1.time, base: $1.base, to: $0)
        }
        let newest = Cursor.Anchor(
          head: 2, operation: packet.operations[1].id, historyHash: historyHash,
          timeline: given.anchor?.timeline)
        try require(given.anchor, is: newest, "the anchor of a list that goes on")
        func problem(_ anchor: Cursor.Anchor) async throws -> ProblemCode? {
          let cursor = Cursor(epoch: given.epoch, applied: 0, received: 1, anchor: anchor)
          let answer = try await space.store.changes(
            in: space.space.id,
            PullRequest(cursor: cursor, limit: 10, byteLimit: 1_000, device: nil),
            now: SpaceUnderTest.now)
          if case .failure(let problem) = answer { return problem.code }
          return nil
        }
        try require(try await problem(newest), is: nil, "the anchor that was given")
        let moved = Cursor.Anchor(head: 1, operation: packet.operations[1].id)
        try require(try await problem(moved), is: .historyLost, "an operation in another place")
        let other = author.packet(inserting: ["c"]).operations[0].id
        try require(
          try await problem(Cursor.Anchor(head: 2, operation: other)), is: .historyLost,
          "an operation that is not there")
        try require(
          try await problem(Cursor.Anchor(head: 3, operation: other)), is: .cursorAhead,
          "a head that was never reached")
      }
    },
    StoreContract("a page reports how far a device's own packets are applied") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        let second = author.packet(inserting: ["b"])
        let third = author.packet(inserting: ["c"])
        let device = author.device
        try require(try await space.appliedTail(of: device), is: nil, "the tail of a new device")
        try await space.send(second)
        try require(
          try await space.appliedTail(of: device), is: nil, "the tail while its packet waits")
        try await space.send(first)
        try require(
          try await space.appliedTail(of: device), is: second.tail, "the tail after the release")
        try await space.send(third)
        try require(try await space.appliedTail(of: device), is: third.tail, "the tail")
        try require(try await space.appliedTail(of: nil), is: nil, "the tail of no device")
      }
    },
  ]
}
