import FerryCommandLine
import FerrySimulation
import Foundation

/// `ferry-sim run`: one world, by options.
enum RunCommand {
  static let specification = CommandSpec(
    "run", summary: "Run one world.",
    discussion: """
      Options that are not given have the values of the profile; `ferry-sim options` lists them. \
      If an oracle finds a violation, the run ends, and further worlds are tried to find the \
      smallest part of it that still fails.
      """,
    options: [
      OptionSpec("seed", value: "N", help: "The seed of the run.", default: "1"),
      OptionSpec(
        "profile", value: "NAME", help: "The profile of the world.",
        kind: .choice(WorldOptions.Profile.allCases.map(\.rawValue)), default: "mobile"),
      SimCommand.store, SimCommand.report,
    ]
      + WorldOptions.Field.all.map { field in
        OptionSpec(
          field.name, value: "N", help: field.sentence, kind: .integer(field.bounds))
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
      guard let value = try arguments.integerIfPresent(field.name, in: field.bounds) else {
        continue
      }
      field.set(&options, value)
      given += " --\(field.name) \(value)"
    }
    options.setLies(options.lies)
    guard options.delayMin <= options.delayMax else {
      throw UsageError(
        .invalidValue, "the shortest delay is longer than the longest",
        why: "--delay-min is \(options.delayMin), --delay-max \(options.delayMax)",
        next: "give both, the smaller one as --delay-min")
    }
    return try await WorldRun(
      seed: seed, options: options, replayCommand: "ferry-sim run \(given)", arguments: arguments
    ).perform()
  }
}

extension WorldOptions.Field {
  /// The permitted values from a user.
  fileprivate var bounds: ClosedRange<Int> {
    switch name {
    case "devices", "spaces": return 1...1_000
    case "operations": return 1...1_000_000
    case "seconds", "packet-operations", "page-changes", "clock-step", "prune-every":
      return 1...1_000_000_000
    case "watchers", "late-contacts", "upgrades", "missions": return 0...100
    default:
      var options = WorldOptions()
      set(&options, 1)
      // Faults by chance are counted of a million.
      return 0...(options.ratios.values.contains(1) ? 1_000_000 : 1_000_000_000)
    }
  }

  fileprivate var sentence: String { help.prefix(1).uppercased() + help.dropFirst() + "." }
}

/// A seed as it is written.
enum Seed {
  static func read(_ arguments: ParsedArguments, _ name: String = "seed") throws -> UInt64 {
    let text = try arguments.string(name)
    guard let seed = UInt64(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a seed", why: "a seed is a whole number from 0 to 2^64-1",
        next: "give a number, such as 42")
    }
    return seed
  }
}
