import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let retention = [
    StoreContract(
      "a cursor before the retention horizon is refused; later cursors get complete pages"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b", "c"]))
        var before = Reader()
        _ = try await before.pullPage(from: space, limit: 2)
        try await space.send(author.packet([author.delete("b"), author.update("a", ["n": 1])]))
        var at = Reader()
        try await at.pull(from: space)
        try await space.prune()
        try await space.send(author.packet([author.update("c", ["n": 2]), author.delete("a")]))
        let problem = await space.problem { _ = try await before.pullPage(from: space) }
        try require(problem?.code, is: .cursorExpired, "a cursor within an older list")
        try await at.pull(from: space, limit: 1)
        let wanted = try await space.everything()
        try require(wanted.records.keys.sorted(), is: [.task("c")], "what is there")
        try require(
          at.records, is: wanted.records, "the data of who stood at the retention horizon")
      }
    },
    StoreContract("a list in progress continues if it misses nothing, and is refused otherwise") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b", "c", "d"]))
        var (behind, past, later) = (Reader(), Reader(), Reader())
        for _ in 0..<2 { _ = try await past.pullPage(from: space, limit: 1) }
        behind = past
        try await space.send(author.packet([author.delete("b")]))
        _ = try await past.pullPage(from: space, limit: 3)
        let day = Retention(milliseconds: 86_400_000)
        let mark = HorizonRequest(now: SpaceUnderTest.now, keeping: day)
        _ = try await space.store.raiseRetentionHorizon(of: space.space.id, mark)
        try await space.send(author.packet(inserting: ["e", "f"]))
        _ = try await later.pullPage(from: space, limit: 2)
        let old = HorizonRequest(now: SpaceUnderTest.now + 86_400_000, keeping: day)
        let horizon = try await space.store.raiseRetentionHorizon(of: space.space.id, old)
        try require(horizon.retentionHorizon, is: 5, "the retention horizon")
        try await space.pruneSlices()
        let problem = await space.problem { try await behind.pull(from: space, limit: 1) }
        try require(problem?.code, is: .cursorExpired, "a list that would miss the tombstone")
        try await past.pull(from: space, limit: 1)
        try await later.pull(from: space, limit: 1)
        let wanted = try await space.everything().records
        try require(wanted.count, is: 5, "records")
        try require(past.records, is: wanted, "the data of who had come past the retention horizon")
        try require(later.records, is: wanted, "the data of who began after the delete")
      }
    },
    StoreContract("each page of a list from the start is anchored at the head that it was read at")
    {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b", "c"]))
        var reader = Reader()
        _ = try await reader.pullPage(from: space, limit: 1)
        for head in SequenceNumber(4)...6 {
          try await space.send(author.packet(inserting: ["r\(head)"]))
          _ = try await reader.pullPage(from: space, limit: 1)
          let cursor = try unwrap(reader.cursor, "no cursor")
          try require(cursor.received, is: head - 2, "what was received")
          try require(cursor.anchor?.head, is: head, "the anchor")
          try require(cursor.began, is: 3, "the head when the list began")
        }
        // A server that was rolled back to before any page was read gets an error that reports it.
        let anchor = try unwrap(reader.cursor?.anchor, "no anchor")
        let lost = Cursor(
          epoch: space.space.epoch, applied: 0, received: 4,
          anchor: Cursor.Anchor(
            head: anchor.head, operation: anchor.operation,
            historyHash: (anchor.historyHash ?? 0) ^ 1),
          began: 3)
        let problem = await space.problem { _ = try await space.page(after: lost, limit: 1) }
        try require(problem?.code, is: .historyLost, "a cursor of a history that is gone")
      }
    },
    StoreContract(
      "the retention horizon rises to the newest mark that is old enough, and never falls"
    ) { under in
      try await under.withSpace { space in
        var author = Author(1)
        let hour: Int64 = 3_600_000
        let day = Retention(milliseconds: 24 * hour)
        for step in 0..<50 {
          let now = SpaceUnderTest.now + Int64(step) * hour
          try await space.send(author.packet(inserting: ["r\(step)"]), now: now)
          let horizon = try await space.store.raiseRetentionHorizon(
            of: space.space.id, HorizonRequest(now: now, keeping: day))
          try require(horizon.head, is: SequenceNumber(step + 1), "the head at hour \(step)")
          // Marks are two hours and 24 minutes apart at least, a tenth of a day.
          let newest = horizon.retentionHorizon
          try require(newest <= SequenceNumber(max(0, step - 23)), "horizon \(newest) at \(step)")
          try require(newest >= SequenceNumber(step - 26), "horizon \(newest) at hour \(step)")
        }
        let before = try await space.summary().retentionHorizon
        try require(before > 0, "the retention horizon did not rise")
        let back = try await space.store.raiseRetentionHorizon(
          of: space.space.id, HorizonRequest(now: SpaceUnderTest.now, keeping: day))
        try require(
          back.retentionHorizon, is: before, "the retention horizon after the clock went back")
      }
    },
    StoreContract("a space keeps 90 days of history by default") { under in
      try await under.withSpace { space in
        try require(space.space.retention, is: .standard, "a new space's retention")
        for retention in [Retention.forever, Retention(milliseconds: 5_000)] {
          try await space.store.setRetention(retention, of: space.space.id)
          try require(try await space.summary().retention, is: retention, "the retention")
          try require(
            try await space.store.spaces().map(\.retention), is: [retention], "the list's")
        }
      }
    },
    StoreContract("pruning removes tombstones below the retention horizon, and no other record") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let names = (0..<40).map { "r\($0)" }
        try await space.send(author.packet(inserting: names))
        try await space.send(author.packet(names.prefix(30).map { author.delete($0) }))
        // Deleted, inserted again, and an update of a record that never existed.
        try await space.send(author.packet(inserting: ["r0", "r1"]))
        try await space.send(author.packet([author.update("ghost", ["n": 1])]))
        try await space.raise()
        try await space.send(author.packet([author.delete("r39")]))
        let rows = try await space.pruneSlices(of: 7)
        try require(rows.tombstones, is: 29, "tombstones")
        try require(rows.operations, is: 72, "operations")
        let everything = try await space.everything()
        try require(everything.records.count, is: 11, "records that live")
        let dead = everything.changes.filter { !$0.state.isAlive }.map(\.key)
        try require(dead, is: [.task("r39")], "tombstones that are kept")
      }
    },
    StoreContract(
      "pruning drops packets that were buffered for longer than the retention, and no others"
    ) {
      under in
      try await under.withSpace { space in
        var (late, early) = (Author(1), Author(2))
        _ = late.packet(inserting: ["a"])
        _ = early.packet(inserting: ["x"])
        let hour: Int64 = 3_600_000
        try await space.send(late.packet(inserting: ["b"]))
        try await space.send(early.packet(inserting: ["y"]), now: SpaceUnderTest.now + hour)
        let rows = try await space.pruneSlices(bufferedBefore: SpaceUnderTest.now)
        try require(rows, is: PrunedRows(buffered: 1), "what went")
        try require(
          try await space.store.buffered(in: space.space.id, of: late.device).packets, is: 0, "late"
        )
        try require(
          try await space.store.buffered(in: space.space.id, of: early.device).packets, is: 1,
          "early")
      }
    },
  ]
}

