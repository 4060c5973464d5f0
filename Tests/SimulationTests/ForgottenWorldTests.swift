import FerryConformance
import FerryTestSupport
import Testing

@testable import FerrySimulation

@Suite("The memory of a world that has ended", .hangLimit)
struct ForgottenWorldTests {
  @Test(
    "a world that has ended leaves nothing in memory", arguments: 1...3 as ClosedRange<UInt64>,
    [0, 3])
  func isForgotten(seed: UInt64, missions: Int) throws {
    let left = try Self.run(seed, missions: missions).names
    #expect(left.isEmpty)
  }

  @Test("a world that has ended does not make its planned copies")
  func makesNoCopies() throws {
    var options = WorldOptions.drawn(seed: 1, devices: 2, operations: 50)
    (options.copies, options.batchCopies) = (5, 5)
    let world = try World(seed: 1, options: options, stepsMax: 1_000_000)
    var devices = 0
    world.scheduler.after(Int64(options.seconds) * 500_000) { [unowned world] in
      devices = world.devices.count
      world.report([Violation(oracle: "none", "the run ends here")])
    }
    let result = world.run()
    #expect(result.plannedFaults.contains { $0.kind == .copy && $0.at > options.seconds * 500 })
    #expect(devices > 0 && world.devices.count == devices)
  }

  /// The remains of a world.
  private struct Remains {
    weak var world: World?
    weak var scheduler: Scheduler?
    weak var server: SimulatedServer?
    weak var device: SimulatedDevice?
    weak var disk: AnyObject?

    /// Names of the parts still there. The parts themselves are not shown: some refer to parts
    /// already gone.
    var names: [String] {
      let parts: [(String, AnyObject?)] = [
        ("world", world), ("scheduler", scheduler), ("server", server), ("device", device),
        ("disk", disk),
      ]
      return parts.filter { $0.1 != nil }.map(\.0)
    }
  }

  private static func run(_ seed: UInt64, missions: Int) throws -> Remains {
    var options = WorldOptions.drawn(seed: seed, devices: 5, operations: 200)
    options.missions = missions
    let world = try World(seed: seed, options: options)
    _ = world.run()
    return Remains(
      world: world, scheduler: world.scheduler, server: world.server,
      device: world.devices.first, disk: world.disk)
  }
}
