import FerryConformance
import FerryLaboratory
import FerryNetworking
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// A device: a file, a clock, a link, and a process that comes and goes.
// SAFETY: touched on the scheduler's thread only.
final class SimulatedDevice: @unchecked Sendable {
  /// The state shared by devices and the world.
  // SAFETY: as the device.
  struct Setting: @unchecked Sendable {
    let scheduler: Scheduler
    let disk: SimulatedDisk
    let dice: FaultDice
    let trace: Trace
    let network: SimulatedNetwork
    let limits: Limits
    let skipped: SkippedTime
    /// The mistake of this world.
    let planted: PlantedFault?
    /// True if the application's last upgrade writes rows as edits of the user.
    let recordsSteps: Bool
    /// `nil` in a world without missions.
    let missions: MissionSetting?
    /// `nil` in a world without bundles.
    let bundles: BundleSetting?
    /// The space shared by all devices, if their files take part in a second one.
    let shared: SpaceName?
    /// True if the application has tables with different definitions on devices.
    let hasStrays: Bool
    /// True if it has the tables whose rows go with their parents.
    let hasBranches: Bool
    /// True if one device defines tables with odd names, and the others create them.
    let hasOdd: Bool
    /// True if users' triggers write to tracked tables.
    let hasStacks: Bool
    /// True if the tables of companies refuse and change some rows.
    let hasRules: Bool
    let hasOrders: Bool
    let heldRows: Int
    /// Finds the values behind conflicts; `nil` in a world whose events are not kept.
    let journal: ConflictJournal?
    /// Passes events of a device's ledger to the oracles of the ledger's space.
    let tell: (SimulatedDevice, SpaceName, RunEvent) -> Void
    /// Reports violations found by an oracle itself.
    let report: (SimulatedDevice, [Violation]) -> Void
  }

  /// A space of the file, and the number of the space's ledger there.
  struct Ledger {
    let space: SpaceName
    let number: Int

    /// Returns a connection with the usual names for the tables of the ledger.
    func on(_ connection: SQLiteConnection) -> SQLiteConnection {
      guard number > 1 else { return connection }
      return SQLiteConnection(
        sharing: connection, namespace: SQLNamespace(prefix: "ferry_", number: number))
    }
  }

  let name: String
  let space: SpaceName
  let link: NetworkLink
  var clock: DeviceClock
  let watches: Bool
  let syncPause: Int
  /// True if the program names the server when it opens the replica, and makes the first contact
  /// with the first sync.
  let connectsLate: Bool
  /// True if the file joins the space, after a first one: the shared space, or one without a
  /// server.
  let joins: Bool
  /// True if the device defines the tables with odd names, and publishes them.
  let definesOdd: Bool
  /// How often a restored server has lost their definitions, and the losses after which the device
  /// has published them again.
  var (oddLosses, mendedOddLosses) = (0, 0)
  /// True if the program renames a column of a shared table before the file joins the other space.
  var renamesShared: Bool { ledgers.count > 1 && connectsLate }
  private(set) var process: DeviceProcess?
  /// If its rows are in tables of PostgreSQL as well: these tables.
  private(set) var mirror: SimulatedMirror?
  /// Faults that keep it switched off; they may overlap.
  private var offCount = 0
  /// Missions requested and not cancelled by the user.
  var wanted: Set<MissionID> = []
  /// Bundles opened by the user.
  var opened: Set<BundleName> = []
  /// The number of restarts of the machine.
  private(set) var boots = 0
  private var isRetired = false
  /// True if the file has never gone back to an earlier state, and is no copy.
  private(set) var hasWholeFile = true
  /// True if a first list was filled in beside the tables.
  var hasFilled = false
  /// The spaces of the file: the device's own one first.
  let ledgers: [Ledger]
  /// Operations recorded here without a seen confirmation from the server, by space.
  private var unconfirmed: [SpaceName: [OperationID]] = [:]
  /// Another program's connection to the file; it goes when the machine goes.
  private var reader: SQLiteConnection?
  let setting: Setting
  private var random: SeededRandom

  var path: String { "/\(name)/replica.db" }
  var isUp: Bool { process != nil }

