import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let values = [
    StoreContract("every value is read back unchanged") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let columns: [Name: Value] = [
          "max": .integer(.max), "min": .integer(.min), "exact": .integer(1 << 53),
          "above": .integer((1 << 53) + 1), "real": .real(1), "tiny": .real(.leastNonzeroMagnitude),
          "negative": .real(-0.0), "infinite": .real(.infinity), "null": .null,
          "empty": .text(""), "zero": .text("a\u{0}b"), "quotes": .text("\"\\\n\u{1F}\u{7F}"),
          "emoji": .text("👩‍👩‍👧‍👦 e\u{301} é"), "blob": .blob([0, 255, 0, 1]), "noBlob": .blob([]),
          "name with \"quotes\" and é": .integer(1),
        ]
        let records = [
          "plain", "with \"quotes\"\n", "👩‍👩‍👧‍👦", "e\u{301}", "é", String(repeating: "k", count: 512),
        ]
        let packet = author.packet(records.map { author.insert($0, columns) })
        try await space.send(packet)
        let reader = try await space.everything()
        try require(reader.records.count, is: records.count, "records")
        for record in records {
          let found = try unwrap(reader.records[.task(record)], "\(record) is not there")
          for (name, value) in columns {
            try require(found[name], is: value, "column \(name) of \(record)")
          }
        }
        try await space.send(author.packet(records.map { author.update($0, ["max": 0]) }))
        let later = try await space.everything().records.values
        try require(later.allSatisfy { $0["max"] == 0 && $0["zero"] == "a\u{0}b" }, "an update")
      }
    },
    StoreContract("values survive buffering, and conflicts list them unchanged") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let value = Value.text("\u{0}👋\u{10FFFF}")
        let first = author.packet([author.insert("a", ["x": .integer(.max), "y": value])])
        let second = author.packet([author.update("a", ["y": .blob([1, 0, 2])])])
        try await space.send(second)
        try await space.send(first)
        var other = Author(2)
        other.wall -= 10
        let late = other.packet([other.update("a", ["x": value, "y": value])])
        let answer = try await space.receipt(for: late)
        let again = try await space.receipt(for: late)
        try require(answer.outcomes[0].conflicts.map(\.lost), is: [value, value], "what lost")
        try require(again.outcomes, is: answer.outcomes, "the outcomes, read again")
        let reader = try await space.everything()
        try require(
          reader.records[.task("a")], is: ["x": .integer(.max), "y": .blob([1, 0, 2])], "values")
      }
    },
    StoreContract("a packet of the largest allowed values is stored and listed") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let large = Value.blob([UInt8](repeating: 0xA5, count: 1 << 20))
        try await space.send(
          author.packet([author.insert("a", ["w": large, "x": large, "y": large, "z": large])]))
        let reader = try await space.everything()
        try require(reader.records[.task("a")]?["z"], is: large, "the value")
      }
    },
    StoreContract("equal record identifiers in different tables or spaces are different records") {
      under in
      try await under.withSpace { space in
        let name = SpaceName.name("other")
        let other = SpaceUnderTest(
          store: space.store, space: try await space.store.createSpace(name))
        var author = Author(1)
        let operations = ["t1", "t2"].map {
          author.operation(.insert, "same", [Column("x", .text($0))], table: $0)
        }
        let packet = author.packet(operations)
        try await space.send(packet)
        try require(try await space.everything().records.count, is: 2, "records")
        try require(try await other.everything().records.isEmpty, "a record in another space")
        try require(try await other.send(packet).status, is: .applied, "the packet elsewhere")
      }
    },
  ]

  static let clocks = [
    StoreContract("a timestamp from the far future is clamped, and later timestamps stay later") {
      under in
      try await under.withSpace { space in
        let limit = SpaceUnderTest.now + Limits.standard.clockSkewMax
        var ahead = Author(1)
        ahead.wall += 365 * 86_400_000
        try await space.send(ahead.packet([ahead.insert("a", ["x": 1])]))
        try await space.send(
          ahead.packet([ahead.update("a", ["x": 2]), ahead.update("a", ["x": 3])]))
        let (_, changes) = try await space.page(after: nil)
        let column = try unwrap(changes.first?.state.columns.first, "the record is not there")
        try require(column.value, is: 3, "the last write")
        try require(column.stamp.time.milliseconds, is: limit, "the clamped time")
        // An author who has seen the clamped time, and writes after it, wins.
        var other = Author(2)
        other.base = 3
        other.wall = limit
        _ = other.delete("so that its clock ticks past the clamped time")
        let next = (0..<5).map { other.update("a", ["x": .integer($0)]) }
        try await space.send(other.packet(next), now: limit)
        try require(
          try await space.everything().records[.task("a")]?["x"], is: 4, "the later write")
        try await space.send(ahead.packet([ahead.update("a", ["x": 5])]), now: limit + 10)
        try require(
          try await space.everything().records[.task("a")]?["x"], is: 5, "the last write")
      }
    },
    StoreContract("a write wins if its author has seen the value, with any clocks of the nodes") {
      under in
      let node = try await under.open(.standard)
      let other = under.isShared ? try await under.open(.standard) : node
      let summary = try await node.createSpace(.test)
      let nodes = [node, other].map { SpaceUnderTest(store: $0, space: summary) }
      var seen = HybridTimestamp.zero
      let minute: Int64 = 60_000
      let steps = [0, -2, -60, -1_440, 525_600, -5].map { $0 * minute }
      for (round, step) in steps.enumerated() {
        var author = Author(UInt64(round + 1))
        // Devices correct their clocks by the node's, and run ahead of each time they have seen.
        author.wall += step
        author.clock.observe(seen)
        author.base = try await nodes[0].head()
        let now = SpaceUnderTest.now + step
        let value = Value.integer(Int64(round))
        try await nodes[round % 2].send(
          author.packet([author.insert("a", ["x": value]), author.insert("b", [:])]), now: now)
        let reader = try await nodes[1 - round % 2].everything()
        try require(reader.records[.task("a")]?["x"], is: value, "the value at step \(step)")
        try await nodes[round % 2].send(author.packet([author.delete("b")]), now: now - 60 * minute)
        let after = try await nodes[0].everything()
        try require(after.records[.task("b")], is: nil, "the deleted record at step \(step)")
        seen = after.changes.map(\.state.newestTime).max() ?? seen
      }
      if under.isShared { await other.close() }
      await node.close()
    },
    StoreContract("the space's clock never goes back, even if the server's clock does") { under in
      var ahead = Author(1)
      ahead.wall += 1 << 40
      let packets = (0..<4).map { value in
        ahead.packet([ahead.operation(.insert, "a", [Column("x", .integer(Int64(value)))])])
      }
      for (place, packet) in packets.enumerated() {
        try await under.withSpace { space in
          let now = SpaceUnderTest.now - Int64(place) * 100_000
          try await space.send(packet, now: now)
          let x = try await space.everything().records[.task("a")]?["x"]
          try require(x, is: .integer(Int64(place)), "the value after write \(place)")
        }
      }
    },
  ]
}

extension RecordState {
  fileprivate var newestTime: HybridTimestamp {
    let stamps = [inserted?.stamp, deleted?.stamp].compactMap { $0 } + columns.map(\.stamp)
    return stamps.map(\.time).max() ?? .zero
  }
}
