import FerryCommandLine

/// The command `ferry-bench`: Ferry's speed beside the raw limits of the same machine.
enum BenchCommand {
  static let specification = CommandSpec(
    "ferry-bench",
    summary: "Compare Ferry with the raw limits of this machine, in the same run.",
    discussion: """
      Each benchmark alternates Ferry's own programs (ferryd, ferry and the client library, next \
      to this one) with plain SQLite or libpq, and compares the medians. PostgreSQL runs in a \
      private cluster with durable commits; no data of yours is used.
      """,
    version: "0.1.0",
    subcommands: [
      run, list, MeasuredProcess.command, FileServerProcess.command,
      SmallWrites.command,
    ])

  private static let run = CommandSpec(
    "run", summary: "Run the benchmarks and print a table.",
    options: [
      OptionSpec(
        "only", value: "NAME", help: "Run only this benchmark; may be repeated.",
        kind: .choice(Benchmark.all.map(\.name)), repeated: true),
      OptionSpec(
        "updates", value: "N",
        help: "Updates that the retention benchmark writes; by default 1,000,000.",
        kind: .integer(10_000...100_000_000)),
      OptionSpec(
        "rows", value: "N",
        help: "Rows of the first pull, in pages of 5,000; by default 200,000.",
        kind: .integer(5_000...10_000_000)),
      OptionSpec(
        "store", value: "KIND", help: "The only store that the retention benchmark runs on.",
        kind: .choice(["embedded", "postgres"])),
      OptionSpec(
        "database", value: "URL",
        help: """
          The database for ferryd in ingest, pull and small-packets, such as a coordinator of Citus; \
          by default a new one in the private cluster.
          """),
    ],
    flags: [
      FlagSpec("quick", help: "Run smaller and fewer rounds, as an estimate."),
      FlagSpec("json", help: "Answer with one JSON object."),
      FlagSpec("strict", help: "End with 1 when a target is missed."),
    ],
    examples: [
      ExampleSpec("Two of them, quickly", "ferry-bench run --only ingest --only pull --quick"),
      ExampleSpec(
        "How long another process waits during a first pull",
        "ferry-bench run --only first-pull --rows 800000"),
      ExampleSpec(
        "What ten million updates leave behind",
        "ferry-bench run --only retention --updates 10000000"),
    ],
    exitCodes: [
      ExitCodeNote(0, "Measured; with --strict, every target is reached."),
      ExitCodeNote(1, "Something failed, or with --strict a target is missed."),
      ExitCodeNote(2, "Wrong usage; nothing was done."),
    ]
  ) { arguments in
    let names = arguments.strings("only")
    let chosen = Benchmark.all.filter { names.isEmpty || names.contains($0.name) }
    let context = BenchmarkContext(
      isQuick: arguments.flag("quick"), updates: try arguments.integerIfPresent("updates"),
      rows: try arguments.integerIfPresent("rows"), store: arguments.stringIfPresent("store"),
      database: arguments.stringIfPresent("database"))
    var report = BenchReport(isQuick: context.isQuick)
    for benchmark in chosen {
      try Task.checkCancellation()
      report.measurements += try await context.measure(benchmark)
    }
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(report.json.text)
    } else {
      try output.lines(report.lines(width: Terminal.current().width))
    }
    return arguments.flag("strict") && !report.holds ? .failed : .done
  }

  private static let list = CommandSpec(
    "list", summary: "List the benchmarks.",
    flags: [FlagSpec("json", help: "Answer in JSON, one object a line.")]
  ) { arguments in
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.lines(
        Benchmark.all.map { benchmark in
          JSONText.object([
            ("name", .string(benchmark.name)), ("summary", .string(benchmark.summary)),
          ]).text
        })
      return .done
    }
    var table = TextTable(["NAME", "MEASUREMENT"])
    for benchmark in Benchmark.all { table.append([benchmark.name, benchmark.summary]) }
    try output.lines(table.lines(width: Terminal.current().tableWidth))
    return .done
  }
}
