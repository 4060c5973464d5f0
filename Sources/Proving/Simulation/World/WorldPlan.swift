import FerryConformance

/// An event other than a user's action.
package struct PlannedFault: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable {
    case partition, partitionUp, partitionDown
    case deviceCrash, devicePowerLoss, serverCrash, serverPowerLoss
    case clockJump, copy, restore, serverRestore, absence, upgrade
    case batchCopy, nodeClockJump, migration, attachment, lies, latecomer
  }

  /// Names the event in shrunk histories.
  package var ordinal: Int
  /// Milliseconds since the start.
  package var at: Int64
  package var kind: Kind
  /// The device's place among the devices; not used for events of the server.
  package var device: Int
  /// The duration, milliseconds.
  package var duration: Int64
  /// The seed of the event's choices.
  package var seed: UInt64
}

/// Everything decided in a world before it starts.
package struct WorldPlan: Sendable, Equatable {
  package var actions: [PlannedAction]
  package var faults: [PlannedFault]
  /// Permitted faults by chance; `nil`: the dice decide.
  package var chances: Set<FaultName>?
  /// The actions of publishers and users on missions.
  package var missions: [PlannedMission] = []
  /// The actions of publishers and users on bundles.
  package var bundles: [PlannedBundle] = []

  /// Draws a plan from the seed.
  package init(seed: UInt64, options: WorldOptions) {
    actions = Workload.plan(
      seed: seed, devices: options.devices, operations: options.operations,
      duration: Int64(options.seconds) * 1_000, mix: options.mix)
    faults = Self.faults(seed, options)
    missions = PlannedMission.plan(seed: seed, options: options)
    bundles = PlannedBundle.plan(seed: seed, options: options)
  }

  private static func faults(_ seed: UInt64, _ options: WorldOptions) -> [PlannedFault] {
    let counts: [(PlannedFault.Kind, Int)] = [
      (.partition, options.partitions), (.partitionUp, options.oneWayPartitions / 2),
      (.partitionDown, options.oneWayPartitions - options.oneWayPartitions / 2),
      (.deviceCrash, options.deviceCrashes), (.devicePowerLoss, options.devicePowerLosses),
      (.serverCrash, options.serverCrashes), (.serverPowerLoss, options.serverPowerLosses),
      (.clockJump, options.clockJumps), (.copy, options.copies), (.restore, options.restores),
      (.serverRestore, options.serverRestores), (.absence, options.absences),
      (.batchCopy, options.batchCopies), (.nodeClockJump, options.nodeClockJumps),
      (.migration, options.migrations), (.attachment, options.attachments),
      (.lies, options.lies), (.latecomer, options.latecomers),
    ]
    var faults: [PlannedFault] = []
    for (kind, count) in counts {
      var random = SeededRandom(seed, "events-\(kind.rawValue)")
      for _ in 0..<count {
        faults.append(fault(kind, options, device: random.below(options.devices), &random))
      }
    }
    var random = SeededRandom(seed, "upgrades")
    for device in 0..<options.devices {
      let steps = Workload.stepCount(isRecorded: options.recordedSteps > 0)
      for _ in 0..<steps where random.chance(options.upgrades, in: 100) {
        faults.append(fault(.upgrade, options, device: device, &random))
      }
    }
    faults.sort { ($0.at, $0.kind.rawValue, $0.device) < ($1.at, $1.kind.rawValue, $1.device) }
    for index in faults.indices { faults[index].ordinal = index }
    return faults
  }

  private static func fault(
    _ kind: PlannedFault.Kind, _ options: WorldOptions, device: Int, _ random: inout SeededRandom
  ) -> PlannedFault {
    let length = Int64(options.seconds) * 1_000
    let duration = 100 + Int64(random.below(random.chance(1, in: 4) ? Int(length) / 2 : 8_000))
    return PlannedFault(
      ordinal: 0, at: Int64(random.below(Int(length))), kind: kind, device: device,
      duration: duration, seed: random.next())
  }
}
