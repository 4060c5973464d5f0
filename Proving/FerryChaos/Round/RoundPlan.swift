/// The parameters of a round.
struct RoundPlan: Sendable {
  /// Its place among the rounds, from 1.
  var number = 1
  var nemesis: Nemesis
  var seed: UInt64
  var devices: Int
  /// Transactions a second, over all devices.
  var rate: Int
  /// The time for faults and transactions.
  var duration: Duration
  /// How long the queues may take to drain afterwards.
  var drainLimit: Duration

  static let nodes = 2

  var milliseconds: Int { Int(duration / .milliseconds(1)) }

  /// Local transactions in all.
  var transactions: Int { max(1, rate * milliseconds / 1_000) }

  var faults: [Fault] {
    FaultSchedule.make(
      nemesis, seed: seed, devices: devices, nodes: Self.nodes, milliseconds: milliseconds)
  }

  /// The command that runs the same plan again.
  var command: String {
    "ferry-chaos run --nemesis \(nemesis) --devices \(devices) --rate \(rate) "
      + "--duration \(milliseconds)ms --seed \(seed)"
  }
}
