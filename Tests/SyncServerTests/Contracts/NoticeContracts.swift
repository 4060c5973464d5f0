import FerryProtocol
import FerrySyncServer
import FerryTestSupport

extension StoreContract {
  static let notices = [
    StoreContract("a device is notified of a loss that another device's operation decided later") {
      under in
      try await under.withSpace { space in
        var (first, second) = (Author(1), Author(2))
        try await space.send(first.packet([first.insert("a", ["x": 1, "y": 1])]))
        let start = try await space.page(after: nil).head.cursor
        let seen = try await space.noticePage(after: nil, device: first.device)
        try require(seen.notices, is: [], "notices before anything was lost")
        second.wall += 1_000
        let packet = second.packet([second.update("a", ["x": 2])])
        let outcome = try await space.receipt(for: packet).outcomes[0]
        try require(outcome.conflicts.map(\.lost), is: [1], "what the receipt says was lost")
        let page = try await space.noticePage(after: start, device: first.device)
        let notice = Notice(
          sequence: 2, operation: packet.operations[0].id, key: .task("a"),
          conflicts: outcome.conflicts)
        try require(page.notices, is: [notice], "the loser's notices")
        try require(page.changes.map(\.sequence), is: [2], "the changes beside them")
        let next = try await space.noticePage(after: page.head.cursor, device: first.device)
        try require(next.notices, is: [], "notices of the next list")
        for other in [second.device, Author(3).device, nil] {
          let page = try await space.noticePage(after: start, device: other)
          try require(page.notices, is: [], "notices of a device that lost nothing")
        }
      }
    },
    StoreContract("an author's own loss is stored as one notice, even if the packet is sent again")
    {
      under in
      try await under.withSpace { space in
        var (first, second) = (Author(1), Author(2))
        second.wall -= 1_000
        try await space.send(first.packet([first.insert("a", ["x": 1])]))
        let packet = second.packet([second.update("a", ["x": 2]), second.delete("a")])
        let outcomes = try await space.receipt(for: packet).outcomes
        try require(outcomes.map(\.isOverruled), is: [true, true], "the outcomes")
        try await space.send(packet)
        let page = try await space.noticePage(after: nil, device: second.device)
        let wanted = packet.operations.enumerated().map { index, operation in
          Notice(
            sequence: Int64(index) + 2, operation: operation.id, key: operation.key,
            conflicts: outcomes[index].conflicts)
        }
        try require(page.notices, is: wanted, "the author's notices")
        let winners = try await space.noticePage(after: nil, device: first.device)
        try require(winners.notices, is: [], "the winner's notices")
      }
    },
    StoreContract("if one operation overrules several devices, each is notified of its own values")
    {
      under in
      try await under.withSpace { space in
        var (first, second, third) = (Author(1), Author(2), Author(3))
        try await space.send(first.packet([first.insert("a", ["x": 1, "y": 1])]))
        second.wall += 10
        try await space.send(second.packet([second.update("a", ["y": 2])]))
        // The third's y is later than all, the x earlier than all.
        third.wall += 20
        var operation = third.update("a", ["x": 3, "y": 3])
        operation.columnTimes = ["x": HybridTimestamp(milliseconds: 1)]
        try await space.send(third.packet([operation]))
        var found: [[Notice]] = []
        for device in [first, second, third].map(\.device) {
          found.append(try await space.noticePage(after: nil, device: device).notices)
        }
        try require(found.map { $0.map(\.sequence) }, is: [[2], [3], [3]], "the places")
        try require(
          found.map { $0.flatMap(\.conflicts).map(\.lost) }, is: [[1], [2], [3]], "what was lost")
        try require(found[1][0].operation, is: operation.id, "the operation that decided")
      }
    },
    StoreContract("a device receives the notices of its former names, in pages of any size") {
      under in
      try await under.withSpace { space in
        var (first, second, third) = (Author(1), Author(2), Author(3))
        try await space.send(
          first.packet([first.insert("a", ["x": 1]), first.insert("b", ["x": 1])]))
        second.wall += 10
        try await space.send(second.packet([second.update("a", ["y": 2])]))
        third.wall += 20
        // One operation overrules both names; another the first alone.
        try await space.send(
          third.packet([third.update("a", ["x": 3, "y": 3]), third.update("b", ["x": 3])]))
        for (limit, byteLimit) in [(1_000, 1 << 20), (1, 1 << 20), (1_000, 1)] {
          var (cursor, lost, places) = (nil as Cursor?, [Value](), [SequenceNumber]())
          var more = true
          while more {
            let page = try await space.noticePage(
              after: cursor, limit: limit, byteLimit: byteLimit, device: Author(4).device,
              former: [first.device, second.device])
            lost += page.notices.flatMap { $0.conflicts.map(\.lost) }
            places += page.notices.map(\.sequence)
            (cursor, more) = (page.head.cursor, page.head.more)
          }
          try require(places, is: [4, 4, 5], "the places, by pages of \(limit)")
          try require(lost.count, is: 3, "how many values were lost")
          try require(Set(lost), is: [1, 2], "what was lost")
        }
      }
    },
    StoreContract(
      "an operation with a reason notifies the authors of replaced values, also of seen ones, once"
    ) { under in
      try await under.withSpace { space in
        var (first, second, third) = (Author(1), Author(2), Author(3))
        try await space.send(first.packet([first.insert("a", ["x": 1, "y": 1, "z": 1])]))
        second.overrule(after: 1)
        let packet = second.packet([second.update("a", ["x": 2, "y": 1], because: "x is 2")])
        let outcome = try await space.receipt(for: packet).outcomes[0]
        try require(outcome, is: .applied, "the outcome, since the author had seen the values")
        try await space.send(packet)
        try await require(space, first, [[Lost("x", 1, .update, "x is 2")]])
        third.overrule(after: 2)
        try await space.send(
          third.packet([
            third.update("a", ["x": 3], because: "é"), third.update("a", ["x": 4], because: "own"),
          ]))
        try await require(space, second, [[Lost("x", 2, .update, "é")]])
        try await require(space, first, [[Lost("x", 1, .update, "x is 2")]])
        third.overrule(after: 4)
        try await space.send(third.packet([third.update("a", ["y": 5])]))
        for author in [first, second] { try await require(space, author, count: 1) }
        try await require(space, third, [])
      }
    },
    StoreContract("a delete with a reason notifies each author of the record and of the values") {
      under in
      try await under.withSpace { space in
        var (first, second, third) = (Author(1), Author(2), Author(3))
        try await space.send(
          first.packet([first.insert("a", ["x": 1, "y": 1]), first.insert("b", [:])]))
        second.overrule(after: 2)
        try await space.send(second.packet([second.update("a", ["y": 2])]))
        third.overrule(after: 3)
        let packet = third.packet([
          third.delete("a", because: "no"), third.delete("b", because: "no"),
          third.delete("a", because: "again"),
        ])
        try await space.send(packet)
        let first1 = [Lost(nil, .null, .delete, "no"), Lost("x", 1, .delete, "no")]
        try await require(space, first, [first1, [Lost(nil, .null, .delete, "no")]])
        try await require(space, second, [[Lost("y", 2, .delete, "no")]])
        try await require(space, third, [])
      }
    },
    StoreContract("an insert with a reason notifies the author of the delete that it overrules") {
      under in
      try await under.withSpace { space in
        var (first, second, third) = (Author(1), Author(2), Author(3))
        try await space.send(first.packet([first.insert("a", ["x": 1])]))
        second.overrule(after: 1)
        try await space.send(second.packet([second.delete("a")]))
        third.overrule(after: 2)
        try await space.send(
          third.packet([
            third.insert("a", ["x": 1], because: "kept"),
            third.insert("a", ["x": 2], because: "own"),
          ]))
        try await require(space, second, [[Lost(nil, .null, .insert, "kept")]])
        for author in [first, third] { try await require(space, author, []) }
      }
    },
    StoreContract(
      "pages of any size contain each notice once, in order, in the page of its sequence"
    ) { under in
      try await under.withSpace { space in
        var history = NoticeHistory(seed: 5)
        for _ in 0..<25 { try await history.write(in: space) }
        for (limit, byteLimit) in [
          (1, 1 << 20), (2, 1 << 20), (7, 1 << 20), (1_000, 1), (1_000, 700), (1_000, 1 << 20),
        ] {
          for author in history.authors {
            var reader = NoticeReader(device: author.device)
            while try await reader.pullPage(from: space, limit, byteLimit) {}
            try require(
              reader.notices, is: history.notices[author.device] ?? [],
              "notices by pages of \(limit) and \(byteLimit) bytes")
          }
        }
        try require(history.notices.count, is: 3, "devices that lost something")
      }
    },
    StoreContract("no notice is skipped or sent twice while other devices write between the pages")
    {
      under in
      try await under.withSpace { space in
        var history = NoticeHistory(seed: 9)
        var readers = history.authors.map { NoticeReader(device: $0.device) }
        for turn in 0..<60 {
          try await history.write(in: space)
          let limit = turn % 4 + 1
          _ = try await readers[turn % readers.count].pullPage(
            from: space, limit, turn % 5 == 0 ? 500 : 1 << 20)
        }
        for index in readers.indices {
          while try await readers[index].pullPage(from: space, 2, 1 << 20) {}
          let wanted = history.notices[readers[index].device] ?? []
          try require(wanted.count > 10, "only \(wanted.count) notices")
          try require(readers[index].notices, is: wanted, "notices of device \(index)")
        }
      }
    },
  ]
}

