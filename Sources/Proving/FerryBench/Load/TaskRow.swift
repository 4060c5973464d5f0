import Ferry
import FerryProtocol

/// The row written by all benchmarks: five columns, some 150 bytes.
struct TaskRow: Sendable {
  static let table = "tasks"
  static let columnNames = ["title", "notes", "priority", "done", "due"]
  private static let words = [
    "harbour", "lantern", "cargo", "tide", "anchor", "ledger", "rope", "signal", "compass", "deck",
    "quay", "beacon", "freight", "mast", "crew", "chart",
  ]

  let id: String
  let title: String
  let notes: String
  let priority: Int64
  let done: Int64
  let due: String

  init(id: UniqueID, random: inout SeededRandom) {
    self.id = id.description
    title = Self.text(words: 5, &random)
    notes = Self.text(words: 10, &random)
    priority = Int64(random.next() % 5)
    done = Int64(random.next() % 2)
    due = "2026-11-\(10 + random.next() % 20)T08:00:00Z"
  }

  var columns: [Column] {
    [
      Column("title", .text(title)), Column("notes", .text(notes)),
      Column("priority", .integer(priority)), Column("done", .integer(done)),
      Column("due", .text(due)),
    ]
  }

  /// Returns the statement that makes the table as an application would.
  static func creation(_ name: String = table) -> String {
    "CREATE TABLE \(name)(id TEXT PRIMARY KEY, title TEXT, notes TEXT, priority INTEGER, "
      + "done INTEGER, due TEXT)"
  }

  private static func text(words count: Int, _ random: inout SeededRandom) -> String {
    var bits = random.next()
    var text = words[Int(bits % 16)]
    for _ in 1..<count {
      bits >>= 4
      text += " " + words[Int(bits % 16)]
    }
    return text
  }
}

extension Replica {
  /// Returns a replica with a tracked table of this many tasks, `00000001` and on.
  static func tasks(_ path: String, rows: Int) async throws -> Replica {
    let replica = try await Replica.open(path)
    try await replica.write { database in
      try database.execute(TaskRow.creation())
      try database.execute(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
        INSERT INTO tasks(id, title, notes, priority, done)
        SELECT printf('%08d', i), 'row ' || i, 'notes of row ' || i, i % 5, 0 FROM n
        """)
    }
    try await replica.track(Name(TaskRow.table))
    return replica
  }
}
