import Ferry
import FerryCommandLine
import FerryPersistence
import FerryProtocol

/// `ferry import`: rows in JSON, JSON lines or CSV.
enum ImportCommand {
  static let importing = CommandSpec(
    "import", summary: "Import rows in JSON, JSON lines or CSV into a table.",
    discussion: """
      Creates and tracks the table if it is absent: the identifying column becomes its TEXT \
      PRIMARY KEY, and each other column gets the common type of its values. In an existing table, \
      rows are inserted or updated by their identifier. The whole file is checked before the first \
      row is written. Rows are written 1,000 in a transaction, and an interrupted import can be \
      run again.

      A row replaces the values of the row with the same identifier: one that the table has \
      already, or an earlier one of the file. Columns that are not in the file keep their values. \
      Standard error reports how many rows of each kind there were, and the first identifiers.
      """,
    options: [
      OptionSpec(
        "id", value: "COLUMN", help: "The column that identifies a row.", default: "id"),
      OptionSpec(
        "format", value: "FORMAT", help: "The file's format; the default depends on its name.",
        kind: .choice(ImportFormat.allCases.map(\.rawValue))),
      OptionSpec(
        "separator", value: "CHARACTER",
        help: "The character between the fields of CSV, such as ';', or tab; the default is a "
          + "comma, and a tab for a file .tsv."),
    ],
    flags: [
      FlagSpec("generate-id", help: "Give each row a new UUIDv7 as its identifier.")
    ],
    arguments: [
      ArgumentSpec("TABLE", help: "The table.", kind: CompletedNames.tables.kind),
      ArgumentSpec(
        "FILE", help: "The file to import; `-` reads standard input.", kind: .file),
    ],
    examples: [
      ExampleSpec(
        "Debian's list of languages",
        "ferry import languages /usr/share/iso-codes/json/iso_639-3.json --id alpha_3"),
      ExampleSpec(
        "From another program, with semicolons",
        "sqlite3 -header -separator ';' old.db 'SELECT * FROM notes' | ferry import notes - "
          + "--separator ';'"),
    ]
  ) { arguments in
    let path = try arguments.string("FILE")
    let separator = try separator(arguments)
    let data = path == "-" ? try FileAccess.standardInput() : try FileAccess.contents(of: path)
    let job = try ImportJob(
      table: Name(try arguments.string("TABLE")), data: data,
      reader: reader(arguments, path: path, separator, firstByte: data.first { $0 > 0x20 }),
      key: Name(try arguments.string("id")), generatesKey: arguments.flag("generate-id"))
    let replica = try await FerryCommand.open(arguments, creating: true)
    if let space = arguments.stringIfPresent("in"),
      try await SchemaEntry.tables(in: replica).contains(job.table),
      try await !replica.trackedLocals().contains(job.table)
    {
      throw CommandFailure(
        "table \(job.table) does not belong to space \(space)",
        why: "its rows would go to the space that tracks it, or to none",
        next: "leave --in out, or import into another table", code: "wrong_space")
    }
    let progress = ProgressBar("importing", unit: .items("rows"), total: Int64(job.survey.rows))
    let result = try await job.run(on: replica) { progress.update(completed: Int64($0)) }
    progress.finish()
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(result.json.text)
    } else {
      try TextOutput.standardOutput.line(result.text)
      try TextOutput.standardError.lines(result.notes)
    }
    return .done
  }

  /// Returns the separator of the command line.
  private static func separator(_ arguments: ParsedArguments) throws -> CSVSeparator? {
    guard let text = arguments.stringIfPresent("separator") else { return nil }
    guard let separator = CSVSeparator(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' cannot be a separator",
        why: "a separator is one ASCII character other than a letter, a digit and a quote",
        next: "give --separator ';', --separator '|' or --separator tab")
    }
    if let format = arguments.stringIfPresent("format"), format != ImportFormat.csv.rawValue {
      throw UsageError(
        .unexpectedValue, "--separator and --format \(format) contradict each other",
        why: "only CSV has a separator", next: "leave out one of them")
    }
    return separator
  }

  /// Returns the reader for a file. A separator implies CSV.
  private static func reader(
    _ arguments: ParsedArguments, path: String, _ separator: CSVSeparator?, firstByte: UInt8?
  ) -> ImportReader {
    let named = arguments.stringIfPresent("format").flatMap { ImportFormat(rawValue: $0) }
    let format =
      named ?? (separator == nil ? ImportFormat.guess(path: path, firstByte: firstByte) : .csv)
    return ImportReader(format: format, separator: separator ?? .guess(path: path))
  }
}
