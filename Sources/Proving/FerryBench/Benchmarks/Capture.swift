import FerryLaboratory
import FerryProtocol
import FerrySQLite
import FerrySyncClient

extension Benchmark {
  /// The cost of recording for the user's own writes.
  static let capture = Benchmark(
    name: "capture", summary: "Time for a row of a tracked table against a hand-written trigger."
  ) { context in
    let rows = context.size(40_000, quick: 10_000)
    let contest = Contest(rounds: context.size(9, quick: 3), context: context)
    context.begin("capture", "rounds", total: contest.steps(contestants: 3))
    var random = SeededRandom(seed: 3)
    var clock = HybridClock()
    let load = (0..<rows).map { _ in
      let time = clock.tick(wall: SystemClock.milliseconds())
      return TaskRow(id: UniqueID(timestamp: time, random: random.next()), random: &random)
    }
    var updates: [CaptureSetup: [Double]] = [:]
    let inserts = try await contest.medians(
      CaptureSetup.allCases.map { setup in
        {
          let times = try setup.write(load)
          updates[setup, default: []].append(times.updates)
          return times.inserts
        }
      })
    let updated = CaptureSetup.allCases.map {
      Array((updates[$0] ?? []).dropFirst(contest.warmUps)).percentile(50)
    }
    return [
      measurement("capture, inserts", inserts), measurement("capture, updates", updated),
    ]
  }

  private static func measurement(_ name: String, _ times: [Double]) -> Measurement {
    Measurement(
      name: name, figure: Amount(times[0], .microseconds(per: "row")),
      raw: Amount(times[1], .microseconds(per: "row")), target: .ratioAtMost(1.2),
      notes: [
        "1,000 rows a transaction; with a hand-written trigger "
          + "\(times[1].rounded(to: 2)) µs, without any \(times[2].rounded(to: 2)) µs"
      ])
  }
}

/// Three ways to write one table; the file, the settings and the statements are the same.
private enum CaptureSetup: CaseIterable {
  case tracked
  case handWritten
  case plain

  /// Inserts all rows, then updates two columns of each; microseconds for a row of each.
  func write(_ rows: [TaskRow]) throws -> (inserts: Double, updates: Double) {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let file = try ReplicaFile(
      path: directory.file("replica.db").path, wallClock: SystemClock.milliseconds,
      random: EntropyPool().next)
    _ = try file.write { try $0.execute(TaskRow.creation()) }
    switch self {
    case .tracked: try file.track([Name(TaskRow.table)])
    case .handWritten: _ = try file.write { try $0.execute(Self.handWrittenTriggers) }
    case .plain: break
    }
    let insert = try file.connection.prepare("INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)")
    let inserts = try time(rows, on: file.connection) { row in
      try insert.run(row)
    }
    let update = try file.connection.prepare("UPDATE tasks SET title = ?, done = ? WHERE id = ?")
    let updates = try time(rows, on: file.connection) { row in
      try update.run(row.notes, 1 - row.done, row.id)
    }
    return (inserts, updates)
  }

  private func time(
    _ rows: [TaskRow], on connection: SQLiteConnection, _ write: (TaskRow) throws -> Void
  ) throws -> Double {
    let watch = Stopwatch()
    for start in stride(from: 0, to: rows.count, by: 1_000) {
      try connection.transaction {
        for row in rows[start..<min(rows.count, start + 1_000)] { try write(row) }
      }
    }
    return watch.seconds * 1_000_000 / Double(rows.count)
  }

  /// Recording as an application without Ferry would write it. The row is stored as JSON, with a
  /// unique id in the order of time. An index finds the pending operations of a record.
  private static let handWrittenTriggers: String = {
    let id =
      "printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)) "
      + "|| lower(hex(randomblob(10)))"
    let members = TaskRow.columnNames.map { "'\($0)', NEW.\($0)" }.joined(separator: ", ")
    let triggers = ["insert", "update"].map { kind in
      """
      CREATE TRIGGER hand_\(kind) AFTER \(kind) ON tasks BEGIN
        INSERT INTO pending(id, tbl, record, kind, data)
        VALUES (\(id), 'tasks', NEW.id, '\(kind)', json_object(\(members)));
      END;
      """
    }
    return """
      CREATE TABLE pending(
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL, tbl TEXT NOT NULL, record TEXT NOT NULL,
        kind TEXT NOT NULL, data TEXT);
      CREATE INDEX pending_record ON pending(record);
      """ + triggers.joined()
  }()
}
