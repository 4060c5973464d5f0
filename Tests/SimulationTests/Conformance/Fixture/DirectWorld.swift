import FerryConformance
import FerryProtocol
import FerrySQLite
import FerryTestSupport

@testable import FerrySyncClient
@testable import FerrySyncServer

/// Devices and a store, passing packets and pages to each other without a network.
///
/// They have the faults that need no network: lost responses, packets out of order, copied devices
/// and restored backups.
final class DirectWorld {
  struct Faults {
    /// In a hundred syncs.
    var lostAnswers = 0
    /// In a thousand actions each.
    var copies = 0
    var setBacks = 0
    var upgrades = 0
    /// How far a clock may jump, milliseconds.
    var clockJumps: Int64 = 0
  }

  let limits: Limits
  var sizes = Workload.Sizes()
  private let directory: TemporaryDirectory
  let store: SQLiteStoreFile
  let space: SpaceSummary
  private(set) var devices: [DirectDevice] = []
  var bench = OracleBench()
  private(set) var events: [RunEvent] = []
  /// The packets received by the store, in order.
  private(set) var sent: [(packets: [IncomingPacket], now: Int64)] = []
  private(set) var violations: [Violation] = []
  private var random: SeededRandom
  private let faults: Faults
  private var now: Int64 = 1_800_000_000_000
  private let seed: UInt64
  private var backups: [(device: Int, directory: TemporaryDirectory, level: Int)] = []

  var storePath: String { directory.file("ferry.sqlite").path }

  init(seed: UInt64, devices count: Int, faults: Faults = Faults()) throws {
    self.seed = seed
    self.faults = faults
    random = SeededRandom(seed, "world")
    var limits = Limits()
    limits.operationsPerPacket = 12
    self.limits = limits
    sizes.largePost = 30
    directory = try TemporaryDirectory()
    // Many packets are larger than this, and are written in slices.
    store = try SQLiteStoreFile(
      path: directory.file("ferry.sqlite").path, limits: limits,
      slice: WriteSlice(rows: 6, bytes: 4_096, matches: 2))
    guard let name = SpaceName("demo") else { preconditionFailure("not a name") }
    space = try store.createSpace(name, epoch: Epoch(7))
    _ = try store.applySchema(
      SpaceSchema(json: Workload.declared), to: space.id, now: now, random: Self.schemaRandom
    ).get()
    for index in 0..<count { try add("device-\(index)") }
  }

  /// For the identifier of the schema's operation.
  static let schemaRandom: UInt64 = 1

  private func add(_ name: String, copyOf original: DirectDevice? = nil) throws {
    let clock = DirectClock(seed: SeededRandom.first(seed, name))
    devices.append(try DirectDevice(name, limits: limits, clock: clock, copyOf: original))
    if let original { devices[devices.count - 1].level = original.level }
  }

  private func tell(_ event: RunEvent) {
    events.append(event)
    violations += bench.see(event)
  }

  // MARK: Running

  /// Lets all devices work, and sync now and then; at the end all have everything.
  func run(operations: Int) throws -> [Violation] {
    let plan = Workload.plan(
      seed: seed, devices: devices.count, operations: operations, duration: 60_000)
    for planned in plan {
      for device in devices { device.clock.now += Int64(random.below(40)) }
      now += 20
      try perform(planned, on: devices[planned.device])
      if random.chance(1, in: 3) { try sync(devices[random.below(devices.count)]) }
      try disturb()
    }
    return try finish()
  }

  func finish() throws -> [Violation] {
    for device in devices { for _ in Workload.upgrades { try device.upgrade() } }
    for _ in 0..<4 {
      for device in devices { try sync(device, isCalm: true) }
    }
    violations += bench.judge(try final())
    return violations
  }

  func perform(_ planned: PlannedAction, on device: DirectDevice) throws {
    let recorded = try device.perform(planned, sizes: sizes)
    device.committed += recorded.map(\.id)
    tell(.committed(device: device.name, recorded))
    if random.chance(1, in: 2) { try observe(device) }
  }

  func observe(_ device: DirectDevice) throws {
    let evidence = try device.evidence()
    tell(.read(device: device.name, evidence))
    let pending = Set(evidence.pending)
    let gone = device.committed.filter { !pending.contains($0) }
    guard !gone.isEmpty else { return }
    device.committed.removeAll { !pending.contains($0) }
    tell(.confirmed(device: device.name, gone))
  }

  func final() throws -> FinalEvidence {
    let connection = try SQLiteConnection(path: storePath, mode: .readOnly)
    return FinalEvidence(
      server: try ServerEvidence.read(connection, space: space.name),
      replicas: Dictionary(
        uniqueKeysWithValues: try devices.map { ($0.name, try $0.evidence()) }))
  }

