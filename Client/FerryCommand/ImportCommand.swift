import Ferry
import FerryCommandLine
import FerryProtocol
import FerryTableImport
import Foundation

extension FerryCommand {
  static let importing = CommandSpec(
    "import", summary: "Import a JSON, JSON lines or CSV file into a table.",
    discussion: """
      Creates and tracks the table if it is absent: the identifying column becomes its TEXT \
      PRIMARY KEY, and each other column gets the common type of its values. In an existing table, \
      rows are inserted or updated by their identifier. The whole file is checked before the first \
      row is written. Rows are written 1,000 in a transaction, and an interrupted import can be \
      run again.
      """,
    options: [
      OptionSpec(
        "id", value: "COLUMN", help: "The column that identifies a row.", default: "id"),
      OptionSpec(
        "format", value: "FORMAT", help: "The file's format; the default depends on its name.",
        kind: .choice(ImportFormat.allCases.map(\.rawValue))),
    ],
    flags: [
      FlagSpec("generate-id", help: "Give each row a new UUIDv7 as its identifier.")
    ],
    arguments: [
      ArgumentSpec("TABLE", help: "The table."),
      ArgumentSpec("FILE", help: "The file to import.", kind: .file),
    ],
    examples: [
      ExampleSpec(
        "Debian's list of languages",
        "ferry import languages /usr/share/iso-codes/json/iso_639-3.json --id alpha_3")
    ]
  ) { arguments in
    let data = try FileAccess.contents(of: try arguments.string("FILE"))
    let job = try ImportJob(
      table: Name(try arguments.string("TABLE")), path: try arguments.string("FILE"), data: data,
      format: arguments.stringIfPresent("format"), key: Name(try arguments.string("id")),
      generatesKey: arguments.flag("generate-id"))
    let replica = try await open(arguments, creating: true)
    let progress = ProgressBar("importing", unit: .items("rows"), total: Int64(job.survey.rows))
    let created = try await job.run(on: replica) { progress.update(completed: Int64($0)) }
    progress.finish()
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(
        JSONText.object([
          ("table", .string(job.table.text)), ("rows", .int(job.survey.rows)),
          ("created", .bool(created)),
        ]).text)
    } else {
      let note = created ? " (created and tracked)" : ""
      try output.line("\(job.survey.rows.counted("row")) imported into \(job.table)\(note)")
    }
    return .done
  }
}

/// An import: first a survey, then the writes.
struct ImportJob: Sendable {
  /// The number of rows in one transaction.
  private static let batch = 1_000

  let table: Name
  let survey: ImportSurvey
  private let data: Data
  private let format: ImportFormat
  private let key: Name
  private let generatesKey: Bool

  /// Reads the file once, and throws ``ImportError`` if a row cannot be imported.
  init(
    table: Name, path: String, data: Data, format: String?, key: Name, generatesKey: Bool
  ) throws {
    self.table = table
    self.data = data
    self.key = key
    self.generatesKey = generatesKey
    let format =
      format.flatMap { ImportFormat(rawValue: $0) }
      ?? ImportFormat.guess(path: path, firstByte: data.first { $0 > 0x20 })
    let isUntyped = format == .csv
    for name in [table, key] {
      if let fault = NameRule.fault(in: name, limits: .standard) {
        throw ImportError("the name of the table or of its key cannot be used: \(fault)")
      }
    }
    var survey = ImportSurvey(key: generatesKey ? nil : key, generated: key)
    try data.withUnsafeBytes { bytes in
      try ImportReader(format: format).read(bytes) { row, _ in
        try isUntyped ? survey.addUntyped(row) : survey.add(row)
      }
    }
    self.format = format
    self.survey = survey
  }

  /// Writes the rows. Returns whether it created the table.
  func run(on replica: Replica, progress: @escaping @Sendable (Int) -> Void) async throws -> Bool {
    let created = try await replica.write { try makeTable($0) }
    if created { try await replica.track(table) }
    try await replica.writeInBulk { writer in try write(to: writer, progress: progress) }
    return created
  }

  private func write(to writer: BulkWriter, progress: (Int) -> Void) throws {
    var rows: [[Column]] = []
    var done = 0
    func flush() throws {
      if writer.isCancelled { throw CancellationError() }
      try writer.transaction { try insert(rows, $0) }
      done += rows.count
      rows.removeAll(keepingCapacity: true)
      progress(done)
    }
    try data.withUnsafeBytes { bytes in
      try ImportReader(format: format).read(bytes) { row, _ in
        rows.append(row)
        if rows.count == Self.batch { try flush() }
      }
    }
    try flush()
  }

  private func makeTable(_ database: Database) throws -> Bool {
    let exists = try database.query(
      "SELECT 1 FROM sqlite_schema WHERE name = ? COLLATE NOCASE", [.text(table.text)])
    guard exists.isEmpty else {
      try checkTypes(database)
      return false
    }
    guard survey.rows > 0 else {
      throw ImportError("the file has no rows, so the table's columns are not known")
    }
    let columns = survey.columns.filter { $0 != key }.map { name in
      let affinity = survey.affinities[name] ?? .unknown
      let type = affinity == .mixed && format == .csv ? "TEXT" : affinity.rawValue
      return ", \(quoted(name)) \(type)"
    }
    try database.execute(
      single: "CREATE TABLE \(quoted(table))(\(quoted(key)) TEXT PRIMARY KEY NOT NULL"
        + columns.joined() + ")")
    return true
  }

  /// Checks columns of reals, which would round large integers.
  private func checkTypes(_ database: Database) throws {
    let columns = try database.query(
      "SELECT name, upper(type) AS type FROM pragma_table_info(?)", [.text(table.text)])
    for column in columns {
      guard case .text(let name) = column["name"], case .text(let type) = column["type"],
        survey.wideIntegers.contains(where: { $0.folded == Name(name).folded }),
        Self.isReal(type)
      else { continue }
      throw ImportError(
        "column \(name) of the table is of type \(type), which would round some of the file's "
          + "integers; give the column another type, such as NUMERIC")
    }
  }

  /// Whether a declared type has the affinity REAL (https://sqlite.org/datatype3.html §3.1).
  private static func isReal(_ type: String) -> Bool {
    !["INT", "CHAR", "CLOB", "TEXT", "BLOB"].contains { type.contains($0) }
      && ["REAL", "FLOA", "DOUB"].contains { type.contains($0) }
  }

  private func insert(_ rows: [[Column]], _ database: Database) throws {
    for row in rows {
      let columns = row.filter { $0.name != key }
      let id =
        generatesKey
        ? Value.text("\(UniqueID.generate())")
        : Value.text(ImportSurvey.identifier(in: row, key: key) ?? "")
      let names = columns.map { quoted($0.name) }
      let sets = names.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
      let marks = Array(repeating: "?", count: names.count + 1).joined(separator: ", ")
      try database.execute(
        single: "INSERT INTO \(quoted(table)) AS ferry_row("
          + "\(([quoted(key)] + names).joined(separator: ", "))) "
          + "VALUES (\(marks)) ON CONFLICT(\(quoted(key))) DO "
          + (sets.isEmpty ? "NOTHING" : "UPDATE SET \(sets)"),
        [id] + columns.map { survey.typed($0, isUntyped: format == .csv) })
    }
  }
}
