import FerryProtocol
import FerrySyncServer

extension SpaceUnderTest {
  /// Returns the feed after a place, read in pages.
  fileprivate func feed(
    after cursor: Cursor? = nil, by limit: Int = 500, characters: Int = 1 << 20
  ) async throws -> [FeedTransaction] {
    var (found, place): ([FeedTransaction], Cursor?) = ([], cursor)
    while true {
      let page = try await SpaceFeed(store).page(
        in: space.id, after: place, limit: limit, characters: characters
      ).get()
      guard let last = page.last else { return found }
      try require(
        page.reduce(0) { $0 + $1.operations.count } <= limit, "a page has more than \(limit)")
      found += page
      place = last.cursor
    }
  }

  fileprivate func feedProblem(after cursor: Cursor) async throws -> ProblemCode? {
    switch try await SpaceFeed(store).page(in: space.id, after: cursor) {
    case .success: nil
    case .failure(let problem): problem.code
    }
  }
}

extension [FeedTransaction] {
  /// The operations' identifiers by transaction.
  fileprivate var identifiers: [[OperationID]] {
    var found: [[OperationID]] = []
    var continues = false
    for transaction in self {
      let ids = transaction.operations.map(\.entry.id)
      if continues { found[found.count - 1] += ids } else { found.append(ids) }
      continues = transaction.continues
    }
    return found
  }
}

extension StoreContract {
  static let feeds = [
    StoreContract("a feed has each committed transaction once and whole, in pages of any size") {
      under in
      try await under.withSpace { space in
        try require(try await space.feed().isEmpty, "an empty space has a feed")
        var (first, second) = (Author(1), Author(2))
        let single = first.packet(inserting: ["a"])
        let several = second.packet(inserting: ["b", "c", "d"])
        let parts = [
          first.packet(inserting: ["e", "f"], continues: true), first.packet(inserting: ["g"]),
        ]
        // The last part waits for the first one.
        for packet in [single, several, parts[1], parts[0], several] {
          try await space.send(packet)
        }
        // A buffered packet is in no feed.
        _ = second.packet(inserting: ["lost"])
        try await space.send(second.packet(inserting: ["waits"]))
        let wanted = [single.operations, several.operations, parts.flatMap(\.operations)]
          .map { $0.map(\.id) }
        for limit in [500, 4, 3, 2, 1] {
          let feed = try await space.feed(by: limit)
          try require(feed.identifiers, is: wanted, "pages of \(limit)")
        }
        try require(
          try await space.feed(characters: 1).identifiers, is: wanted, "pages of one value")
        let all = try await space.feed()
        try require(
          all.map { $0.author?.device }, is: [1, 2, 1].map { Author($0).device }, "authors")
        try require(
          all.map { $0.operations.map(\.key.record) },
          is: [["a"], ["b", "c", "d"], ["e", "f", "g"]], "records")
        for (place, transaction) in all.enumerated() {
          let rest = try await space.feed(after: transaction.cursor)
          try require(rest, is: Array(all[(place + 1)...]), "the feed behind \(place)")
        }
      }
    },
    StoreContract("a feed has the written values, those of a record's first insert as well") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet([author.insert("a", ["title": "old"])]))
        try await space.send(author.packet([author.insert("b", ["title": "kept"])]))
        try await space.send(author.packet([author.update("a", ["title": "new"])]))
        try await space.send(author.packet([author.delete("b")]))
        try await space.send(author.packet([try author.batch(where: "id = 'a'", set: ["n": 7])]))
        let operations = try await space.feed().flatMap(\.operations)
        let data = operations.map { $0.entry.data.map { String(decoding: $0, as: UTF8.self) } }
        try require(
          data[0..<4],
          is: [#"{"title":"old"}"#, #"{"title":"kept"}"#, #"{"title":"new"}"#, nil], "values")
        try require(
          operations.map(\.entry.kind), is: [.insert, .insert, .update, .delete, .batch, .update],
          "kinds")
        try require(
          operations[4].transaction == operations[5].transaction && data[5] == #"{"n":7}"#,
          "a batch and the effect are one transaction")
      }
    },
    StoreContract("a feed begins behind the horizon, and refuses a place before it") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b"]))
        try await space.send(author.packet(inserting: ["c", "d", "e"]))
        let old = try await space.feed()
        try await space.prune()
        try require(try await space.feed().isEmpty, "deleted transactions are in the feed")
        let new = [author.packet(inserting: ["f", "g"]), author.packet(inserting: ["h"])]
        for packet in new { try await space.send(packet) }
        let kept = try await space.feed()
        try require(kept.identifiers, is: new.map { $0.operations.map(\.id) }, "the kept ones")
        try require(
          try await space.feedProblem(after: old[0].cursor), is: .cursorExpired, "a place before")
        try require(
          try await space.feed(after: old[1].cursor), is: kept, "the place of the horizon")
      }
    },
    StoreContract("a feed refuses a place of another history, and one within a pull list") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b"]))
        let place = try unwrap(try await space.feed().last, "no feed").cursor
        let anchor = try unwrap(place.anchor, "no anchor")
        let other = Cursor(
          epoch: place.epoch, applied: 2,
          anchor: Cursor.Anchor(
            head: 2, operation: anchor.operation, historyHash: (anchor.historyHash ?? 0) ^ 1))
        try require(try await space.feedProblem(after: other), is: .historyLost, "another history")
        for (cursor, code) in [
          (Cursor(epoch: place.epoch, applied: 3), ProblemCode.cursorAhead),
          (Cursor(epoch: Epoch(1), applied: 2), .epochChanged),
          (Cursor(epoch: place.epoch, applied: 0, received: 2), .malformedMessage),
          (Cursor(epoch: place.epoch, applied: Limits.sequenceMax), .cursorAhead),
        ] {
          try require(try await space.feedProblem(after: cursor), is: code, "\(cursor)")
        }
        // A device's cursor at the end of a pull list.
        let reader = try await space.everything()
        let cursor = try unwrap(reader.cursor, "no cursor")
        try require(try await space.feed(after: cursor).isEmpty, "the feed behind the list")
        try await space.send(author.packet(inserting: ["c"]))
        try require(try await space.feed(after: cursor).count, is: 1, "one more transaction")
      }
    },
  ]
}
