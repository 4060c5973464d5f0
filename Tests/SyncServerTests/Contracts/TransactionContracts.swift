import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let transactions = [
    StoreContract("readers see a transaction of several packets whole or not at all") { under in
      for order in permutations(of: [0, 1, 2]) {
        let store = try await under.open(.standard)
        let name = SpaceName.name("whole-" + order.map(String.init).joined())
        let space = SpaceUnderTest(store: store, space: try await store.createSpace(name))
        var author = Author(1)
        let packets = (0..<3).map {
          author.packet(inserting: ["r\($0)a", "r\($0)b"], continues: $0 < 2)
        }
        for (step, place) in order.enumerated() {
          let result = try await space.send(packets[place])
          let seen = try await space.everything().records.count
          if step < 2 {
            try require(result.status, is: .buffered, "part \(place) in order \(order)")
            try require(seen, is: 0, "records seen of an unfinished transaction")
          } else {
            try require(result.status, is: .applied, "the last part in order \(order)")
            try require(seen, is: 6, "records seen of a finished transaction")
          }
        }
        await store.close()
      }
    },
    StoreContract("readers that run beside a writer never see a part of a transaction") { under in
      try await under.withSpace { space in
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask {
            var author = Author(1)
            for round in 0..<30 {
              for part in 0..<3 {
                let records = (0..<20).map { "t\(round)-\(part * 20 + $0)" }
                try await space.send(author.packet(inserting: records, continues: part < 2))
              }
            }
          }
          for limit in [7, 1_000] {
            group.addTask {
              var reader = Reader()
              while reader.records.count < 1_800 {
                // Only complete data is shown: all pages up to the head of the last one.
                try await reader.pull(from: space, limit: limit)
                let count = reader.records.count
                try require(count.isMultiple(of: 60), "\(count) records: a part is seen")
              }
            }
          }
          try await group.waitForAll()
        }
      }
    },
    StoreContract("a complete packet overtakes an unfinished transaction that was abandoned") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]))
        var other = author
        other.wall += 1
        let unfinished = author.packet(inserting: ["b"], continues: true)
        try require(try await space.send(unfinished).status, is: .buffered, "the first part")
        let whole = other.packet(inserting: ["c"])
        try require(try await space.send(whole).status, is: .applied, "the other packet")
        let (waiting, _) = try await space.store.buffered(in: space.space.id, of: author.device)
        try require(waiting, is: 0, "parts of a transaction that cannot end")
      }
    },
  ]
}
