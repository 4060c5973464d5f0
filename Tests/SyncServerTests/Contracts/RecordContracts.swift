import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let recordFetches = [
    StoreContract("requested records are returned whole and in the requested order") { under in
      try await under.withSpace { space in
        var (author, other) = (Author(1), Author(2))
        try await space.send(
          author.packet([author.insert("a", ["x": 1, "y": 1]), author.insert("gone", ["x": 1])]))
        other.wall += 1_000
        try await space.send(other.packet([other.update("a", ["x": 2])]))
        author.wall += 1_000
        try await space.send(
          author.packet([author.delete("gone"), author.update("ghost", ["x": 1])]))
        let keys = ["none", "gone", "a", "ghost"].map { RecordKey.task($0) }
        let (head, changes) = try await space.records(keys)
        try require(changes.map(\.key), is: keys, "the records")
        try require(head.count, is: 4, "the count")
        try require(head.more && head.head == 5 && head.epoch == space.space.epoch, "the head")
        try require(head.cursor.applied == 0 && head.cursor.received == 0, "the cursor")
        try require(changes[0], is: .absent(.task("none")), "a record that never was")
        try require(changes[1].state.deleted?.sequence, is: 4, "a deleted record's place")
        try require(changes[3], is: .absent(.task("ghost")), "a record nobody inserted")
        let listed = try await space.page(after: nil).changes
        try require(
          listed.filter { $0.key == .task("a") }, is: [changes[2]], "the record as it is listed")
        try require(changes[2].state.columns.map(\.value), is: [2, 1], "its values")
      }
    },
    StoreContract("records are distinguished by table and by every byte of their identifiers") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let names = ["\u{E9}", "e\u{301}", "a\"b\\", "日本"]
        let operations = names.map { author.insert($0, ["x": .text($0)]) }
        try await space.send(author.packet(operations))
        let keys = names.map { RecordKey.task($0) }
        let changes = try await space.records(keys + [RecordKey(table: "Tasks", record: "日本")])
          .changes
        try require(
          changes.map { $0.state.columns.first?.value }, is: names.map { .text($0) } + [nil],
          "their values")
      }
    },
    StoreContract("an answer ends at a page's limit of bytes and contains at least one record") {
      under in
      var limits = Limits.standard
      limits.pageBytes = 25_000
      try await under.withSpace(limits: limits) { space in
        var author = Author(1)
        let large = Value.text(String(repeating: "x", count: 10_000))
        let huge = Value.text(String(repeating: "x", count: 40_000))
        try await space.send(
          author.packet(
            (0..<20).map { author.insert("r\($0)", ["x": $0 == 7 ? huge : large]) }))
        var wanted = (0..<20).map { RecordKey.task("r\($0)") }
        var answers = 0
        while !wanted.isEmpty {
          let found = try await space.records(wanted).changes.map(\.key)
          try require((1...4).contains(found.count), "\(found.count) records in an answer")
          try require(Array(wanted.prefix(found.count)), is: found, "the first ones")
          wanted.removeFirst(found.count)
          answers += 1
        }
        try require(answers < 20, "\(answers) answers")
      }
    },
    StoreContract("a request for the largest allowed number of records is answered") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let count = Limits.standard.recordsPerRequest
        try await space.send(
          author.packet((0..<count / 2).map { author.insert("r\($0)", ["x": 1]) }))
        let changes = try await space.records((0..<count).map { .task("r\($0)") }).changes
        try require(changes.count, is: count, "records")
        try require(changes.filter { $0.state.isAlive }.count, is: count / 2, "those that exist")
      }
    },
  ]
}

extension SpaceUnderTest {
  /// Reads single records, which must be served.
  fileprivate func records(
    _ keys: [RecordKey]
  ) async throws -> (head: PageHead, changes: [Change]) {
    let bytes = try await store.records(keys, in: space.id, now: Self.now).get()
    var changes: [Change] = []
    let head = try bytes.withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: .standard) { changes.append($0) }
    }
    try require(
      try PageReader.notices(of: bytes, limits: .standard), is: [], "notices in an answer")
    return (head, changes)
  }
}
