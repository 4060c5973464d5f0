import CommandLineKit
import Simulation

/// `ferry-sim replay`: one world of a swarm again.
enum ReplayCommand {
  static let specification = CommandSpec(
    "replay", summary: "Run one world of a swarm again.",
    options: [
      OptionSpec(
        "devices", value: "N", help: "As it was in the swarm.", kind: .integer(2...1_000),
        default: "5"),
      OptionSpec(
        "operations", value: "N", help: "As it was in the swarm.", kind: .integer(1...1_000_000),
        default: "200"),
      SimCommand.store, SimCommand.report,
    ],
    flags: SimCommand.runFlags,
    arguments: [ArgumentSpec("seed", help: "The world's seed.")],
    exitCodes: SimCommand.exitCodes
  ) { arguments in
    let seed = try Seed.read(arguments)
    let (devices, operations) = (
      try arguments.integer("devices"), try arguments.integer("operations")
    )
    return try WorldRun(
      seed: seed,
      options: .drawn(seed: seed, devices: devices, operations: operations),
      replayCommand: "ferry-sim replay \(seed) --devices \(devices) --operations \(operations)",
      arguments: arguments
    ).perform()
  }
}
