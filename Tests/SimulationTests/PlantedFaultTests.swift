#if DEBUG
  import Conformance
  import FerryProtocol
  import Simulation
  import Testing

  /// The proof that the simulator can fail: each known mistake, planted alone, is found. It can be
  /// planted in debug builds only.
  @Suite(.timeLimit(.minutes(8)))
  struct PlantedFaultTests {
    /// A swarm's world that is quick in a debug build, with the limits at which the mistake shows.
    private static func world(_ seed: UInt64, for fault: PlantedFault? = nil) throws -> WorldResult
    {
      let isAboutParts = fault == .transactionTornOnServer || fault == .pageAppliedEarly
      // What is recorded again is harmless until somebody has written the same in between; and few
      // writes meet in one record while a packet is on its way.
      let isRare = fault == .appliedChangesRecorded || fault == .acknowledgeByRecord
      let operations = isRare ? 300 : isAboutParts || fault == .tiesUnresolved ? 200 : 80
      var options = WorldOptions.drawn(
        seed: seed, devices: isAboutParts ? 3 : 4, operations: operations)
      if fault == .transactionTornOnServer { options.packetOperations = 2 }
      if fault == .pageAppliedEarly { options.pageChanges = 2 }
      // Where the server is set back, oracles let more pass.
      let isAboutSetBacks = fault == .anchorNotChecked || fault == .archiveForgotten
      options.serverRestores = isAboutSetBacks ? 3 : 0
      if isAboutSetBacks {
        (options.copies, options.restores, options.devicePowerLosses) = (0, 0, 0)
        (options.absences, options.watchers, options.syncPause) = (0, 0, 6_000)
      }
      // Writes of one moment, and devices that write under one name.
      if fault == .tiesUnresolved { (options.clockStep, options.clockSkew) = (60_000, 0) }
      // A death between two steps of one pull.
      if fault == .cursorApartFromRows { (options.crash, options.deviceCrashes) = (20_000, 40) }
      if fault == .noForkDetection { (options.copies, options.restores) = (6, 6) }
      options.missions = 0
      if let fault, missionFaults.contains(fault) { Self.setMissions(&options) }
      // The power goes while much is on its way.
      if fault == .mapBelieved {
        for field in WorldOptions.Field.all where field.isFault { field.set(&options, 0) }
        (options.delayMin, options.delayMax, options.seconds) = (1_500, 2_500, 300)
        (options.missions, options.devicePowerLosses) = (4, 30)
      }
      // Some mistakes never come to rest; no sound world of this size takes as many steps.
      return try World(seed: seed, options: options, stepsMax: 400_000).run()
    }

    private static let missionFaults: [PlantedFault] = [
      .missionInUseEarly, .chunkUnchecked, .mapBelieved, .contentNotSynced, .sharedContentRemoved,
    ]

    /// Missions that come and go on machines that fail.
    private static func setMissions(_ options: inout WorldOptions) {
      (options.missions, options.operations, options.seconds) = (3, 10, 120)
      (options.deviceCrashes, options.devicePowerLosses) = (10, 20)
      (options.corrupt, options.delayMax, options.syncPause) = (60_000, 200, 1_000)
      (options.partitions, options.oneWayPartitions, options.absences) = (4, 0, 0)
      (options.drop, options.stall, options.slow, options.reset) = (5_000, 0, 0, 10_000)
    }

    /// In how many worlds, from seed 1, each mistake is found.
    private static let seeds: UInt64 = 12

    @Test(
      "the swarm finds a planted mistake within a few worlds", arguments: PlantedFault.allCases)
    func finds(_ fault: PlantedFault) async throws {
      let found = try await WorldThreads.run { () -> String? in
        for seed in 1...Self.seeds {
          let result = try fault.planted { try Self.world(seed, for: fault) }
          if let violation = result.violations.first { return "seed \(seed): \(violation)" }
        }
        return nil
      }
      #expect(found != nil, "\(fault) is not found in \(Self.seeds) worlds")
    }

    @Test(
      "without a planted mistake no oracle objects to the same worlds",
      arguments: [
        nil, PlantedFault.transactionTornOnServer, .pageAppliedEarly, .anchorNotChecked,
        .appliedChangesRecorded, .tiesUnresolved, .noForkDetection, .cursorApartFromRows,
        .missionInUseEarly, .mapBelieved,
      ],
      1...Self.seeds)
    func control(_ shape: PlantedFault?, _ seed: UInt64) async throws {
      let result = try await WorldThreads.run { try Self.world(seed, for: shape) }
      #expect(result.violations.isEmpty, "\(result.violations)")
    }

    @Test("a mistake is planted on one thread and gone afterwards")
    func planting() async throws {
      let (before, during, other, after) = try await WorldThreads.run {
        let before = PlantedFault.allCases.filter(\.isPlanted)
        let (during, other) = PlantedFault.noForkDetection.planted {
          (PlantedFault.noForkDetection.isPlanted, PlantedFault.tiesUnresolved.isPlanted)
        }
        return (before, during, other, PlantedFault.allCases.filter(\.isPlanted))
      }
      #expect(before.isEmpty && during && !other && after.isEmpty)
    }
  }
#endif
