import FerryProtocol
import Foundation
import Laboratory
import Postgres
import SyncClient

extension Benchmark {
  /// What remains of a store after many updates of few records, against one that has only these.
  static let retention = Benchmark(
    name: "retention",
    summary: "What 1,000,000 updates of 10,000 records leave of each store after pruning."
  ) { surroundings in
    let directory = try TemporaryDirectory()
    return [
      try await RetentionBench(name: "retention, embedded store") { try .embedded(directory) }
        .run(surroundings),
      try await RetentionBench(name: "retention, PostgreSQL") {
        .postgres(try surroundings.makeDatabase())
      }.run(surroundings),
    ]
  }
}

/// One kind of store, filled and pruned by real processes.
private struct RetentionBench {
  enum Store {
    case embedded(directory: String)
    case postgres(String)

    static func embedded(_ parent: TemporaryDirectory) throws -> Store {
      .embedded(directory: parent.file(UUID().uuidString).path)
    }

    var arguments: [String] {
      switch self {
      case .embedded(let directory): ["--data", directory]
      case .postgres(let url): ["--database", url]
      }
    }
  }

  private static let space = "retention"
  private static let perPacket = 1_000

  let name: String
  let makeStore: () throws -> Store

  func run(_ surroundings: Surroundings) async throws -> Measurement {
    let records = 10_000
    let updates = surroundings.size(1_000_000, quick: 100_000)
    surroundings.begin(name, "operations", total: updates + 2 * records)
    let bare = try await fill(records: records, updates: 0, surroundings)
    let pruned = try await fill(records: records, updates: updates, surroundings)
    return Measurement(
      name: name, figure: Amount(pruned.bytes, .bytes), raw: Amount(bare.bytes, .bytes),
      target: .ratioAtMost(2),
      notes: [
        "\(Amount(pruned.bytesBefore, .bytes).text) before pruning, which took "
          + "\(pruned.pruning.rounded(to: 1)) s; updates at "
          + Amount(Double(updates + records) / pruned.filling, .perSecond("operations")).text
      ])
  }

  private struct Filled {
    var bytesBefore: Double
    var bytes: Double
    /// Seconds.
    var filling: Double
    var pruning: Double
  }

  private func fill(
    records: Int, updates: Int, _ surroundings: Surroundings
  ) async throws -> Filled {
    let store = try makeStore()
    let daemon = try await Daemon.start(store: store.arguments)
    let client = LoadClient(daemon)
    try await client.makeSpace(Self.space)
    let devices = 4
    var watch = Stopwatch()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for device in 0..<devices {
        group.addTask {
          var load = UpdateLoad(seed: UInt64(device), records: records / devices)
          for _ in 0..<(records + updates) / devices / Self.perPacket {
            try await client.send(load.packet(of: Self.perPacket).encoded(), to: Self.space)
            surroundings.advance(by: Self.perPacket)
          }
        }
      }
      try await group.waitForAll()
    }
    let filling = watch.seconds
    let before = try await bytes(of: store)
    watch = Stopwatch()
    let prune = try await ChildProcess.run(
      try Executables.ferryd(),
      ["space", "prune", Self.space, "--older-than", "0s"] + store.arguments)
    guard prune.status == .exited(0) else { throw BenchError(prune.error) }
    let pruning = watch.seconds
    try await daemon.stop()
    return Filled(
      bytesBefore: before, bytes: try await bytes(of: store), filling: filling, pruning: pruning)
  }

  private func bytes(of store: Store) async throws -> Double {
    switch store {
    case .embedded(let directory):
      let files = FileManager.default
      return try files.contentsOfDirectory(atPath: directory).reduce(0) { sum, file in
        let size = try files.attributesOfItem(atPath: "\(directory)/\(file)")[.size]
        return sum + Double(size as? Int ?? 0)
      }
    case .postgres(let url):
      let pool = try PostgresPool(url: url, connections: 1)
      let bytes = try await pool.run { connection in
        try connection.query(
          .once(
            """
            SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
            """))[0].int8(0)
      }
      await pool.close()
      return Double(bytes)
    }
  }
}

/// A device that makes its records, and then changes them again and again.
private struct UpdateLoad {
  private let device: DeviceID
  private let records: [TaskRow]
  private var clock = HybridClock()
  private var dependency: OperationID?
  private var made = 0

  init(seed: UInt64, records count: Int) {
    var random = SeededRandom(seed: seed)
    let now = HybridTimestamp(milliseconds: SystemClock.milliseconds())
    device = DeviceID(UniqueID(timestamp: now, random: .random(in: .min ... .max)))
    records = (0..<count).map { _ in
      TaskRow(id: UniqueID(timestamp: now, random: random.next()), random: &random)
    }
  }

  mutating func packet(of count: Int) -> Packet {
    let operations = (0..<count).map { _ in operation() }
    let packet = Packet(device: device, dependency: dependency, operations: operations)
    dependency = packet.tail
    return packet
  }

  private mutating func operation() -> FerryProtocol.Operation {
    let time = clock.tick(wall: SystemClock.milliseconds())
    let row = records[made % records.count]
    let isNew = made < records.count
    made += 1
    return FerryProtocol.Operation(
      id: OperationID(UniqueID(timestamp: time, random: .random(in: .min ... .max))),
      key: RecordKey(table: TaskRow.table, record: row.id), kind: isNew ? .insert : .update,
      time: time, columns: isNew ? row.columns : [Column("priority", .integer(Int64(made)))])
  }
}
