import FerryCommandLine
import FerryTestSupport
import Testing

@Suite("Parsing a command line", .hangLimit)
struct ParsingTests {
  let spec = Sample.ferry()

  private func parsed(
    _ line: String, _ environment: [String: String] = [:]
  ) throws -> ParsedArguments {
    let words = line.split(separator: " ").map(String.init)
    guard case .run(let arguments) = try spec.parse(words, environment: environment) else {
      throw CommandFailure("not a command to run", why: line, next: "", code: "test")
    }
    return arguments
  }

  @Test("the sample declaration has no problems")
  func sampleIsSound() {
    #expect(spec.problems() == [])
  }

  @Test(
    "an option's value can follow, be joined by =, or follow the letter, anywhere in the line",
    arguments: [
      "--replica a.db log", "--replica=a.db log", "-r a.db log", "-ra.db log", "-r=a.db log",
      "log --replica a.db", "log --replica=a.db", "log -r a.db", "-vr a.db log",
      "log tasks -r a.db",
    ])
  func optionForms(line: String) throws {
    #expect(try parsed(line).string("replica") == "a.db")
    #expect(try parsed(line).source("replica") == .commandLine)
    #expect(try parsed(line).path == ["ferry", "log"])
  }

  @Test(
    "positional words are assigned in order",
    arguments: [
      ("import tasks", "table", ["tasks"]), ("import tasks a.csv", "file", ["a.csv"]),
      ("import tasks", "file", []), ("import tasks -", "file", ["-"]),
      ("track a b c", "table", ["a", "b", "c"]), ("track a -v b", "table", ["a", "b"]),
      ("track -- --json -r", "table", ["--json", "-r"]),
      ("track a -- -- b", "table", ["a", "--", "b"]),
      ("track -- init", "table", ["init"]), ("track log", "table", ["log"]),
      ("track -5 -0.5", "table", ["-5", "-0.5"]), ("log", "table", []),
      ("track help", "table", ["help"]),
    ])
  func positionals(line: String, name: String, values: [String]) throws {
    #expect(try parsed(line).strings(name) == values)
  }

  @Test("a nested command is found by its path")
  func nested() throws {
    let arguments = try parsed("token create --role admin --json")
    #expect(arguments.path == ["ferry", "token", "create"])
    #expect(try arguments.string("role") == "admin")
    #expect(arguments.flag("json"))
    #expect(try parsed("token secret").path == ["ferry", "token", "secret"])
  }

  @Test("flags are counted, and letters can be bundled")
  func flags() throws {
    #expect(try parsed("log").count("verbose") == 0)
    #expect(try parsed("-v log -v").count("verbose") == 2)
    #expect(try parsed("log -vv").count("verbose") == 2)
    #expect(try parsed("log --verbose").flag("verbose"))
  }

  @Test("the command line overrides the environment, which overrides the default")
  func precedence() throws {
    let environment = ["FERRY_REPLICA": "env.db"]
    #expect(try parsed("log -r a.db", environment).string("replica") == "a.db")
    #expect(try parsed("log", environment).string("replica") == "env.db")
    #expect(try parsed("log", environment).source("replica") == .environment("FERRY_REPLICA"))
    #expect(try parsed("log").string("replica") == "./ferry.db")
    #expect(try parsed("log").source("replica") == .defaultValue)
    #expect(try parsed("log", ["FERRY_REPLICA": ""]).string("replica") == "./ferry.db")
    #expect(
      try parsed("init --space s", ["FERRY_SERVER": "http://x"]).string("server") == "http://x")
  }

  @Test("a flag's variable switches it on, and --no-name switches it off again")
  func flagEnvironment() throws {
    #expect(try parsed("log", ["FERRY_JSON": "1"]).flag("json"))
    #expect(try parsed("log", ["FERRY_JSON": "Yes"]).flag("json"))
    #expect(try !parsed("log", ["FERRY_JSON": "off"]).flag("json"))
    #expect(try !parsed("log --no-json", ["FERRY_JSON": "1"]).flag("json"))
    #expect(throws: UsageError.self) { try parsed("log", ["FERRY_JSON": "perhaps"]) }
    #expect(throws: UsageError.self) { try parsed("log --no-verbose") }
  }

  @Test("a repeated option keeps all its values, and the environment's are split at commas")
  func repeated() throws {
    let base = "init --server u -s n"
    #expect(try parsed("\(base) --label a --label b,c").strings("label") == ["a", "b,c"])
    #expect(try parsed(base, ["FERRY_LABELS": "a,b"]).strings("label") == ["a", "b"])
    #expect(try parsed(base).strings("label") == [])
  }

  @Test("values are read by their types")
  func typed() throws {
    let arguments = try parsed("log -n 7 --since 1h30m --bytes 4MiB --offset -3")
    #expect(try arguments.integer("limit") == 7)
    #expect(try arguments.duration("since") == .seconds(5400))
    #expect(try arguments.byteSize("bytes") == 4 << 20)
    #expect(try arguments.integer("offset") == -3)
    let bare = try parsed("log")
    #expect(try bare.integer("limit") == 20)
    #expect(try bare.durationIfPresent("since") == nil)
    #expect(try bare.byteSizeIfPresent("bytes") == nil)
    #expect(bare.stringIfPresent("offset") == nil)
    #expect(throws: UsageError.self) { try bare.integer("offset") }
    #expect(throws: UsageError.self) { try arguments.integer("offset", in: 0...10) }
    #expect(throws: UsageError.self) { try arguments.string("into") }
  }

  @Test(
    "help and version can be requested in several ways",
    arguments: [
      ("", .help(["ferry"])), ("--help", .help(["ferry"])), ("-h", .help(["ferry"])),
      ("help", .help(["ferry"])), ("help log", .help(["ferry", "log"])),
      ("help token create", .help(["ferry", "token", "create"])),
      ("token help create", .help(["ferry", "token", "create"])),
      ("log --help", .help(["ferry", "log"])), ("log --limit 3 -h", .help(["ferry", "log"])),
      ("--help log", .help(["ferry", "log"])), ("init -h", .help(["ferry", "init"])),
      ("token -h", .help(["ferry", "token"])),
      ("import a b c d --help", .help(["ferry", "import"])),
      ("--version", .version), ("log --version", .version),
    ] as [(String, ParsedCommand)])
  func help(line: String, expected: ParsedCommand) throws {
    #expect(try spec.parse(line.split(separator: " ").map(String.init)) == expected)
  }
}