  // MARK: Syncing

  func sync(_ device: DirectDevice, isCalm: Bool = false) throws {
    try pull(device)
    for _ in 0..<3 { if try push(device, isCalm: isCalm) { break } }
    try observe(device)
    if isCalm || random.chance(1, in: 2) { try pull(device) }
    try observe(device)
  }

  private func pull(_ device: DirectDevice) throws {
    while case let keys = try device.file.refreshes.next(), !keys.isEmpty {
      try device.file.incoming.stage(
        try store.records(keys, in: space.id, byteLimit: store.limits.pageBytes, now: now).get(),
        ofRecords: keys)
    }
    while true {
      let request = PullRequest(
        cursor: try device.file.syncState().cursor, limit: 5, byteLimit: 1 << 20,
        device: try device.file.identity().device)
      let pull = SQLitePull(file: store, space: space.id, request: request, now: now)
      let body = try pull.page().get()
      let head = try PageReader.head(of: body)
      guard head.more else {
        if try device.file.apply(last: body, head).isToRepeat { continue }
        return
      }
      try device.file.incoming.stage(body, head, changes: head.count)
      if random.chance(1, in: 4) { try observe(device) }
    }
  }

  /// Sends pending packets, in any order. Returns whether the identity remains.
  private func push(_ device: DirectDevice, isCalm: Bool) throws -> Bool {
    while true {
      try device.file.chain.freeze(limit: 3)
      let file = device.file
      var packets = try file.packets.open().map {
        try file.operations.packet($0, of: file.identity().device)
      }
      guard !packets.isEmpty else { return true }
      packets.shuffle(using: &random)
      sending: for packet in packets {
        let incoming = [IncomingPacket(packet, byteCount: 100)]
        sent.append((incoming, now))
        let batch = try store.ingest(incoming, into: space.id, now: now)
        switch batch.results[0] {
        case .refused(let problem):
          if problem.code == .operationRefused {
            try quarantine(packet, problem, on: device)
            // The remaining operations have been cut into new packets.
            break sending
          }
          guard problem.code == .deviceForked else { throw problem }
          try device.file.chain.renewIdentity()
          return false
        case .accepted(let receipt, let released):
          if !isCalm && random.chance(faults.lostAnswers, in: 100) { return true }
          _ = try device.file.chain.receive(
            PacketAnswer(
              receipt: receipt, released: released, epoch: batch.epoch, head: batch.head,
              serverTime: now))
          if random.chance(1, in: 4) { try observe(device) }
        }
      }
    }
  }

  private func quarantine(
    _ packet: Packet, _ problem: Problem, on device: DirectDevice
  ) throws {
    let rows = try device.file.packets.open()
    guard let row = rows.first(where: { $0.tail == packet.tail }) else { throw problem }
    guard try device.file.refusedOperations.remove(from: row.number, problem.refusals) > 0 else {
      throw problem
    }
  }

  // MARK: Faults

  private func disturb() throws {
    let index = random.below(devices.count)
    let device = devices[index]
    if random.chance(faults.upgrades, in: 1_000) { try device.upgrade() }
    if faults.clockJumps > 0, random.chance(10, in: 1_000) {
      device.clock.now += Int64(random.below(Int(2 * faults.clockJumps))) - faults.clockJumps
    }
    if random.chance(faults.copies, in: 1_000) {
      let name = "device-\(devices.count)"
      try add(name, copyOf: device)
      let copy = devices[devices.count - 1]
      copy.committed = device.committed
      tell(.copied(device: name, from: device.name, try copy.evidence()))
    }
    try setBack(index)
  }

  /// Makes a copy of a file, and restores it some time later.
  private func setBack(_ index: Int) throws {
    if random.chance(faults.setBacks, in: 1_000) {
      let backup = try TemporaryDirectory()
      try devices[index].copyFiles(to: backup)
      backups.append((index, backup, devices[index].level))
    }
    guard !backups.isEmpty, random.chance(1, in: 20) else { return }
    let backup = backups.removeFirst()
    let device = devices[backup.device]
    try device.reopen(from: backup.directory)
    device.level = backup.level
    let survivors = try device.evidence()
    device.committed = survivors.pending
    tell(.lostPower(device: device.name, survivors: survivors))
  }
}

extension SeededRandom {
  /// Returns one number of a named stream.
  static func first(_ seed: UInt64, _ purpose: String) -> UInt64 {
    var random = SeededRandom(seed, purpose)
    return random.next()
  }
}
