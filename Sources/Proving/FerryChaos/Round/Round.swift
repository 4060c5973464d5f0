import FerryConformance
import FerryLaboratory
import Foundation

/// One round: transactions under faults, then the heal, then everything has to drain and be right.
struct Round: Sendable {
  let plan: RoundPlan
  let cluster: PostgresCluster
  /// The folder for the evidence of failures.
  let evidenceRoot: URL
  /// True if the evidence of a successful round is kept as well.
  let keepsAll: Bool
  /// Called after each planned transaction.
  let progress: @Sendable () -> Void

  func run() async throws -> RoundReport {
    let world = try await blocking { [plan, cluster] in try ProcessWorld(plan, on: cluster) }
    let collector = Collector(
      world.chronicle, plan.program == nil ? OracleBench() : OracleBench(ofMirrors: ()))
    let driver = FaultDriver(world)
    var drain: Duration?
    do {
      drain = try await alive(world.nodes.map(\.supervisor)) {
        try await world.setUp()
        return try await alive(world.supervisors) {
          try await work(in: world, driver, collector)
          return try await waitForDrain(world, collector)
        }
      }
    } catch {
      // An error with an early end of a round needs the evidence as well.
      try Task.checkCancellation()
      await collector.add(Violation(oracle: "completes", "the round ended early: \(error)"))
    }
    return try await report(world, driver, collector, drain: drain)
  }

  /// Keeps programs running while `body` runs.
  private func alive<T: Sendable>(
    _ supervisors: [Supervisor], _ body: () async throws -> T
  ) async throws -> T {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for supervisor in supervisors { group.addTask { await supervisor.run() } }
      defer { group.cancelAll() }
      return try await body()
    }
  }

  /// Transactions and faults, until both are over.
  private func work(
    in world: ProcessWorld, _ driver: FaultDriver, _ collector: Collector
  ) async throws {
    let actions = plan.program == nil ? Application.actions(plan) : []
    let start = ContinuousClock.now
    world.chronicle.append("round", "begins: \(plan.command)")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, device) in world.devices.enumerated() {
        if world.company != nil {
          let user = ShopUser(
            device: device, plan: plan, index: index, collector: collector, ledger: world.ledger,
            chronicle: world.chronicle)
          group.addTask { [progress] in try await user.run(from: start, done: progress) }
          continue
        }
        let user = DeviceUser(
          device: device, actions: actions.filter { $0.device == index },
          upgradeTimes: Application.upgradeTimes(plan, device: index), collector: collector,
          chronicle: world.chronicle)
        group.addTask { [progress] in try await user.run(from: start, done: progress) }
      }
      let faults = plan.faults
      let nemesis = Task { await driver.run(faults) }
      let migrator = world.company?.migrator(seed: plan.seed, collector, world.chronicle)
      let migrations = Task { await migrator?.run() }
      let duration = plan.duration
      let heal = Task {
        try? await Task.sleep(until: start + duration)
        nemesis.cancel()
        migrations.cancel()
        await nemesis.value
        await migrations.value
        world.chronicle.append("round", "healed")
      }
      await withTaskCancellationHandler {
        await heal.value
      } onCancel: {
        heal.cancel()
      }
      try await group.waitForAll()
    }
    // From here on nobody writes.
    world.company?.program.stop()
  }

  /// Waits after the last fault. Returns the time of the queues to drain, `nil` if they took too
  /// long.
  private func waitForDrain(_ world: ProcessWorld, _ collector: Collector) async throws -> Duration?
  {
    do {
      let drain = try await Drain(world: world).wait(within: plan.drainLimit)
      world.chronicle.append("round", "drained after \(drain)")
      try await judge(world, collector)
      return drain
    } catch let error as NotDrained {
      await collector.add(
        Violation(
          oracle: "drains",
          "not drained \(plan.drainLimit) after the heal: "
            + (error.laggards.isEmpty
              ? "the last device was done later" : error.laggards.joined(separator: "; "))))
      return nil
    }
  }

  private func judge(_ world: ProcessWorld, _ collector: Collector) async throws {
    let final = try await blocking {
      let server = try world.serverEvidence()
      let replicas = try world.devices.map { ($0.name, try $0.file.evidence(withArchive: true)) }
      let mirror = try world.company.map { [("mirror", try $0.replica.evidence())] } ?? []
      return FinalEvidence(
        server: server, replicas: Dictionary(uniqueKeysWithValues: replicas + mirror))
    }
    for (device, evidence) in final.replicas.sorted(by: { $0.key < $1.key }) {
      await collector.see(.read(device: device, evidence))
    }
    await collector.judge(final)
    if let company = world.company { try await judge(company, in: world, final, collector) }
  }

  /// Judges the tables of a mirror with the writes of all authors.
  private func judge(
    _ company: Company, in world: ProcessWorld, _ final: FinalEvidence, _ collector: Collector
  ) async throws {
    let journal = try await blocking { try company.readJournal() }
    let evidence = try await blocking {
      var evidence = MirroredEvidence()
      evidence.tables = try company.rows()
      for device in world.devices {
        evidence.devices[device.name] = try device.file.read { try ShopRows.read($0) }
      }
      for file in world.devices.map(\.file) + [company.replica] {
        evidence.quarantined.formUnion(try file.quarantined())
        evidence.conflicting.formUnion(try file.conflicting())
      }
      evidence.deferred = try company.listed("deferred")
      evidence.unsent = try company.listed("unsent")
      evidence.history = final.server.history
      evidence.initial = company.initialRows
      evidence.writes = world.ledger.writes + journal.writes
      return evidence
    }
    for violation in MirroredTables.judge(evidence) { await collector.add(violation) }
    for rule in journal.broken.prefix(10) {
      await collector.add(Violation(oracle: "whole-transactions", "the program reads: \(rule)"))
    }
    if journal.torn > company.program.starts {
      await collector.add(
        Violation(oracle: "program-journal", "\(journal.torn) lines cannot be read"))
    }
    let listed = evidence.deferred.union(evidence.unsent).count
    await collector.count { figures in
      figures.programCommitted = journal.writes.count(where: \.isAcknowledged)
      figures.reads += journal.reads
      figures.listed = listed
    }
    company.mirrorRuns.stop()
    for violation in try await company.verify() { await collector.add(violation) }
  }

  private func report(
    _ world: ProcessWorld, _ driver: FaultDriver, _ collector: Collector, drain: Duration?
  ) async throws -> RoundReport {
    for end in world.unexpectedEnds {
      await collector.add(Violation(oracle: "keeps-running", end))
    }
    var report = RoundReport(
      plan: plan, figures: await collector.figures, injected: driver.injected, drain: drain,
      violations: await collector.violations)
    if keepsAll || !report.holds {
      report.evidence = try await blocking { [report, evidenceRoot] in
        try Evidence(world: world, report: report).copy(below: evidenceRoot)
      }
    }
    return report
  }
}
