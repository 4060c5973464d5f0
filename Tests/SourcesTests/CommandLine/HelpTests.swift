import FerryCommandLine
import FerryTestSupport
import Testing

@Suite("Help texts", .hangLimit)
struct HelpTests {
  @Test("the root's help shows every section in its order")
  func root() {
    #expect(
      Sample.ferry().help() == """
        USAGE
          ferry [OPTIONS] COMMAND

        Keep a SQLite file in step with its space.

        Edits are recorded in the replica's own transaction, so nothing is lost while
        the server is away.

          ferry init, then ferry sync

        OPTIONS
          -r, --replica FILE  The replica's file. [env: FERRY_REPLICA]
                              [default: ./ferry.db]
          --[no-]json         Answer in JSON. [env: FERRY_JSON]
          -v, --verbose       Say more; twice for even more.
          -h, --help          Show this help.
          --version           Show the version.

        COMMANDS
          init    Make the file a replica.
          import  Read records from a file.
          track   Record the edits of tables.
          log     Show what happened.
          token   Manage access.

        EXAMPLES
          # Synchronise once
          ferry sync

        EXIT CODES
          0  Done.
          1  Failed; the message gives the reason.
          2  Wrong usage; nothing was done.
          3  Offline, unreachable or busy; work is kept, try again later.
          4  Needs you: a decision (conflicts, quarantine) or a token that allows this.
        """)
  }

  @Test("a command's help marks required arguments and lists the global options separately")
  func command() {
    #expect(
      Sample.ferry().help(["init"]) == """
        USAGE
          ferry init --server URL --space NAME [OPTIONS]

        Make the file a replica.

        OPTIONS
          --server URL      Where the server is. [required] [env: FERRY_SERVER]
          -s, --space NAME  The space. [required]
          --label WORD      Any number of words. [repeatable] [env: FERRY_LABELS]
          -h, --help        Show this help.

        GLOBAL OPTIONS
          -r, --replica FILE  The replica's file. [env: FERRY_REPLICA]
                              [default: ./ferry.db]
          --[no-]json         Answer in JSON. [env: FERRY_JSON]
          -v, --verbose       Say more; twice for even more.
        """)
    let importHelp = Sample.ferry().help(["import"])
    #expect(importHelp.contains("  ferry import [OPTIONS] TABLE [FILE]\n"))
    #expect(importHelp.contains("ARGUMENTS\n  TABLE   The table to fill.\n  [FILE]  JSON or CSV."))
    #expect(Sample.ferry().help(["track"]).contains("ferry track [OPTIONS] TABLE…\n"))
  }

  @Test("help lists choices and no hidden commands")
  func nested() {
    let help = Sample.ferry().help(["token", "create"])
    #expect(
      help.contains(
        "--role ROLE  What it may do. [one of: reader, writer, admin] [default: reader]"))
    #expect(!Sample.ferry().help(["token"]).contains("secret"))
    #expect(!Sample.ferry().help().contains("--trace"))
  }

  @Test("no line is wider than the terminal, nor than 100 columns", arguments: [40, 60, 80, 200])
  func width(width: Int) {
    let spec = CommandSpec(
      "x", summary: String(repeating: "word ", count: 60) + "end.",
      options: [
        OptionSpec(
          "a-rather-long-option-name", value: "VALUE",
          help: String(repeating: "help ", count: 40))
      ]
    ) { _ in .done }
    let widest = spec.help(width: width).split(separator: "\n").map(\.count).max() ?? 0
    #expect(widest <= min(100, width))
    #expect(widest > min(100, width) - 6)
  }

  @Test("titles are bold on request only")
  func bold() {
    #expect(Sample.ferry().help(bold: true).hasPrefix("\u{1B}[1mUSAGE\u{1B}[0m\n"))
    #expect(!Sample.ferry().help().contains("\u{1B}"))
  }
}
