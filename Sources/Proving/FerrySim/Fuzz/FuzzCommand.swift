import FerryCommandLine
import Foundation

/// `ferry-sim fuzz`: inputs by chance for all readers of bytes from outside.
enum FuzzCommand {
  static let specification = CommandSpec(
    "fuzz", summary: "Read inputs by chance: messages, headers, files and whole requests.",
    discussion: """
      Inputs are made from the golden messages, and from inputs that were interesting before. \
      Reading ends with a value or with an error: it never crashes, takes little memory, and has \
      the same result for the same bytes. A value that is written is read back. A server answers \
      each request, and never with an internal error. An input that breaks this is printed, and \
      added to the kept inputs. The same seed makes the same inputs.
      """,
    options: options + [
      OptionSpec(
        "cases", value: "N", help: "How many inputs.", kind: .integer(1...Int.max),
        default: "1000000"),
      OptionSpec(
        "jobs", value: "N", help: "The number of parallel processes.", kind: .integer(1...256),
        default: "2"),
    ],
    flags: [
      FlagSpec("keep", help: "Keep an input of each new kind of result, for later runs.")
    ],
    examples: [
      ExampleSpec("Ten million inputs", "ferry-sim fuzz --cases 10000000"),
      ExampleSpec("Packets alone, from another seed", "ferry-sim fuzz --only packet --seed 7"),
    ],
    exitCodes: [
      ExitCodeNote(0, "Every property held."), ExitCodeNote(1, "An input broke one."),
      ExitCodeNote(2, "Wrong usage; nothing was done."),
    ]
  ) { arguments in
    try await FuzzRun(arguments).perform()
  }

  private static let options = [
    OptionSpec("seed", value: "SEED", help: "The seed of all inputs.", default: "1"),
    OptionSpec("only", value: "TARGET", help: "A reader to try; may be repeated.", repeated: true),
    OptionSpec(
      "fixtures", value: "DIR", help: "The folder of golden messages.", kind: .directory,
      default: "Protocol/fixtures"),
    OptionSpec(
      "corpus", value: "DIR", help: "The folder of kept inputs.", kind: .directory,
      default: "Tests/Fuzz"),
  ]

  /// One of a run's processes.
  static let worker = CommandSpec(
    "fuzz-worker", summary: "One process of a run.",
    options: options + [
      OptionSpec("cases", value: "N", help: "How many inputs.", kind: .integer(0...Int.max)),
      OptionSpec("box", value: "FILE", help: "A file for the present input.", kind: .file),
    ], hidden: true
  ) { arguments in
    let worker = FuzzWorker(
      targets: try targets(arguments), corpus: try corpus(arguments),
      fixtures: URL(filePath: try arguments.string("fixtures")), seed: try Seed.read(arguments))
    do {
      try await worker.run(
        try arguments.integer("cases"), box: try arguments.string("box"))
    } catch let finding as FuzzFinding {
      try TextOutput.standardOutput.line("finding \(finding)")
      return .failed
    }
    return .done
  }

  /// Returns all targets, or the named ones.
  static func targets(_ arguments: ParsedArguments) throws -> [FuzzTarget] {
    let all = FuzzTarget.messages + FuzzTarget.texts + [FuzzTarget.requests]
    let names = arguments.strings("only")
    guard !names.isEmpty else { return all }
    return try names.map { name in
      guard let target = (all + FuzzTarget.planted).first(where: { $0.name == name }) else {
        throw UsageError(
          .invalidValue, "'\(name)' is not a reader", why: "there is none of this name",
          next: "name one of \(all.map(\.name).joined(separator: ", "))")
      }
      return target
    }
  }

  static func corpus(_ arguments: ParsedArguments) throws -> FuzzCorpus {
    FuzzCorpus(folder: URL(filePath: try arguments.string("corpus")))
  }
}

extension FuzzTarget {
  /// Whole requests: the worker has the service for them.
  static let requests = FuzzTarget(name: FuzzService.name) { _ in "no service" }

  /// Readers with a mistake each, which a run has to find.
  static let planted = [
    FuzzTarget(name: "planted-mistake", samples: ["{\"a\":1}"]) { bytes in
      guard !bytes.contains(0x00) else { throw FuzzFinding("a planted mistake") }
      return "read"
    },
    FuzzTarget(name: "planted-crash", samples: ["{\"a\":1}"]) { bytes in
      guard !bytes.contains(0x00) else { fatalError("a planted crash") }
      return "read"
    },
  ]
}
