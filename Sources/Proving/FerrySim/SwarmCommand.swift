import FerryCommandLine
import FerryLaboratory
import FerrySimulation
import Foundation

/// `ferry-sim swarm`: many small worlds, each of them different.
enum SwarmCommand {
  static let specification = CommandSpec(
    "swarm", summary: "Run many small worlds, each with options of its own.",
    discussion: """
      Each seed draws its own world: the number of devices, the quality of the links, and the \
      kinds and rates of faults. The swarm stops at the first failure, unless --keep-going is \
      given, and prints the command that runs that world again and finds the smallest part of it \
      that still fails.
      """,
    options: worldOptions + [
      OptionSpec(
        "seeds", value: "N", help: "How many worlds.", kind: .integer(1...Int.max), default: "100"),
      OptionSpec("first", value: "SEED", help: "The first seed.", default: "1"),
      OptionSpec(
        "jobs", value: "N", help: "The number of parallel processes.", kind: .integer(1...256),
        default: "2"),
    ],
    flags: [
      FlagSpec("keep-going", help: "Run all worlds, even after a failure.")
    ],
    examples: [
      ExampleSpec("A thousand worlds on two cores", "ferry-sim swarm --seeds 1000 --jobs 2"),
      ExampleSpec(
        "Ten larger ones, from seed 500 on",
        "ferry-sim swarm --first 500 --seeds 10 --devices 20 --operations 2000"),
      ExampleSpec("Worlds with two mirrors each", "ferry-sim swarm --mirrors 2"),
    ],
    exitCodes: SimCommand.exitCodes
  ) { arguments in
    try await Swarm(arguments).perform()
  }

  /// The options of a drawn world besides the seed; `ferry-sim replay` takes the same.
  static let worldOptions = [
    OptionSpec(
      "devices", value: "N", help: "Devices of a world, on average.", kind: .integer(2...1_000),
      default: "5"),
    OptionSpec(
      "operations", value: "N", help: "Local transactions of a world, on average.",
      kind: .integer(1...1_000_000), default: "200"),
    SimCommand.mirrors, SimCommand.lies, SimCommand.strangers, SimCommand.store,
  ]

  /// Returns the options of a drawn world, as the command line asks for it.
  static func drawn(_ seed: UInt64, _ arguments: ParsedArguments) throws -> WorldOptions {
    var options = WorldOptions.drawn(
      seed: seed, devices: try arguments.integer("devices"),
      operations: try arguments.integer("operations"))
    options.setMirrors(try arguments.integer("mirrors"), seed: seed)
    options.setLies(try arguments.integer("lies"))
    let strangers = try arguments.integer("strangers")
    if strangers > 0 { (options.strangers, options.attacks) = (strangers, 1) }
    return options
  }

  /// One of a swarm's processes: runs seeds and prints a line before and after each.
  static let worker = CommandSpec(
    "swarm-worker", summary: "One process of a swarm.",
    options: worldOptions + [
      OptionSpec("first", value: "SEED", help: "The first seed.", required: true),
      OptionSpec(
        "step", value: "N", help: "From one seed to the next.", kind: .integer(1...256),
        default: "1"),
      OptionSpec(
        "seeds", value: "N", help: "How many worlds.", kind: .integer(0...Int.max), default: "1"),
    ], hidden: true
  ) { arguments in
    let databases = try Databases(store: arguments.string("store"))
    var seed = try Seed.read(arguments, "first")
    for _ in 0..<(try arguments.integer("seeds")) {
      try Task.checkCancellation()
      try TextOutput.standardOutput.line("start \(seed)")
      let options = try drawn(seed, arguments)
      let result = try World(
        seed: seed, options: options, postgres: databases.next(),
        mirrors: databases.next(for: options)
      ).run()
      try TextOutput.standardOutput.line(SwarmLine(result).text)
      seed &+= UInt64(try arguments.integer("step"))
    }
    return .done
  }
}

/// A worker's report of one world.
struct SwarmLine: Equatable {
  var seed: UInt64
  var traceHash: String
  var operations: Int
  var faults: [String: Int]
  /// The first violation.
  var violation: String?

  init(_ result: WorldResult) {
    seed = result.seed
    traceHash = result.traceHash
    operations = result.committed
    faults = Dictionary(uniqueKeysWithValues: result.faultCounts.map { ($0.name, $0.count) })
    violation = result.violations.first?.description
  }

  /// `done SEED HASH OPERATIONS name=count,… VIOLATION`
  var text: String {
    let list = faults.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    let why = violation.map { " " + $0.split(whereSeparator: \.isNewline).joined(separator: " ") }
    return "done \(seed) \(traceHash) \(operations) "
      + (list.isEmpty ? "-" : list.joined(separator: ",")) + (why ?? "")
  }

  init?(_ text: String) {
    let parts = text.split(separator: " ", maxSplits: 5)
    guard parts.count >= 5, parts[0] == "done", let seed = UInt64(parts[1]),
      let operations = Int(parts[3])
    else { return nil }
    (self.seed, traceHash, self.operations) = (seed, String(parts[2]), operations)
    faults = [:]
    for pair in parts[4].split(separator: ",") {
      let sides = pair.split(separator: "=")
      if sides.count == 2, let count = Int(sides[1]) { faults[String(sides[0])] = count }
    }
    violation = parts.count == 6 ? String(parts[5]) : nil
  }
}
