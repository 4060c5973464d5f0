import FerryCommandLine
import Foundation

/// The command `ferry-chaos`: real processes under real faults.
enum ChaosCommand {
  static let specification = CommandSpec(
    "ferry-chaos",
    summary: "Test real devices and servers under pauses, kills and network faults.",
    discussion: """
      Two ferryd nodes on a private PostgreSQL, real ferry devices, and proxies between all of \
      them. Devices write transactions while faults come by a schedule; then everything is healed, \
      has to drain, and is judged by the same oracles as in the simulator: nothing lost, nothing \
      doubled, no transaction seen in part, all replicas equal.

      What brings the faults is called a nemesis:

        none       no faults
        pause      SIGSTOP for devices, nodes and PostgreSQL's processes, and SIGCONT later
        kill       SIGKILL for the same; PostgreSQL shut down, crashed and started again
        partition  links cut both ways or one way, slow, reset, or cut within a message
        all        all of these at once

      `ferry-chaos backend` tests a program in Python, Examples/Backend, on the tables of a mirror \
      beside four devices, under faults of all of them.

      The schedule and the transactions come from the seed. What real processes make of them does \
      not: a failing seed may hold when it is run again. So a failure keeps all its evidence.
      """,
    version: "0.1.0", flags: [json], subcommands: [run, matrix, backend, schedule],
    exitCodes: [
      ExitCodeNote(0, "Every round passed."),
      ExitCodeNote(1, "A round failed, or could not run; the message names its evidence."),
      ExitCodeNote(2, "Wrong usage; nothing was done."),
    ])

  private static let nemesis = OptionSpec(
    "nemesis", short: "n", value: "KIND", help: "The kind of the faults.",
    kind: .choice(Nemesis.allCases.map(\.rawValue)), default: Nemesis.all.rawValue)

  private static let load = loadOptions(devices: 10, rate: 30)

  private static func loadOptions(devices: Int, rate: Int) -> [OptionSpec] {
    [
      OptionSpec(
        "devices", value: "N", help: "The number of devices.",
        kind: .integer(2...64), default: "\(devices)"),
      OptionSpec(
        "rate", value: "N", help: "Local transactions a second, over all devices.",
        kind: .integer(1...500), default: "\(rate)"),
    ] + time
  }

  private static let time = [
    OptionSpec(
      "duration", value: "TIME", help: "How long a round's transactions and faults last.",
      kind: .duration, default: "20s"),
    OptionSpec(
      "seed", value: "SEED",
      help: "The seed of the first round's schedule; by default a random one.",
      kind: .integer(0...Int.max)),
  ]

  private static let judging = judgingOptions(drain: "30s")

  private static func judgingOptions(drain: String) -> [OptionSpec] {
    [
      OptionSpec(
        "drain", value: "TIME",
        help: "How long the queues may take to drain after the faults end.",
        kind: .duration, default: drain),
      OptionSpec(
        "evidence", value: "DIR", help: "The directory for the evidence of failures.",
        kind: .directory, default: "./ferry-chaos-evidence"),
    ]
  }

  private static let keep = FlagSpec(
    "keep", help: "Keep the evidence of successful rounds as well.")
  private static let json = FlagSpec("json", help: "Answer in JSON, one object a line.")

  private static let run = CommandSpec(
    "run", summary: "Run rounds under one nemesis.",
    options: [nemesis] + load + judging + [
      OptionSpec(
        "rounds", value: "N", help: "Rounds, each with the next seed.",
        kind: .integer(1...100_000), default: "1")
    ],
    flags: [keep],
    examples: [
      ExampleSpec("A short one", "ferry-chaos run --nemesis kill --devices 4 --duration 5s")
    ]
  ) { arguments in
    let kind = Nemesis(rawValue: try arguments.string("nemesis")) ?? .all
    let seed = try seed(arguments)
    let plans = try (0..<arguments.integer("rounds")).map { index in
      try plan(arguments, nemesis: kind, seed: seed &+ UInt64(index))
    }
    return try await perform(plans, arguments)
  }

  private static let matrix = CommandSpec(
    "matrix", summary: "Run rounds under every nemesis in turn, and beside a backend.",
    options: load + judging + [
      OptionSpec(
        "rounds", value: "N", help: "Rounds under each nemesis, and of the backend.",
        kind: .integer(1...10_000), default: "3")
    ],
    flags: [keep],
    examples: [
      ExampleSpec(
        "Ten rounds of each, half a minute long", "ferry-chaos matrix --rounds 10 --duration 30s")
    ]
  ) { arguments in
    let rounds = try arguments.integer("rounds")
    let seed = try seed(arguments)
    var plans: [RoundPlan] = []
    for number in 0..<rounds {
      for kind in Nemesis.allCases {
        plans.append(try plan(arguments, nemesis: kind, seed: seed &+ UInt64(plans.count)))
      }
      var plan = try plan(arguments, nemesis: .all, seed: seed &+ UInt64(plans.count))
      (plan.devices, plan.rate) = (4, 8)
      plan.program = RoundPlan.Program(
        rate: 20, workers: 4, store: number.isMultiple(of: 2) ? .postgres : .embedded,
        capture: number.isMultiple(of: 3) ? .triggers : .log)
      plans.append(plan)
    }
    return try await perform(plans, arguments)
  }

