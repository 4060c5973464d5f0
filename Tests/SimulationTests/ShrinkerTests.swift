import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySimulation

/// A failing run is shrunk to a small part that still fails.
@Suite(.hangLimit)
struct ShrinkerTests {
  private static func world(_ seed: UInt64, _ plan: WorldPlan?) throws -> WorldResult {
    try World(
      seed: seed, options: options, plan: plan, planted: .conflictNotRecorded, stepsMax: 250_000
    ).run()
  }

  private static let options: WorldOptions = {
    var options = WorldOptions.small(.mobile, devices: 3, operations: 40, seconds: 20)
    (options.drop, options.partitions, options.deviceCrashes) = (50_000, 4, 4)
    return options
  }()

  private static func shrunk(_ seed: UInt64) throws -> (WorldResult, Shrinker.Outcome) {
    let failed = try world(seed, nil)
    return (
      failed,
      try Shrinker(seed: seed, options: options) { try world(seed, $0) }.shrink(failed)
    )
  }

  @Test("a world with a planted mistake shrinks to less than a third with the same failure")
  func shrinks() async throws {
    let (seed, shrunk) = try await WorldThreads.run {
      for seed in 1...20 as ClosedRange<UInt64>
      where try !Self.world(seed, nil).violations.isEmpty {
        return (seed, try Self.shrunk(seed))
      }
      throw NothingFound()
    }
    let (failed, outcome) = shrunk
    let full = WorldPlan(seed: seed, options: Self.options)
    let before = full.actions.count + full.faults.count + failed.happened.count
    let after =
      outcome.plan.actions.count + outcome.plan.faults.count
      + (outcome.plan.chances?.count ?? 0)
    #expect(after * 3 < before, "\(after) of \(before)")
    #expect(outcome.plan.lines.count == after)
    #expect(outcome.result.violations.first?.oracle == failed.violations.first?.oracle)
    #expect(outcome.runs <= 400)
    let (again, rerun) = try await WorldThreads.run {
      (try Self.shrunk(seed).1, try Self.world(seed, outcome.plan))
    }
    #expect(again.plan == outcome.plan)
    #expect(again.result.traceHash == outcome.result.traceHash)
    #expect(rerun.traceHash == outcome.result.traceHash)
  }

  private struct NothingFound: Error {}

  /// Returns a run that fails exactly if these things are in it.
  private static func result(_ plan: WorldPlan, failsWith ordinals: Set<Int>) -> WorldResult {
    let fails = ordinals.isSubset(of: plan.actions.map(\.ordinal))
    return WorldResult(
      seed: 1, options: WorldOptions(), violations: fails ? [Violation(oracle: "test", "")] : [],
      traceHash: "", counts: [:], happened: [], plannedFaults: plan.faults, committed: 0,
      virtualTime: 0, steps: 0, actors: [], events: [])
  }

  @Test(
    "a shrunk world contains exactly the events that the failure needs",
    arguments: [[3], [0, 119], [7, 8, 60]])
  func minimal(_ needed: [Int]) throws {
    var options = WorldOptions.small(.hostile, operations: 120)
    options.upgrades = 0
    let run = { Self.result($0, failsWith: Set(needed)) }
    let failed = run(WorldPlan(seed: 1, options: options))
    let outcome = try Shrinker(seed: 1, options: options, run: run).shrink(failed)
    #expect(outcome.plan.actions.map(\.ordinal) == needed)
    #expect(outcome.plan.faults.isEmpty)
  }

  @Test("the shrinker keeps to its limit of worlds, and to the smallest one so far")
  func bounded() throws {
    let options = WorldOptions.small(.hostile, operations: 200)
    var runs = 0
    let run = { (plan: WorldPlan) in
      runs += 1
      return Self.result(plan, failsWith: [11, 150])
    }
    let failed = Self.result(WorldPlan(seed: 1, options: options), failsWith: [11, 150])
    let outcome = try Shrinker(seed: 1, options: options, run: run).shrink(failed, runsMax: 9)
    #expect(runs == 9 && outcome.runs == 9)
    #expect(outcome.plan.actions.count < 200)
    #expect(Set([11, 150]).isSubset(of: outcome.plan.actions.map(\.ordinal)))
  }
}
