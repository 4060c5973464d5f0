import FerryConformance
import FerryLaboratory

/// The events of a plan, as they come.
extension World {
  func perform(_ fault: PlannedFault) {
    guard !isOver else { return }
    let device = devices[fault.device]
    if device.mirror != nil, Self.onlyOfUsers.contains(fault.kind) { return }
    let duration = fault.duration * 1_000
    var random = SeededRandom(fault.seed, "event")
    switch fault.kind {
    case .partition: cut(device.link, [.up, .down], for: duration)
    case .partitionUp: cut(device.link, [.up], for: duration)
    case .partitionDown: cut(device.link, [.down], for: duration)
    case .deviceCrash: device.crash(losingPower: false, restartAfter: duration)
    case .devicePowerLoss: device.crash(losingPower: true, restartAfter: duration)
    case .serverCrash: crashServer(losingPower: false, restartAfter: duration)
    case .serverPowerLoss: crashServer(losingPower: true, restartAfter: duration)
    case .clockJump: jump(device, &random)
    case .copy: copy(device)
    case .restore: restore(device, after: duration, fault.ordinal, Again(&random))
    case .serverRestore: restoreServer(after: duration, fault.ordinal, Again(&random))
    case .absence: sendAway(device, for: duration, &random)
    case .upgrade: device.process?.upgrade()
    case .batchCopy: copyAfterBatch(device, startAfter: duration, fault)
    case .migration: device.process?.migrate(&random)
    case .attachment: attach(device, &random)
    case .nodeClockJump: nodeClocks.jump(&random, trace)
    case .latecomer: addDevice(devices.count, to: device.space).start()
    case .lies: lie(to: random.chance(1, in: 2) ? devices : [device], for: duration)
    }
  }

  /// Nobody copies a mirror's file, or writes to it by hand.
  private static let onlyOfUsers: Set<PlannedFault.Kind> = [
    .copy, .batchCopy, .migration, .attachment,
  ]

  private func cut(
    _ link: NetworkLink, _ directions: [NetworkLink.Direction], for duration: Int64
  ) {
    let ways = directions.map(\.rawValue).joined(separator: " and ")
    trace.record(.partitioned, link.device, peer: "server", ways)
    for direction in directions { link.cut(direction) }
    scheduler.after(duration) { [self] in
      trace.record(.healed, link.device, peer: "server", ways)
      for direction in directions { link.repair(direction) }
    }
  }

  /// Puts the hostile server between devices and the honest one.
  private func lie(to devices: [SimulatedDevice], for duration: Int64) {
    for device in devices { hostile?.begin(for: device.name) }
    scheduler.after(duration) { [self] in
      for device in devices { hostile?.end(for: device.name) }
    }
  }

  private func crashServer(losingPower: Bool, restartAfter duration: Int64) {
    server.crash(losingPower: losingPower)
    // A supervisor starts it again before long.
    scheduler.after(min(duration, 5_000_000)) { [self] in
      if server.generation == nil { server.start() }
    }
  }

  /// Sets the clock, as the user or the clock itself does.
  private func jump(_ device: SimulatedDevice, _ random: inout SeededRandom) {
    let reach: [Int64] = [2_000, 600_000, 86_400_000, 315_360_000_000]
    let size = Int64(random.below(Int(reach[random.below(reach.count)]) + 1))
    let leap = random.chance(1, in: 2) ? size : -size
    device.clock.offset += leap
    trace.record(.clockMoved, device.name, "\(leap) ms")
  }

  /// Makes a user of one device write to the file of another one, as of a machine with both.
  private func attach(_ device: SimulatedDevice, _ random: inout SeededRandom) {
    let others = devices.filter {
      $0.name != device.name && $0.space == device.space && $0.mirror == nil
    }
    guard !others.isEmpty else { return }
    let other = others[random.below(others.count)]
    guard !disk.fileNames(under: other.path).isEmpty else { return }
    device.process?.write(attaching: other, &random)
  }

  private func copy(_ original: SimulatedDevice) { makeCopy(of: original)?.start() }

  /// Makes a batch as the user. The file is copied before the batch is sent, or soon after, and the
  /// copy is used later.
  private func copyAfterBatch(
    _ original: SimulatedDevice, startAfter delay: Int64, _ fault: PlannedFault
  ) {
    let batch = PlannedAction(
      ordinal: -1 - fault.ordinal, at: fault.at, device: fault.device, action: .batch,
      seed: fault.seed)
    original.process?.perform(batch)
    scheduler.after(20_000) { [self] in
      guard let copy = makeCopy(of: original) else { return }
      copy.switchOff()
      scheduler.after(delay) { copy.switchOn() }
    }
  }

  private func makeCopy(of original: SimulatedDevice) -> SimulatedDevice? {
    guard !isOver, !disk.fileNames(under: original.path).isEmpty else { return nil }
    let copy = addDevice(devices.count, to: original.space)
    trace.record(.copied, copy.name, "a copy of \(original.name)")
    disk.copyFiles(under: "/\(original.name)/", to: "/\(copy.name)/")
    copy.inherit(from: original)
    return copy
  }

  /// The number of later restores of one backup, and the pause before each, microseconds.
  private struct Again {
    var pauses: [Int64]