extension SpaceUnderTest {
  /// Prunes all there is.
  func prune() async throws {
    try await raise()
    try await pruneSlices()
  }

  /// Raises the retention horizon to the head.
  func raise() async throws {
    let horizon = try await store.raiseRetentionHorizon(
      of: space.id, HorizonRequest(now: Self.now, keeping: Retention(milliseconds: 0)))
    try require(horizon.retentionHorizon, is: horizon.head, "the retention horizon")
  }

  /// Deletes below the retention horizon, a slice at a time; returns the deleted rows.
  @discardableResult
  func pruneSlices(of rows: Int = 50, bufferedBefore: Int64 = 0) async throws -> PrunedRows {
    var slice = PruneSlice(bufferedBefore: bufferedBefore, rows: rows)
    var pruned = PrunedRows()
    while true {
      switch try await store.prune(slice, of: space.id) {
      case .busy: continue
      case .pruned(let part, let reached, let isLast):
        try require(part.count <= max(rows, part.buffered), "a slice of \(part.count) rows")
        pruned += part
        slice.after = reached
        if isLast { return pruned }
      }
    }
  }

  func summary() async throws -> SpaceSummary {
    try unwrap(try await store.space(named: space.name), "the space is gone")
  }

  /// Returns the problem with which a call was refused; `nil` if it was not.
  func problem(of call: () async throws -> Void) async -> Problem? {
    do {
      try await call()
      return nil
    } catch {
      return error as? Problem
    }
  }
}
