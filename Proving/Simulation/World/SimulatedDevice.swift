import FerryConformance
import FerryNetworking
import FerryProtocol
import FerrySQLite
import FerrySimulatedDisk
import FerrySyncClient

/// A device: a file, a clock, a link, and a process that comes and goes.
// SAFETY: touched on the scheduler's thread only.
final class SimulatedDevice: @unchecked Sendable {
  /// The state that devices share with the world.
  // SAFETY: as the device.
  struct Setting: @unchecked Sendable {
    let scheduler: Scheduler
    let disk: SimulatedDisk
    let dice: FaultDice
    let trace: Trace
    let network: SimulatedNetwork
    let limits: Limits
    let skipped: SkippedTime
    /// The mistake that this world makes.
    let planted: PlantedFault?
    /// `nil` in a world without missions.
    let missions: MissionSetting?
    /// Passes events to the oracles.
    let tell: (SimulatedDevice, RunEvent) -> Void
    /// Reports violations that an oracle found by itself.
    let report: (SimulatedDevice, [Violation]) -> Void
  }

  let name: String
  let space: SpaceName
  let link: NetworkLink
  var clock: DeviceClock
  let watches: Bool
  let syncPause: Int
  /// Whether its program names the server when it opens the replica, and makes the first contact
  /// with the first sync.
  let connectsLate: Bool
  /// Whether its file joins the space, after a first one without a server.
  let joins: Bool
  private(set) var process: DeviceProcess?
  /// Faults that keep it switched off; they may overlap.
  private var offCount = 0
  /// Missions that its user requested and did not cancel.
  var wanted: Set<MissionID> = []
  /// The number of times that its machine was switched on again.
  private(set) var boots = 0
  private var isRetired = false
  /// Operations recorded here that the server has not been seen to confirm.
  private var unconfirmed: [OperationID] = []
  /// Another program's connection to the file; it goes when the machine goes.
  private var reader: SQLiteConnection?
  let setting: Setting
  private var random: SeededRandom

  var path: String { "/\(name)/replica.db" }
  var isUp: Bool { process != nil }

  init(
    name: String, space: SpaceName, link: NetworkLink, clock: DeviceClock, watches: Bool,
    connectsLate: Bool, joins: Bool, syncPause: Int, random: SeededRandom, setting: Setting
  ) {
    (self.connectsLate, self.joins) = (connectsLate, joins)
    (self.name, self.space, self.link, self.clock) = (name, space, link, clock)
    (self.watches, self.syncPause, self.random) = (watches, syncPause, random)
    self.setting = setting
  }

  // MARK: Life

  func start() {
    guard process == nil, offCount == 0, !isRetired else { return }
    setting.trace.note(.restarted, name)
    process = DeviceProcess(self, setting, seed: random.next())
    process?.run()
  }

  /// Kills the process with kill -9, or cuts the power. It starts again after `delay` microseconds.
  func crash(losingPower: Bool, restartAfter delay: Int64) {
    setting.trace.note(losingPower ? .lostPower : .crashed, name)
    stop(losingPower: losingPower)
    setting.scheduler.after(delay) { [self] in start() }
  }

  private func stop(losingPower: Bool) {
    process?.die()
    process = nil
    reader = nil
    tellMissions(losingPower ? .wentBack(device: name) : .killed(device: name))
    if losingPower {
      boots += 1
      setting.disk.losePower(under: "/\(name)/")
      tellSurvivors()
    } else {
      setting.disk.kill(under: "/\(name)/")
    }
  }

  /// Switches the device off until ``switchOn()``.
  func switchOff() {
    offCount += 1
    stop(losingPower: false)
  }

  func switchOn() {
    offCount = max(0, offCount - 1)
    start()
  }

  /// Ends all reasons for which it is off.
  func switchOnForGood() {
    offCount = 0
    start()
  }

  /// Ends the device with the world: it never starts again.
  func retire() {
    isRetired = true
    stop(losingPower: false)
  }

