import FerryLaboratory
import FerryProtocol
import FerrySQLite
import FerrySyncClient

extension Benchmark {
  /// The disk space of a record with the insert operation, in each store.
  static let storage = Benchmark(
    name: "storage",
    summary: "The disk of a record in each store, with its history; four devices write in turns."
  ) { context in
    let directory = try TemporaryDirectory()
    let stores = [
      ("embedded store", BenchStore.embedded(directory: directory.file("store").path)),
      ("PostgreSQL", .postgres(try context.makeDatabase())),
    ]
    let packets = context.size(1_000, quick: 200)
    context.begin("storage", "packets", total: packets * stores.count)
    let raw = try rawBytes(of: packets, at: directory.file("raw.db").path)
    var measurements: [Measurement] = []
    for (name, store) in stores {
      let daemon = try await Daemon.start(store: store.arguments)
      let client = LoadClient(daemon)
      try await client.makeSpace("storage")
      let before = try await store.bytes()
      var devices = (0..<4).map { DeviceLoad(seed: UInt64($0)) }
      for packet in 0..<packets {
        let body = devices[packet % devices.count].packet(of: recordsPerPacket).encoded()
        try await client.send(body, to: "storage")
        context.advance()
      }
      try await daemon.stop()
      let bytes = try await store.bytes() - before
      measurements.append(
        Measurement(
          name: "disk of a record, \(name)",
          figure: Amount(bytes / Double(packets * recordsPerPacket), .bytes),
          raw: Amount(raw, .bytes), target: .atMost(600),
          notes: [
            "\((packets * recordsPerPacket).grouped) records of five columns, with indexes and "
              + "history, against a table of rows of the same kind in SQLite"
          ]))
    }
    return measurements
  }

  private static let recordsPerPacket = 100

  /// Returns the bytes of a row in an application's own table.
  private static func rawBytes(of packets: Int, at path: String) throws -> Double {
    let connection = try SQLiteConnection(path: path)
    try connection.execute(TaskRow.creation())
    var random = SeededRandom(seed: 1)
    let rows = packets * recordsPerPacket
    try connection.transaction {
      let insert = try connection.statement("INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)")
      for _ in 0..<rows {
        let time = HybridTimestamp(milliseconds: SystemClock.milliseconds())
        let row = TaskRow(id: UniqueID(timestamp: time, random: random.next()), random: &random)
        try insert.run(row.id, row.title, row.notes, row.priority, row.done, row.due)
      }
    }
    let pages = try connection.first(
      "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    ) { $0.int64(0) }
    return Double(pages ?? 0) / Double(rows)
  }
}