/// Devices that write the same few columns without knowing of each other, and the notices due to
/// each of them, by the receipts.
private struct NoticeHistory {
  private(set) var authors = (1...3).map { Author(UInt64($0)) }
  private(set) var notices: [DeviceID: [Notice]] = [:]
  private var random: SeededGenerator
  private var turn: Int64 = 0

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func write(in space: SpaceUnderTest) async throws {
    let index = Int.random(in: 0..<authors.count, using: &random)
    // Clocks differ by more than the time between two packets, so each device loses at times.
    turn += 1
    authors[index].wall =
      SpaceUnderTest.now + turn * 400 + Int64.random(in: 0..<8_000, using: &random)
    var operations: [SyncOperation] = []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let record = "r\(Int.random(in: 0..<4, using: &random))"
      let columns: [Name: Value] = [
        "x": .integer(Int64.random(in: 0..<100, using: &random)),
        "y": .integer(Int64.random(in: 0..<100, using: &random)),
      ]
      operations.append(authors[index].insert(record, columns))
    }
    let packet = authors[index].packet(operations)
    let receipt = try await space.receipt(for: packet)
    let first = try unwrap(receipt.sequences, "a packet without sequences").lowerBound
    for (place, outcome) in receipt.outcomes.enumerated() {
      for device in Set(outcome.conflicts.map(\.loser.device)) {
        notices[device, default: []].append(
          Notice(
            sequence: first + Int64(place), operation: operations[place].id,
            key: operations[place].key,
            conflicts: outcome.conflicts.filter { $0.loser.device == device }))
      }
    }
  }
}