  /// Puts an earlier copy of its file in place.
  func restore(from directory: String) {
    setting.trace.note(.copied, name, "set back to an earlier copy")
    stop(losingPower: false)
    setting.disk.removeFiles(under: "/\(name)/")
    setting.disk.copyFiles(under: directory + "/", to: "/\(name)/")
    tellMissions(.wentBack(device: name))
    tellSurvivors()
    start()
  }

  private func tellSurvivors() {
    // If a file was never synced to the disk, nothing at all may be left of it.
    let survivors = evidence(withArchive: true) ?? ReplicaEvidence.nothing
    unconfirmed = survivors.pending
    setting.tell(self, .lostPower(device: name, survivors: survivors))
  }

  // MARK: Looking

  /// Returns the file's content; `nil` before the file exists.
  ///
  /// It is read on the process's own connection between two transactions. That saves a connection
  /// that reads the whole schema again after each crash. If there is no such connection, or if a
  /// transaction was left open, it is read on a connection of another program.
  ///
  /// - Parameter isApart: Always reads as another program.
  func evidence(isApart: Bool = false, withArchive: Bool = false) -> ReplicaEvidence? {
    look(isApart: isApart) { try ReplicaEvidence.read($0, withArchive: withArchive) }
  }

  /// Returns the file's progress: its evidence without rows and pending operations.
  func progress() -> ReplicaEvidence? { look(isApart: false, ReplicaEvidence.readProgress) }

  /// Returns operations that the server has not confirmed.
  func unconfirmedOperations() -> [OperationID]? {
    look(isApart: false, ReplicaEvidence.unconfirmedOperations)
  }

  private func look<T>(isApart: Bool, _ read: (SQLiteConnection) throws -> T) -> T? {
    guard !isRetired else { return nil }
    do {
      return try setting.dice.quietly {
        if !isApart, let connection = process?.connection, !connection.isInTransaction {
          return try read(connection)
        }
        guard let reader = try reader ?? openReader() else { return nil }
        self.reader = reader
        return try read(reader)
      }
    } catch {
      // The file has no tables yet.
      reader = nil
      return nil
    }
  }

  private func openReader() throws -> SQLiteConnection? {
    guard !setting.disk.fileNames(under: path).isEmpty else { return nil }
    return ledger(
      on: try SQLiteConnection(
        path: path, mode: .readWrite, fileSystem: setting.disk.fileSystem))
  }

  /// Returns a connection that knows the tables of the space's ledger by their usual names.
  func ledger(on connection: SQLiteConnection) -> SQLiteConnection {
    guard joins else { return connection }
    return SQLiteConnection(
      sharing: connection, namespace: SQLNamespace(prefix: "ferry_", number: 2))
  }

  func committed(_ operations: [LocalOperation]) {
    setting.tell(self, .committed(device: name, operations))
    unconfirmed += operations.map(\.id)
  }

  /// Passes the state that a reader of the file sees at this moment to the oracles.
  func observe() {
    guard let evidence = evidence() else { return }
    setting.tell(self, .read(device: name, evidence))
    let pending = Set(evidence.pending)
    let confirmed = unconfirmed.filter { !pending.contains($0) }
    guard !confirmed.isEmpty else { return }
    unconfirmed.removeAll { !pending.contains($0) }
    setting.tell(self, .confirmed(device: name, confirmed))
  }

  /// Copies the known facts of the device whose file this one got a copy of.
  func inherit(from original: SimulatedDevice) {
    wanted = original.wanted
    tellMissions(.copied(device: name, from: original.name))
    guard let evidence = evidence(withArchive: true) else { return }
    unconfirmed = evidence.pending
    setting.tell(self, .copied(device: name, from: original.name, evidence))
  }
}

extension ReplicaEvidence {
  /// A file that is not there.
  fileprivate static var nothing: ReplicaEvidence {
    ReplicaEvidence(
      device: DeviceID(UniqueID(high: 0, low: 0)), rows: ReplicaRows(), applied: 0, epoch: nil,
      pending: [], unconfirmed: 0, waiting: 0, refused: 0)
  }
}