  init(
    name: String, space: SpaceName, link: NetworkLink, clock: DeviceClock, watches: Bool,
    connectsLate: Bool, joins: Bool, definesOdd: Bool, syncPause: Int, random: SeededRandom,
    setting: Setting
  ) {
    (self.connectsLate, self.joins) = (connectsLate, joins)
    self.definesOdd = definesOdd
    (self.name, self.space, self.link, self.clock) = (name, space, link, clock)
    (self.watches, self.syncPause, self.random) = (watches, syncPause, random)
    self.setting = setting
    let shared = setting.shared.map { Ledger(space: $0, number: joins ? 1 : 2) }
    ledgers = [Ledger(space: space, number: joins ? 2 : 1)] + (shared.map { [$0] } ?? [])
  }

  /// Makes the device a mirror.
  ///
  /// - Parameter adopts: Whether the tables are a company's, and are there before the mirror.
  func mirrorTables(in database: String, adopts: Bool) {
    mirror = SimulatedMirror(
      name, space: space, database: database, adopts: adopts, hasRules: setting.hasRules,
      hasOrders: setting.hasOrders, heldRows: setting.heldRows,
      scheduler: setting.scheduler, trace: setting.trace, dice: setting.dice
    ) { [unowned self] in crash(losingPower: false, restartAfter: 1_000_000) }
  }

  /// Makes one transaction of a user, or, on a mirror, of a program.
  func perform(_ action: PlannedAction) {
    if let mirror { mirror.perform(action) } else { process?.perform(action) }
  }

  // MARK: Life

  func start() {
    guard process == nil, offCount == 0, !isRetired else { return }
    setting.trace.record(.restarted, name)
    process = DeviceProcess(self, setting, seed: random.next())
    process?.run()
  }

  /// Kills the process with kill -9, or cuts the power. It starts again after `delay` microseconds.
  func crash(losingPower: Bool, restartAfter delay: Int64) {
    setting.trace.record(losingPower ? .lostPower : .crashed, name)
    stop(losingPower: losingPower)
    setting.scheduler.after(delay) { [self] in start() }
  }