  private static let backend = CommandSpec(
    "backend", summary: "Run a Python program on a mirror's tables beside devices.",
    discussion: """
      Examples/Backend adopts its tables into a space. Devices and the program write to the same rows. \
      The server, the mirror, devices, the program and PostgreSQL are killed and paused, and \
      connections are cut. Afterwards all devices and the tables have to be equal, no acknowledged \
      write may be lost, and every reader has to have seen whole transactions. The program needs \
      Debian's package python3-psycopg.
      """,
    options: loadOptions(devices: 4, rate: 8) + judgingOptions(drain: "10s") + [
      OptionSpec(
        "program-rate", value: "N", help: "Transactions a second of the program.",
        kind: .integer(1...1_000), default: "20"),
      OptionSpec(
        "workers", value: "N", help: "Connections of the program.", kind: .integer(1...64),
        default: "4"),
      OptionSpec(
        "store", value: "KIND", help: "The store of the server.",
        kind: .choice(RoundPlan.Store.allCases.map(\.rawValue)),
        default: RoundPlan.Store.postgres.rawValue),
      OptionSpec(
        "capture", value: "WAY", help: "How the mirror captures the program's writes.",
        kind: .choice(RoundPlan.Capture.allCases.map(\.rawValue)),
        default: RoundPlan.Capture.triggers.rawValue),
      OptionSpec(
        "rounds", value: "N", help: "Rounds, each with the next seed.",
        kind: .integer(1...100_000), default: "1"),
    ],
    flags: [
      keep,
      FlagSpec(
        "migrations",
        help: "Change the tables with Django's migrations meanwhile. Installs Django from PyPI."),
    ],
    examples: [
      ExampleSpec("Half a minute", "ferry-chaos backend --duration 30s --seed 7"),
      ExampleSpec("Half an hour", "ferry-chaos backend --duration 30m --migrations"),
    ]
  ) { arguments in
    let seed = try seed(arguments)
    let django = try await django(arguments)
    let plans = try (0..<arguments.integer("rounds")).map { index in
      var plan = try plan(arguments, nemesis: .all, seed: seed &+ UInt64(index))
      plan.program = RoundPlan.Program(
        rate: try arguments.integer("program-rate"), workers: try arguments.integer("workers"),
        store: RoundPlan.Store(rawValue: try arguments.string("store")) ?? .postgres,
        capture: RoundPlan.Capture(rawValue: try arguments.string("capture")) ?? .triggers,
        django: django)
      return plan
    }
    return try await perform(plans, arguments)
  }

  private static let schedule = CommandSpec(
    "schedule", summary: "Show the faults of a seed, without a run.",
    options: [nemesis] + load,
    flags: [FlagSpec("backend", help: "The faults of `ferry-chaos backend`.")],
    examples: [
      ExampleSpec("What seed 7 has in store", "ferry-chaos schedule --seed 7 --duration 5s")
    ]
  ) { arguments in
    let kind = Nemesis(rawValue: try arguments.string("nemesis")) ?? .all
    var plan = try plan(arguments, nemesis: kind, seed: seed(arguments))
    if arguments.flag("backend") {
      plan.program = RoundPlan.Program(rate: 20, workers: 4, store: .postgres)
    }
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      let answer = JSONText.object([
        ("seed", .string("\(plan.seed)")), ("faults", .array(plan.faults.map(\.json))),
      ])
      try output.line(answer.text)
      return .done
    }
    var table = TextTable([
      TextTable.Column("AT (ms)", .right), TextTable.Column("FAULT", .left),
    ])
    for fault in plan.faults { table.append(["\(fault.at)", fault.text]) }
    try output.lines(table.lines(width: Terminal.current().tableWidth))
    return .done
  }

  // MARK: Running

  private static func seed(_ arguments: ParsedArguments) throws -> UInt64 {
    try arguments.integerIfPresent("seed", in: 0...Int.max).map { UInt64($0) }
      ?? UInt64.random(in: 0..<1_000_000)
  }

  /// Returns the interpreter with Django if migrations are asked for, and PyPI can be reached.
  private static func django(_ arguments: ParsedArguments) async throws -> String? {
    guard arguments.flag("migrations") else { return nil }
    do {
      return try await ExampleFiles.makeDjango()
    } catch let error as ChaosError {
      try TextOutput.standardError.line("ferry-chaos: the migrations are left out: \(error)")
      return nil
    }
  }

  private static func plan(
    _ arguments: ParsedArguments, nemesis: Nemesis, seed: UInt64
  ) throws -> RoundPlan {
    RoundPlan(
      nemesis: nemesis, seed: seed, devices: try arguments.integer("devices"),
      rate: try arguments.integer("rate"), duration: try arguments.duration("duration"),
      drainLimit: .seconds(30))
  }

  private static func perform(
    _ plans: [RoundPlan], _ arguments: ParsedArguments
  ) async throws -> ExitStatus {
    let plans = try plans.enumerated().map { index, plan in
      var plan = plan
      plan.number = index + 1
      plan.drainLimit = try arguments.duration("drain")
      return plan
    }
    let series = Series(
      plans: plans, evidenceRoot: URL(filePath: try arguments.string("evidence")),
      keepsAll: arguments.flag("keep"))
    let report = try await series.run()
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(report.json.text)
    } else {
      let terminal = Terminal.current()
      try output.lines(report.lines(width: terminal.width, tableWidth: terminal.tableWidth))
    }
    return report.holds ? .done : .failed
  }
}