    init(_ random: inout SeededRandom) {
      let times = random.chance(1, in: 2) ? 0 : 1 + random.below(2)
      pauses = (0..<times).map { _ in 500_000 + Int64(random.below(20_000_000)) }
    }

    mutating func next() -> Int64? { pauses.popLast() }
  }

  private func restore(
    _ device: SimulatedDevice, after duration: Int64, _ ordinal: Int, _ again: Again
  ) {
    guard !disk.fileNames(under: device.path).isEmpty else { return }
    let backup = "/backup-\(ordinal)"
    let boots = device.backUp(to: backup)
    restore(device, from: backup, boots: boots, after: duration, again)
  }

  private func restore(
    _ device: SimulatedDevice, from backup: String, boots: Int, after duration: Int64,
    _ again: Again
  ) {
    scheduler.after(duration) { [self] in
      device.restore(from: backup, boots: boots)
      var again = again
      guard dice.isActive, let pause = again.next() else {
        return disk.removeFiles(under: backup + "/")
      }
      restore(device, from: backup, boots: boots, after: pause, again)
    }
  }

  /// Restores the server's data from a backup, before the faults end.
  private func restoreServer(after duration: Int64, _ ordinal: Int, _ again: Again) {
    // Before a space exists there is nothing to back up, or only an admin could repair the result.
    guard hasAllSpaces, let copy = server.storage.makeCopy("backup-\(ordinal)") else { return }
    restoreServer(to: copy, after: duration, months: skipped.milliseconds, again)
  }

  private func restoreServer(
    to copy: String, after duration: Int64, months: Int64, _ again: Again
  ) {
    let left = Int64(options.seconds) * 1_000_000 - 1 - scheduler.now
    guard left >= 0 else { return }
    scheduler.after(max(0, min(duration, left))) { [self] in
      // A backup of months ago is not expected back (SPEC.md §5).
      guard skipped.milliseconds == months else { return }
      setServerBack(to: copy)
      scheduler.after(1_000_000) { [self] in if server.generation == nil { server.start() } }
      var again = again
      guard let pause = again.next() else { return server.storage.forget(copy: copy) }
      restoreServer(to: copy, after: pause, months: months, again)
    }
  }

  /// Connects the network with the world: a process dies at a step of the network.
  func connectNetwork() {
    network.onCrash = { [unowned self] name in
      trace.record(.crashed, name, "at a step of its network")
      kill(name)
    }
  }

  private func kill(_ owner: String) {
    if owner == SimulatedServer.name {
      crashServer(losingPower: false, restartAfter: 1_000_000)
    } else if let device = devices.first(where: { $0.name == owner }) {
      device.crash(losingPower: false, restartAfter: 1_000_000)
    }
  }

  /// Switches the device off, and lets months pass for all.
  private func sendAway(
    _ device: SimulatedDevice, for duration: Int64, _ random: inout SeededRandom
  ) {
    let months = Int64(30 + random.below(300))
    trace.record(.crashed, device.name, "switched off for \(months) days")
    device.switchOff()
    skipped.milliseconds += months * 86_400_000
    scheduler.after(duration) { device.switchOn() }
  }

  /// Connects the disk with the dice; the writer of a torn write dies.
  func connectDisk() {
    disk.faults = { [unowned self] step in
      dice.isActive ? fault(at: step, of: site(of: step.path)) : nil
    }
    disk.owner = { "/" + Self.owner(of: $0) + "/" }
    disk.onCrash = { [unowned self] path in
      let owner = Self.owner(of: path)
      scheduler.after(0) { [self] in kill(owner) }
    }
  }

  private func fault(
    at step: SimulatedDisk.Step, of owner: FaultDice.Site
  ) -> SimulatedDisk.Fault? {
    switch step.operation {
    case .write:
      if dice.roll(.diskFull, at: owner) { return noted(.diskFull, .diskFull, owner, step.path) }
      if dice.roll(.tornWrite, at: owner) { return noted(.crash, .tornWrite, owner, step.path) }
    case .sync:
      if dice.roll(.syncFailure, at: owner) {
        return noted(.syncFailure, .syncFailure, owner, step.path)
      }
    case .read: return nil
    case .open, .truncate, .delete: break
    }
    if step.operation != .write, dice.roll(.crash, at: owner) {
      return noted(.crash, .crashed, owner, step.path)
    }
    if dice.roll(.diskFailure, at: owner) {
      return noted(.ioFailure, .diskFailed, owner, step.path)
    }
    return nil
  }

  private func noted(
    _ fault: SimulatedDisk.Fault, _ kind: TraceEvent.Kind, _ owner: FaultDice.Site, _ path: String
  ) -> SimulatedDisk.Fault {
    trace.record(kind, owner.name, path)
    return fault
  }

  /// Returns the owner of a path, as the dice know it.
  private func site(of path: String) -> FaultDice.Site {
    if let site = diskSites[path] { return site }
    let site = dice.site(Self.owner(of: path))
    diskSites[path] = site
    return site
  }

  private static func owner(of path: String) -> String {
    path.split(separator: "/").first.map(String.init) ?? ""
  }
}
