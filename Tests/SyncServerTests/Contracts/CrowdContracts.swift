import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let crowds = [
    StoreContract("16 writers and 4 readers at the same time: no change is skipped") { under in
      let store = try await under.open(.standard)
      let second = under.isShared ? try await under.open(.standard) : store
      let summary = try await store.createSpace(.test)
      let sides = [store, second].map { SpaceUnderTest(store: $0, space: summary) }
      let readers = try await withThrowingTaskGroup(of: Reader?.self) { group in
        for number in 0..<16 {
          group.addTask {
            try await write(number, to: sides[number % 2])
            return nil
          }
        }
        for number in 0..<4 {
          group.addTask {
            var reader = Reader()
            while reader.cursor?.applied != 16 * 25 * 3 {
              _ = try await reader.pullPage(from: sides[number % 2], limit: 5 + number * 40)
            }
            return reader
          }
        }
        return try await group.reduce(into: [Reader]()) { if let reader = $1 { $0.append(reader) } }
      }
      let wanted = try await sides[0].everything()
      try require(wanted.records.count, is: 16 * 25 + 10, "records")
      for reader in readers { try require(reader.records, is: wanted.records, "a reader's data") }
      await second.close()
      await store.close()
    },
    StoreContract("moves of the head reach all watchers, including those of other instances") {
      under in
      let store = try await under.open(.standard)
      let listener = under.isShared ? try await under.open(.standard) : store
      let space = try await store.createSpace(.test)
      let moves = [store.heads.stream(), listener.heads.stream()]
      for side in [store, listener] { side.heads.watch(space.id) }
      let under = SpaceUnderTest(store: store, space: space)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for stream in moves {
          group.addTask {
            for await move in stream where move == HeadMove(space: space.id, head: 5) { return }
            throw ContractViolation(description: "the stream ended before the head was told")
          }
        }
        group.addTask {
          var author = Author(1)
          for record in 0..<5 { try await under.send(author.packet(inserting: ["r\(record)"])) }
        }
        try await group.waitForAll()
      }
      await listener.close()
      await store.close()
    },
    StoreContract("a stream of head moves ends when its store is closed") { under in
      let store = try await under.open(.standard)
      let moves = store.heads.stream()
      await store.close()
      for await _ in moves {}
    },
  ]

  /// Writes 25 packets: a record of this writer only, one that all write, and a re-written one.
  private static func write(_ number: Int, to space: SpaceUnderTest) async throws {
    var author = Author(UInt64(number + 1))
    for round in 0..<25 {
      let value = Value.integer(Int64(round))
      let operations = [
        author.insert("w\(number)-\(round)", ["n": value]),
        author.insert("shared\(round % 10)", ["c\(number)": value]),
        author.update("w\(number)-\(round / 2)", ["m": value]),
      ]
      let receipt = try await space.receipt(for: author.packet(operations))
      try require(receipt.status, is: .applied, "packet \(round) of writer \(number)")
    }
  }
}