/// A reader of pages with notices: checks each page for the page's own notices.
private struct NoticeReader {
  let device: DeviceID
  private(set) var notices: [Notice] = []
  private var cursor: Cursor?

  init(device: DeviceID) { self.device = device }

  mutating func pullPage(
    from space: SpaceUnderTest, _ limit: Int, _ byteLimit: Int
  ) async throws -> Bool {
    let page = try await space.noticePage(
      after: cursor, limit: limit, byteLimit: byteLimit, device: device)
    let start = cursor?.received ?? 0
    let end = page.head.cursor.received
    for place in page.notices.map(\.sequence) + page.changes.map(\.sequence) {
      try require(place > start && place <= end, "\(place) in a page from \(start) to \(end)")
    }
    try require(!page.head.more || end > start, "a page that does not go on")
    try require(
      page.notices.count <= limit && page.changes.count <= limit, "a page larger than asked for")
    notices += page.notices
    cursor = page.head.cursor
    return page.head.more
  }
}

extension SpaceUnderTest {
  /// Reads one page with the device's notices, which must be served.
  fileprivate func noticePage(
    after cursor: Cursor?, limit: Int = 1_000, byteLimit: Int = 1 << 20, device: DeviceID?,
    former: [DeviceID] = []
  ) async throws -> (head: PageHead, changes: [Change], notices: [Notice]) {
    var request = PullRequest(
      cursor: cursor, limit: limit, byteLimit: byteLimit, device: device)
    request.former = former
    let bytes = try await store.changes(in: space.id, request, now: Self.now).get()
    var changes: [Change] = []
    let head = try bytes.withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: .standard) { changes.append($0) }
    }
    return (head, changes, try PageReader.notices(of: bytes, limits: .standard))
  }
}

/// A lost value in a notice of an overruled write.
private struct Lost: Equatable {
  let column: Name?
  let value: Value
  let kind: OperationKind?
  let reason: String?

  init(_ column: Name?, _ value: Value, _ kind: OperationKind?, _ reason: String?) {
    (self.column, self.value, self.kind, self.reason) = (column, value, kind, reason)
  }
}

/// Requires the lost values of all notices for an author, notice by notice.
private func require(_ space: SpaceUnderTest, _ author: Author, _ wanted: [[Lost]]) async throws {
  let notices = try await space.noticePage(after: nil, device: author.device).notices
  let found = notices.map { notice in
    notice.conflicts.map {
      Lost($0.column, $0.lost, notice.overruling?.kind, notice.overruling?.reason)
    }
  }
  try require(found, is: wanted, "the lost values of \(author.device)")
}

private func require(_ space: SpaceUnderTest, _ author: Author, count: Int) async throws {
  let notices = try await space.noticePage(after: nil, device: author.device).notices
  try require(notices.count, is: count, "the notices of \(author.device)")
}

extension Author {
  /// Sees all of the space, and writes later than anybody else.
  fileprivate mutating func overrule(after seen: SequenceNumber) {
    base = seen
    wall = SpaceUnderTest.now + seen * 100
  }

  fileprivate mutating func update(
    _ record: String, _ columns: [Name: Value], because reason: String
  ) -> SyncOperation {
    update(record, columns).explained(by: reason)
  }

  fileprivate mutating func insert(
    _ record: String, _ columns: [Name: Value], because reason: String
  ) -> SyncOperation {
    insert(record, columns).explained(by: reason)
  }

  fileprivate mutating func delete(_ record: String, because reason: String) -> SyncOperation {
    delete(record).explained(by: reason)
  }
}

extension SyncOperation {
  fileprivate func explained(by reason: String) -> SyncOperation {
    var explained = self
    explained.reason = reason
    return explained
  }
}
