import FerryCommandLine
import FerrySimulation

/// The command `ferry-sim`: whole worlds of devices and a server in virtual time.
enum SimCommand {
  static let specification = CommandSpec(
    "ferry-sim",
    summary: "Run devices and a server in one deterministic, hostile world.",
    discussion: """
      The product's own client, server, store and codec run on one thread in virtual time. Only \
      the clocks, the network, the disks' faults and the life of processes are simulated. One seed \
      results in one run, byte for byte. At first every fault can occur; then none does, and all \
      pending operations have to drain. At each step, and at the end, oracles check for the \
      behaviour of a correct system.
      """,
    version: "0.1.0", flags: [json],
    subcommands: [
      RunCommand.specification, swarm, worker, replay, options, FuzzCommand.specification,
      FuzzCommand.worker,
    ])

  private static let swarm = SwarmCommand.specification
  private static let worker = SwarmCommand.worker
  private static let replay = ReplayCommand.specification

  private static let options = CommandSpec(
    "options", summary: "List the options of a world with their values in each profile."
  ) { arguments in
    let profiles = WorldOptions.Profile.allCases
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.lines(
        WorldOptions.Field.all.map { field in
          JSONText.object(
            [("name", .string(field.name)), ("help", .string(field.help))]
              + profiles.map { ($0.rawValue, .int(field.get(WorldOptions($0)))) }
          ).text
        })
      return .done
    }
    var table = TextTable(
      [TextTable.Column("OPTION")]
        + profiles.map { TextTable.Column($0.rawValue.uppercased(), .right) }
        + [TextTable.Column("MEANING")])
    for field in WorldOptions.Field.all {
      table.append(
        [field.name] + profiles.map { String(field.get(WorldOptions($0))) } + [field.help])
    }
    try output.lines(table.lines(width: Terminal.current().tableWidth))
    return .done
  }

  /// The options of every command with a world.
  static let store = OptionSpec(
    "store", value: "KIND", help: "The server's store.",
    kind: .choice(["sqlite", "postgres"]), default: "sqlite")

  static let mirrors = OptionSpec(
    "mirrors", value: "N",
    help:
      "Devices of a world whose rows are in tables of a real PostgreSQL as well, where programs write to them.",
    kind: .integer(0...100), default: "0")

  static let lies = OptionSpec(
    "lies", value: "N",
    help: "Spans of a world in which a hostile server answers. No file is lost in such a world.",
    kind: .integer(0...1_000), default: "0")

  static let strangers = OptionSpec(
    "strangers", value: "N",
    help: "Hostile members of each space of a world, who also attack the tables of the others.",
    kind: .integer(0...100), default: "0")

  static let report = OptionSpec(
    "report", value: "FILE", help: "Write a page for a browser that shows the run.",
    kind: .file)

  private static let json = FlagSpec("json", help: "Answer in JSON, one object a line.")

  /// Returns the name of a fault as a person reads it: `device crash` for `deviceCrash`.
  static func words(_ name: String) -> String {
    name.map { $0.isUppercase ? " \($0.lowercased())" : String($0) }.joined()
  }

  /// Plots faults with their numbers as bars.
  static func plot(_ faults: [(name: String, count: Int)]) -> [String] {
    BarPlot(
      faults.map { BarPlot.Bar(words($0.name), Double($0.count), note: "\($0.count)") }
    ).lines(width: min(Terminal.current().width, 72))
  }

  /// The flags of a command with one world.
  static let runFlags = [
    FlagSpec("no-shrink", help: "Show a failure without shrinking it."),
    FlagSpec(
      "trace",
      help:
        "Print each event of the run on a line, before the verdict; then those of the smallest part that fails."
    ),
  ]

  static let exitCodes = [
    ExitCodeNote(0, "No oracle found a violation."),
    ExitCodeNote(1, "An oracle found a violation, or the run failed."),
    ExitCodeNote(2, "Wrong usage; nothing was done."),
  ]
}
