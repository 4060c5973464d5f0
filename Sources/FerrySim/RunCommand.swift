import CommandLineKit
import Foundation
import Simulation

/// `ferry-sim run`: one world, as the options say.
enum RunCommand {
  static let specification = CommandSpec(
    "run", summary: "Run one world.",
    discussion: "Options that are not given have the values of the profile: see ferry-sim options.",
    options: [
      OptionSpec("seed", value: "N", help: "What the run is drawn from.", default: "1"),
      OptionSpec(
        "profile", value: "NAME", help: "What the world is like.",
        kind: .choice(WorldOptions.Profile.allCases.map(\.rawValue)), default: "mobile"),
      SimCommand.store, SimCommand.report,
    ]
      + WorldOptions.Field.all.map { field in
        OptionSpec(
          field.name, value: "N", help: "Number: \(field.help).", kind: .integer(0...Int.max))
      },
    flags: SimCommand.runFlags,
    examples: [
      ExampleSpec(
        "Twenty devices on bad links", "ferry-sim run --seed 42 --devices 20 --operations 10000"),
      ExampleSpec(
        "Everything goes wrong, to look at", "ferry-sim run --profile hostile --report report.html"),
    ],
    exitCodes: SimCommand.exitCodes
  ) { arguments in
    let seed = try Seed.read(arguments)
    let profile = WorldOptions.Profile(rawValue: try arguments.string("profile")) ?? .mobile
    var options = WorldOptions(profile)
    var given = "--seed \(seed) --profile \(profile.rawValue)"
    for field in WorldOptions.Field.all {
      let least =
        ["devices", "spaces", "operations", "seconds", "packet-operations", "page-changes"]
          .contains(field.name) ? 1 : 0
      guard let value = try arguments.integerIfPresent(field.name, in: least...1_000_000_000) else {
        continue
      }
      field.set(&options, value)
      given += " --\(field.name) \(value)"
    }
    return try WorldRun(
      seed: seed, options: options, replayCommand: "ferry-sim run \(given)", arguments: arguments
    ).perform()
  }
}

/// A seed as it is written.
enum Seed {
  static func read(_ arguments: ParsedArguments, _ name: String = "seed") throws -> UInt64 {
    let text = try arguments.string(name)
    guard let seed = UInt64(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is no seed", why: "a seed is a whole number from 0 to 2^64-1",
        next: "give a number, such as 42")
    }
    return seed
  }
}
