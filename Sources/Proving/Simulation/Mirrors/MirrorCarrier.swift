import FerryConformance
import FerryMirror
import FerryPersistence
import FerrySQLite
import FerrySyncClient

/// Carries the rows of a mirror in a device's process, and passes the operations of programs'
/// writes to the oracles.
// SAFETY: touched on the scheduler's thread only.
final class MirrorCarrier: @unchecked Sendable {
  private unowned let process: DeviceProcess
  private let mirror: SimulatedMirror
  private let replica: Replica
  private let processor: Processor
  /// `nil` before the first round.
  private var rounds: MirrorRounds?
  /// The newest operation of a transaction with programs' writes, and all operations of it, until
  /// the oracles know them.
  private var taken: (last: Int64, operations: [LocalOperation])?

  private var device: SimulatedDevice { process.device }

  init(_ process: DeviceProcess, _ mirror: SimulatedMirror, _ replica: Replica, seed: UInt64) {
    (self.process, self.mirror, self.replica) = (process, mirror, replica)
    processor = Processor(
      process.setting.scheduler, random: SeededRandom(seed, "tables")
    ) { [weak process] in process?.isAlive ?? false }
  }

  /// Carries all present rows, both ways.
  func carry() async throws {
    defer { reportWritten() }
    try await currentRounds().runOnce()
    guard process.isAlive else { return }
    process.setting.trace.record(.synced, device.name, "carried rows")
    reportWritten()
    device.observe()
  }

  private func currentRounds() async throws -> MirrorRounds {
    if let rounds { return rounds }
    // A mirror with the company's numbers pulls nothing before it can ask for them.
    if mirror.numbers == nil { _ = try await replica.sync() }
    let (path, fileSystem) = (device.path, process.setting.disk.fileSystem)
    let new = try await mirror.rounds(
      of: replica, processor: processor,
      openFile: { try SQLiteConnection(path: path, mode: .readOnly, fileSystem: fileSystem) },
      observe: { [weak self] in
        guard let self, process.isAlive else { return }
        reportWritten()
        device.observe()
      },
      taking: { [weak self] database, body in
        guard let self else { throw Processor.Died() }
        try write(database, body)
      })
    rounds = new
    return new
  }

  /// Makes the writes of programs, and keeps their operations until they are known to be committed.
  private func write(_ database: Database, _ body: () throws -> Void) throws {
    reportWritten()
    let ledger = device.ledgers[0].on(database.connection)
    let before = try RecordedOperations.lastSequence(ledger)
    try body()
    let operations = try RecordedOperations.read(ledger, after: before)
    taken = operations.isEmpty ? nil : (try RecordedOperations.lastSequence(ledger), operations)
  }

  /// Passes the operations of the last such transaction to the oracles, as long as the process
  /// lives.
  func reportWritten() {
    if process.isAlive { reportLast() }
  }

  /// Passes the operations of the last such transaction to the oracles, if the file has them.
  func reportLast() {
    guard let (last, operations) = taken else { return }
    taken = nil
    let isThere = device.look(at: device.ledgers[0], isApart: false) {
      try RecordedOperations.lastSequence($0) >= last
    }
    guard isThere == true else { return }
    mirror.took(operations)
    process.reportOperations([operations], by: "a program")
  }
}