  private func stop(losingPower: Bool) {
    let ended = process
    let carrier = ended?.carrier
    ended?.die()
    process = nil
    reader = nil
    notifyMissions(losingPower ? .wentBack(device: name) : .killed(device: name))
    if losingPower {
      boots += 1
      setting.disk.losePower(under: "/\(name)/")
      reportSurvivors()
    } else {
      setting.disk.kill(under: "/\(name)/")
      // The server may have them already, merged with others. The machine's power may take them
      // along. Within a torn write, nobody could read the file before.
      withExtendedLifetime(ended) { carrier?.reportLast() }
    }
    notifyBundles(.died(device: name))
    if !isRetired { lookAtBundles() }
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

  /// Copies all files of the machine for a later restore. Returns the number of restarts so far.
  func backUp(to directory: String) -> Int {
    setting.trace.record(.copied, name, "copied to \(directory)")
    setting.disk.copyFiles(under: "/\(name)/", to: directory + "/")
    notifyMissions(.backedUp(device: name, to: directory))
    return boots
  }

  /// Restores an earlier copy of the files, which the machine made after `formerBoots` restarts.
  func restore(from directory: String, boots formerBoots: Int) {
    setting.trace.record(.copied, name, "restored from \(directory)")
    stop(losingPower: false)
    setting.disk.removeFiles(under: "/\(name)/")
    setting.disk.copyFiles(under: directory + "/", to: "/\(name)/")
    notifyMissions(
      .restored(device: name, from: directory, isOtherBoot: boots != formerBoots))
    notifyBundles(.wentBack(device: name))
    lookAtBundles()
    reportSurvivors()
    start()
  }

  private func reportSurvivors() {
    hasWholeFile = false
    for ledger in ledgers {
      // If a file was never synced to the disk, nothing at all may be left of it.
      let survivors = evidence(of: ledger, withArchive: true) ?? ReplicaEvidence.nothing
      unconfirmed[ledger.space] = survivors.pending
      setting.tell(self, ledger.space, .lostPower(device: name, survivors: survivors))
    }
  }

  // MARK: Looking

  /// Returns the content of the file's ledger of a space; `nil` before it exists.
  ///
  /// It is read on the process's own connection between two transactions. This saves a connection
  /// with a new read of the whole schema after each crash. If there is no such connection, or if a
  /// transaction was left open, it is read on a connection of another program.
  ///
  /// - Parameter isApart: Always reads as another program.
  func evidence(
    of ledger: Ledger, isApart: Bool = false, withArchive: Bool = false
  ) -> ReplicaEvidence? {
    look(at: ledger, isApart: isApart) { try ReplicaEvidence.read($0, withArchive: withArchive) }
  }

  /// Returns the content of a ledger at the end of a run.
  func finalEvidence(of ledger: Ledger) -> ReplicaEvidence? {
    guard var evidence = evidence(of: ledger, isApart: true, withArchive: true) else { return nil }
    if setting.hasBranches {
      evidence.listed = look(at: ledger, isApart: true, ReplicaEvidence.listedLosses) ?? []
    }
    if let (entries, after) = look(at: ledger, isApart: true, ReplicaEvidence.overruledEntries) {
      (evidence.overruled, evidence.overruledAfter) = (entries, after)
    }
    return evidence
  }

  /// Returns faults in the structure of the file, if a first list has moved the tables.
  func judgeFile() -> [Violation] {
    guard hasFilled else { return [] }
    let faults = look(at: ledgers[0], isApart: true) { connection in
      try connection.rows("PRAGMA integrity_check(3)") { $0.text(0) }
    }
    return (faults ?? []).filter { $0 != "ok" }.map {
      Violation(oracle: "sound-files", "\(name): \($0)")
    }
  }

  /// Returns a ledger's progress: the evidence without rows and pending operations.
  func progress(of ledger: Ledger) -> ReplicaEvidence? {
    look(at: ledger, isApart: false, ReplicaEvidence.readProgress)
  }

  /// Returns operations not confirmed by the server of a space.
  func unconfirmedOperations(of ledger: Ledger) -> [OperationID]? {
    look(at: ledger, isApart: false, ReplicaEvidence.unconfirmedOperations)
  }

  /// Reads a ledger as ``evidence(of:isApart:withArchive:)`` does.
  func look<T>(
    at ledger: Ledger, isApart: Bool, _ read: (SQLiteConnection) throws -> T
  ) -> T? {
    guard !isRetired else { return nil }
    do {
      return try setting.dice.quietly {
        if !isApart, let connection = process?.connection(of: ledger), !connection.isInTransaction {
          return try read(connection)
        }
        guard let reader = try reader ?? openReader() else { return nil }
        self.reader = reader
        return try read(ledger.on(reader))
      }
    } catch {
      // The file has no tables yet.
      reader = nil
      return nil
    }
  }

  private func openReader() throws -> SQLiteConnection? {
    guard !setting.disk.fileNames(under: path).isEmpty else { return nil }
    return try SQLiteConnection(
      path: path, mode: .readWrite, fileSystem: setting.disk.fileSystem)
  }

  func committed(_ operations: [LocalOperation], in ledger: Ledger) {
    setting.tell(self, ledger.space, .committed(device: name, operations))
    unconfirmed[ledger.space, default: []] += operations.map(\.id)
  }

  /// Passes the file's state for a reader at this moment to the oracles.
  func observe() {
    for ledger in ledgers { observe(ledger) }
  }

  private func observe(_ ledger: Ledger) {
    guard let evidence = evidence(of: ledger) else { return }
    setting.tell(self, ledger.space, .read(device: name, evidence))
    let pending = Set(evidence.pending)
    let confirmed = (unconfirmed[ledger.space] ?? []).filter { !pending.contains($0) }
    guard !confirmed.isEmpty else { return }
    unconfirmed[ledger.space]?.removeAll { !pending.contains($0) }
    setting.tell(self, ledger.space, .confirmed(device: name, confirmed))
  }

  /// Copies the known facts of the device whose file this one got a copy of.
  func inherit(from original: SimulatedDevice) {
    (wanted, opened) = (original.wanted, original.opened)
    hasWholeFile = false
    setting.journal?.inherit(name, from: original.name)
    notifyMissions(.copied(device: name, from: original.name))
    notifyBundles(.copied(device: name, from: original.name))
    lookAtBundles()
    for ledger in ledgers {
      guard let evidence = evidence(of: ledger, withArchive: true) else { continue }
      unconfirmed[ledger.space] = evidence.pending
      setting.tell(self, ledger.space, .copied(device: name, from: original.name, evidence))
    }
  }
}

extension ReplicaEvidence {
  /// A missing file.
  fileprivate static var nothing: ReplicaEvidence {
    ReplicaEvidence(
      device: DeviceID(UniqueID(high: 0, low: 0)), rows: ReplicaRows(), applied: 0, epoch: nil,
      pending: [], unconfirmed: 0, waiting: 0, refused: 0)
  }
}
