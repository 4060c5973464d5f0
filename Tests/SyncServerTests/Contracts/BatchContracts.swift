import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let batches = [
    StoreContract("a batch changes all matching records, including those its author never saw") {
      under in
      try await under.withSpace { space in
        var other = Author(1)
        try await space.send(
          other.packet([
            other.insert("a", ["due": "2026-01-01", "done": 0]), other.insert("b", ["done": 0]),
            other.insert("c", ["due": "2026-12-01", "done": 0]),
            other.insert("d", ["due": "2026-01-02", "done": 1]),
            other.insert("gone", ["due": "2026-01-02", "done": 0]), other.delete("gone"),
            other.operation(.insert, "a", [Column("done", 0)], table: "elsewhere"),
          ]))
        var author = Author(2)
        author.wall += 10
        let batch = try author.batch(
          where: "due < '2026-10-01' and done = 0 or id = 'b'", set: ["done": 1, "by": "batch"])
        let receipt = try await space.receipt(for: author.packet([batch]))
        try require(receipt.outcomes.map(\.records), is: [2], "records changed")
        try require(receipt.sequences, is: 8...10, "the places of the batch and its effects")
        try require(try await space.head(), is: 10, "the head")
        let records = try await space.everything().records
        try require(
          records[.task("a")], is: ["due": "2026-01-01", "done": 1, "by": "batch"], "a match")
        try require(records[.task("b")], is: ["done": 1, "by": "batch"], "a match by its key")
        try require(records[.task("c")]?["by"], is: nil, "a record that is due later")
        try require(records[.task("d")]?["by"], is: nil, "a record that was done")
        try require(records[.task("gone")], is: nil, "a deleted record")
        let elsewhere = RecordKey(table: "elsewhere", record: "a")
        try require(records[elsewhere], is: ["done": 0], "a record of another table")
      }
    },
    StoreContract(
      "a batch's effects are ordinary changes of a pull list, each with its own sequence"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b", "c"]))
        var reader = Reader()
        try await reader.pull(from: space)
        let before = reader.changes.count
        try await space.send(author.packet([try author.batch(where: "true", set: ["x": 1])]))
        try await reader.pull(from: space, limit: 1)
        let changes = reader.changes.dropFirst(before)
        try require(changes.map(\.sequence), is: [5, 6, 7], "places")
        try require(changes.map(\.key.record), is: ["a", "b", "c"], "records, in their order")
        let names = changes.flatMap { $0.state.columns.map(\.name) }
        try require(names, is: ["x", "x", "x"], "columns")
        try require(
          reader.records, is: try await space.everything().records, "what a new reader gets")
      }
    },
    StoreContract("a batch sees the operations before it in its packet, and none after it") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(
          author.packet([author.insert("old", ["n": 1]), author.insert("out", ["n": 1])]))
        let packet = author.packet([
          author.insert("new", ["n": 1]), author.update("out", ["n": 2]),
          try author.batch(where: "n = 1", set: ["n": 10]),
          try author.batch(where: "n = 10", set: ["m": 1]), author.insert("late", ["n": 1]),
          author.delete("old"),
        ])
        let receipt = try await space.receipt(for: packet)
        try require(receipt.outcomes.map(\.records), is: [nil, nil, 2, 2, nil, nil], "records")
        try require(receipt.sequences, is: 3...12, "the packet's places, without a gap")
        let records = try await space.everything().records
        try require(
          records,
          is: [
            .task("new"): ["n": 10, "m": 1], .task("out"): ["n": 2], .task("late"): ["n": 1],
          ], "records")
      }
    },
    StoreContract("packets of one transaction see each other's batches") { under in
      try await under.withSpace { space in
        var (first, second) = (Author(1), Author(2))
        second.wall += 10
        let packets = [
          first.packet(inserting: ["a"]),
          second.packet([try second.batch(where: "true", set: ["n": 1])]),
          first.packet([try first.batch(where: "n = 1")]), first.packet(inserting: ["b"]),
        ]
        let results = try await space.send(packets)
        try require(results.map(\.status), is: Array(repeating: .applied, count: 4), "answers")
        try require(
          results.flatMap { $0.receipt?.outcomes.map(\.records) ?? [] }, is: [nil, 1, 1, nil],
          "records changed")
        // The author's clock was behind the record's last write.
        try require(results[2].receipt?.outcomes[0].isOverruled, is: false, "the delete")
        try require(
          try await space.everything().records.keys.map(\.record), is: ["b"], "what is left")
      }
    },
    StoreContract("a batch that is sent again changes nothing and gets the same answer") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b"]))
        let packet = author.packet([
          try author.batch(where: "title > ''", set: ["n": 1]), author.insert("c", ["title": "c"]),
        ])
        let first = try await space.receipt(for: packet)
        let head = try await space.head()
        let again = try await space.receipt(for: packet)
        try require(again.status, is: .duplicate, "the status")
        try require(again.outcomes, is: first.outcomes, "the outcomes")
        try require(again.sequences, is: first.sequences, "the places")
        try require(try await space.head(), is: head, "the head")
        try require(
          try await space.everything().records[.task("c")], is: ["title": "c"], "a later record")
      }
    },
    StoreContract("a buffered batch matches the records of the time when it is applied") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        let second = author.packet([try author.batch(where: "true", set: ["n": 1])])
        try require(try await space.send(second).status, is: .buffered, "without its predecessor")
        var other = Author(2)
        try await space.send(other.packet(inserting: ["b"]))
        let result = try await space.send(first)
        try require(result.released.first?.outcomes.map(\.records), is: [2], "records changed")
        let records = try await space.everything().records.values
        try require(records.allSatisfy { $0["n"] == 1 }, "a record was passed over")
      }
    },
    StoreContract(
      "a later edit of a column wins over a batch, and the batch is reported as overruled"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(
          author.packet([author.insert("a", ["n": 0]), author.insert("b", ["n": 0])]))
        var later = Author(2)
        later.wall += 1_000
        later.base = 2
        try await space.send(later.packet([later.update("a", ["m": 5])]))
        author.base = 2
        let packet = author.packet([try author.batch(where: "n = 0", set: ["n": 1, "m": 1])])
        let outcome = try unwrap(try await space.receipt(for: packet).outcomes.first, "an outcome")
        try require(outcome.isOverruled, "part of the batch lost, and it is not said")
        try require(outcome.conflicts, is: [], "conflicts, which stand with the batch's effects")
        let records = try await space.everything().records
        try require(records[.task("a")], is: ["n": 1, "m": 5], "the record edited later")
        try require(records[.task("b")], is: ["n": 1, "m": 1], "the other record")
      }
    },
    StoreContract("a batch without matches takes a sequence, even on an empty table") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]))
        let receipt = try await space.receipt(
          for: author.packet([
            try author.batch(where: "title is null", set: ["n": 1]),
            try author.batch(where: "true", set: ["n": 1], table: "none"),
          ]))
        try require(receipt.outcomes.map(\.records), is: [0, 0], "records changed")
        try require(receipt.sequences, is: 2...3, "the places")
      }
    },
    StoreContract(
      "a batch that matches too much is refused with its packet; other packets are applied"
    ) {
      under in
      var limits = Limits.standard
      limits.batchRecords = 3
      try await under.withSpace(limits: limits) { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b", "c", "d"]))
        var (greedy, other) = (Author(2), Author(3))
        let packet = greedy.packet([
          greedy.insert("e", ["n": 1]), try greedy.batch(where: "id > 'a'", set: ["n": 1]),
          try greedy.batch(where: "id = 'd'", set: ["n": 1]),
        ])
        let results = try await space.send([
          packet, other.packet([try other.batch(where: "id < 'd'", set: ["n": 2])]),
        ])
        let problem = try unwrap(results[0].problem, "the packet that takes too much is taken")
        try require(problem.code, is: .operationRefused, "its problem")
        try require(
          problem.refusals.map(\.operation), is: packet.operations.dropFirst().map(\.id), "refused")
        try require(Set(problem.refusals.map(\.code)), is: [.invalidPredicate], "their code")
        try require(results[1].receipt?.outcomes.map(\.records), is: [3], "the other packet")
        try require(try await space.everything().records.count, is: 4, "records")
        try require(
          try await space.everything().records[.task("d")], is: ["title": "d"], "a record")
      }
    },
    StoreContract(
      "a batch that costs too much is refused with its packet; other packets are applied"
    ) {
      under in
      var limits = Limits.standard
      limits.batchEvaluations = 1_000
      try await under.withSpace(limits: limits) { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: (0..<90).map { "r\($0)" }))
        var (hostile, other) = (Author(2), Author(3))
        let packet = hostile.packet([
          hostile.insert("e", ["n": 1]),
          try hostile.batch(where: "title = 'x' or title = 'y' or title = 'z'", set: ["n": 1]),
        ])
        let results = try await space.send([
          packet, other.packet([try other.batch(where: "id in ('r1', 'r2')", set: ["n": 2])]),
        ])
        let problem = try unwrap(results[0].problem, "the packet that costs too much is taken")
        try require(problem.code, is: .operationRefused, "its problem")
        try require(problem.refusals.map(\.code), is: [.batchTooExpensive], "its refusal")
        try require(results[1].receipt?.outcomes.map(\.records), is: [2], "the other packet")
        try require(try await space.everything().records.count, is: 90, "records")
      }
    },
    StoreContract("batches that name records by their keys find present and absent ones") { under in
      try await under.withSpace { space in
        var author = Author(1)
        for chunk in 0..<3 {
          try await space.send(author.packet(inserting: (0..<900).map { "r\(chunk)-\($0)" }))
        }
        let names = (0..<900).flatMap { ["'r0-\($0)'"] } + (0..<90).map { "'absent\($0)'" }
        let packet = author.packet([
          try author.batch(where: "id in (\(names.joined(separator: ", ")))", set: ["n": 1]),
          try author.batch(where: "id = 'r1-1'", set: ["n": 2]),
          try author.batch(where: "id = 'absent' or id = 'r2-2'"),
          try author.batch(where: "id = 'x'", set: ["n": 2], table: "none"),
        ])
        let receipt = try await space.receipt(for: packet)
        try require(receipt.outcomes.map(\.records), is: [900, 1, 1, 0], "records changed")
        let records = try await space.everything().records
        try require(records[.task("r1-1")]?["n"], is: 2, "a record by its key")
        try require(records[.task("r2-2")], is: nil, "a record that was deleted by its key")
      }
    },
    StoreContract("a batch over more records than one page of a table finds all of them") { under in
      try await under.withSpace { space in
        var author = Author(1)
        for chunk in 0..<5 {
          try await space.send(author.packet(inserting: (0..<900).map { "r\(chunk)-\($0)" }))
        }
        let batch = try author.batch(where: "title >= 'r1' and title < 'r4'", set: ["n": 1])
        let receipt = try await space.receipt(for: author.packet([batch]))
        try require(receipt.outcomes.map(\.records), is: [2_700], "records changed")
        let records = try await space.everything().records.values
        try require(records.count { $0["n"] == 1 }, is: 2_700, "records that say so")
      }
    },
  ]
}
