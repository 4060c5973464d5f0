import FerryCommandLine
import FerrySimulation

/// `ferry-sim replay`: one world of a swarm again.
enum ReplayCommand {
  static let specification = CommandSpec(
    "replay", summary: "Run one world of a swarm again.",
    discussion: """
      The run is the same byte for byte, with the same trace. If an oracle finds a violation, \
      further worlds are tried to find the smallest part of this one that still fails.
      """,
    options: [
      OptionSpec(
        "devices", value: "N", help: "As given to the swarm.", kind: .integer(2...1_000),
        default: "5"),
      OptionSpec(
        "operations", value: "N", help: "As given to the swarm.", kind: .integer(1...1_000_000),
        default: "200"),
      SimCommand.mirrors, SimCommand.lies, SimCommand.strangers, SimCommand.store,
      SimCommand.report,
    ],
    flags: SimCommand.runFlags,
    arguments: [ArgumentSpec("seed", help: "The world's seed.")],
    examples: [
      ExampleSpec("World 42 of a swarm, to look at", "ferry-sim replay 42 --report world-42.html")
    ],
    exitCodes: SimCommand.exitCodes
  ) { arguments in
    let seed = try Seed.read(arguments)
    let (devices, operations) = (
      try arguments.integer("devices"), try arguments.integer("operations")
    )
    let options = try SwarmCommand.drawn(seed, arguments)
    return try await WorldRun(
      seed: seed,
      options: options,
      replayCommand: "ferry-sim replay \(seed)"
        + (devices == 5 ? "" : " --devices \(devices)")
        + (operations == 200 ? "" : " --operations \(operations)")
        + (options.mirrors == 0 ? "" : " --mirrors \(options.mirrors)")
        + (options.lies == 0 ? "" : " --lies \(options.lies)")
        + (options.attacks == 0 ? "" : " --strangers \(options.strangers)"),
      arguments: arguments
    ).perform()
  }
}
