import FerryCommandLine
import FerryTestSupport
import Testing

@Suite("Errors of a wrong command line", .hangLimit)
struct UsageErrorTests {
  private func failure(
    _ line: String, _ environment: [String: String] = [:]
  ) -> UsageError? {
    do throws(UsageError) {
      _ = try Sample.ferry().parse(
        line.split(separator: " ").map(String.init), environment: environment)
      return nil
    } catch {
      return error
    }
  }

  @Test(
    "a mistyped word is answered with the closest known one",
    arguments: [
      ("--replcia a log", "did you mean --replica?"), ("log --jsno", "did you mean --json?"),
      ("log --lim 3", "did you mean --limit?"), ("--hepl", "did you mean --help?"),
      ("improt", "did you mean `ferry import`?"), ("tok create", "did you mean `ferry token`?"),
      ("token craete", "did you mean `ferry token create`?"),
      ("help improt", "did you mean `ferry import`?"),
      ("help token craete", "did you mean `ferry token create`?"),
      ("frobnicate", "run `ferry --help` to see the commands"),
      ("log --frobnicate", "run `ferry log --help` to see the options"),
      ("--limit 3 log", "write it after its command: `ferry log --limit`"),
      (
        "--role admin token",
        "write it after its command: `ferry token create --role`"
      ),
      ("token secre", "run `ferry token --help` to see the commands"),
    ])
  func suggestions(line: String, next: String) {
    #expect(failure(line)?.next == next)
  }

  @Test(
    "each broken rule has its code",
    arguments: [
      ("log --nothing", .unknownOption), ("log -x", .unknownOption), ("nothing", .unknownCommand),
      ("token", .missingCommand), ("--json", .missingCommand), ("init --server u", .missingOption),
      ("import", .missingArgument), ("track", .missingArgument), ("log --limit", .missingValue),
      ("log --limit --json", .missingValue), ("log -n -v", .missingValue),
      ("log --since -- 3s", .missingValue), ("log --json=1", .unexpectedValue),
      ("import a b c", .unexpectedArgument), ("token create me", .unexpectedArgument),
      ("log -n 1 -n 2", .repeatedOption), ("-r a log -r b", .repeatedOption),
      ("log -n 0", .invalidValue), ("log -n 1001", .invalidValue), ("log -n ten", .invalidValue),
      ("log --since 30", .invalidValue), ("log --bytes 4M", .invalidValue),
      ("token create --role king", .invalidValue), ("log --replica=", .invalidValue),
    ] as [(String, UsageError.Code)])
  func codes(line: String, code: UsageError.Code) {
    #expect(failure(line)?.code == code)
  }

  @Test("every error states the fault, the reason and the next step, and ends with status 2")
  func complete() throws {
    let error = try #require(failure("init --server u"))
    #expect(error.what == "--space is missing")
    #expect(error.why == "`ferry init` needs it")
    #expect(error.next == "add `--space NAME`")
    #expect(error.commandFailure.status == .usage)
    #expect(error.commandFailure.code == "missing_option")
    #expect(failure("init -s n")?.next == "add `--server URL`, or set FERRY_SERVER")
  }

  @Test("an invalid value is reported with its source and the valid ones")
  func values() throws {
    let error = try #require(failure("log", ["FERRY_LIMIT": "many"]))
    #expect(error.what == "'many' in FERRY_LIMIT does not fit --limit")
    #expect(error.why == "--limit takes a whole number from 1 to 1000")
    #expect(
      failure("token create --role king")?.why == "--role takes one of: reader, writer, admin")
  }

  @Test("if an option consumed another option, the error shows how to write such a value")
  func swallowed() {
    #expect(
      failure("log --limit --json")?.next
        == "write `--limit COUNT`; if --json is the value, write `--limit=--json`")
  }

  @Test("all faults of a declaration are reported")
  func problems() {
    let spec = CommandSpec(
      "x", summary: "No sentence",
      options: [
        OptionSpec("a", short: "h", value: "A", help: "", kind: .integer(0...1), default: "2"),
        OptionSpec("b", value: "B", help: "", default: "1", required: true),
      ],
      arguments: [
        ArgumentSpec("a", help: "", arity: .zeroOrMore), ArgumentSpec("c", help: ""),
      ],
      subcommands: [CommandSpec("y", summary: "Y.", flags: [FlagSpec("b", help: "")])])
    #expect(
      spec.problems() == [
        "x: -h is declared twice", "x: a is declared twice", "x: the default of --a is invalid",
        "x: --b is required and has a default", "x: the summary is not a sentence",
        "x: only the last argument may be repeated",
        "x: a required argument follows an optional one", "x y: b is declared twice",
        "x y: does nothing",
      ])
  }
}
