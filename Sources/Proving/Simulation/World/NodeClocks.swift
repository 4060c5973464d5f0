import FerryConformance
import FerrySyncServer

/// The wall clocks of a server's nodes. The first is right at the start; each may step.
// SAFETY: touched on the scheduler's thread only.
final class NodeClocks: @unchecked Sendable {
  /// Right at all times: by it history is pruned and missions are signed.
  let right: ServiceClock
  /// Of each node.
  private(set) var nodes: [ServiceClock] = []
  /// Milliseconds by which each node's clock is ahead.
  private var offsets: [Int64]
  private let scheduler: Scheduler

  /// Microseconds for which a device stays at a node.
  private static let stay: Int64 = 20_000_000

  init(_ scheduler: Scheduler, nodes count: Int, step: Int64, _ skipped: SkippedTime) {
    self.scheduler = scheduler
    let clock = DeviceClock(offset: 0, drift: 0, step: max(1, step))
    right = ServiceClock(
      wall: { clock.wall(at: scheduler.now) + skipped.milliseconds },
      uptime: { .microseconds(scheduler.now) })
    offsets = Array(repeating: 0, count: max(1, count))
    nodes = offsets.indices.map { [unowned self, right] node in
      ServiceClock(wall: { right.wall() + self.offsets[node] }, uptime: right.uptime)
    }
  }

  /// Returns the node for a device now: a balancer sends it to another one now and then.
  func node(of device: String) -> Int {
    let number = device.utf8.reduce(0) { $0 + Int($1) }
    return (number + Int(scheduler.now / Self.stay)) % nodes.count
  }

  /// Sets a node's clock, as an administrator or the machine itself does.
  func jump(_ random: inout SeededRandom, _ trace: Trace) {
    let reach: [Int64] = [2_000, 300_000, 7_200_000, 86_400_000]
    let node = random.below(nodes.count)
    let size = Int64(random.below(Int(reach[random.below(reach.count)]) + 1))
    let leap = random.chance(1, in: 2) ? size : -size
    offsets[node] += leap
    trace.record(.clockMoved, SimulatedServer.name, "node \(node): \(leap) ms")
  }
}
