import Ferry
import FerryPersistence
import FerryProtocol
import Foundation

/// An import: first a survey, then the writes.
struct ImportJob: Sendable {
  /// The number of rows in one transaction.
  private static let batch = 1_000

  let table: Name
  let survey: ImportSurvey
  private let data: Data
  private let reader: ImportReader
  private let key: Name
  private let generatesKey: Bool

  /// Reads the file once, and throws ``ImportError`` if a row cannot be imported.
  init(
    table: Name, data: Data, reader: ImportReader, key: Name, generatesKey: Bool
  ) throws {
    self.table = table
    self.data = data
    self.reader = reader
    self.key = key
    self.generatesKey = generatesKey
    let isUntyped = reader.format == .csv
    for name in [table, key] {
      if let fault = NameRule.fault(in: name, limits: .standard) {
        throw ImportError("the name of the table or of its key cannot be used: \(fault)")
      }
    }
    var survey = ImportSurvey(key: generatesKey ? nil : key, generated: key)
    try data.withUnsafeBytes { bytes in
      try reader.read(bytes) { row, _ in
        try isUntyped ? survey.addUntyped(row) : survey.add(row)
      }
    }
    self.survey = survey
  }

  /// Writes the rows, and returns their numbers.
  func run(
    on replica: Replica, progress: @escaping @Sendable (Int) -> Void
  ) async throws -> ImportResult {
    let created = try await replica.write { try makeTable($0) }
    if created { try await replica.track(table) }
    let replaced = try await replica.writeInBulk { writer in
      try write(to: writer, progress: progress)
    }
    return ImportResult(
      table: table, isCreated: created, rows: survey.rows, repeatedRows: survey.repeatedRows,
      firstRepeated: survey.firstRepeated, replacedRows: replaced.count,
      firstReplaced: replaced.first)
  }

  /// Writes the rows in transactions. Returns the rows already in the table before.
  private func write(
    to writer: BulkWriter, progress: (Int) -> Void
  ) throws -> (count: Int, first: [Name]) {
    var rows: [[Column]] = []
    var done = 0
    var replaced = ReplacedRows(repeated: survey.repeated)
    func flush() throws {
      if writer.isCancelled { throw CancellationError() }
      let keys = try writer.transaction { database in
        let keys = try existing(rows, database)
        try insert(rows, database)
        return keys
      }
      replaced.add(rows.compactMap { identifier(of: $0) }, existing: keys)
      done += rows.count
      rows.removeAll(keepingCapacity: true)
      progress(done)
    }
    try data.withUnsafeBytes { bytes in
      try reader.read(bytes) { row, _ in
        rows.append(row)
        if rows.count == Self.batch { try flush() }
      }
    }
    try flush()
    return (replaced.count, replaced.first)
  }

  private func identifier(of row: [Column]) -> Name? {
    generatesKey ? nil : ImportSurvey.identifier(in: row, key: key).map { Name($0) }
  }

  /// Returns the identifiers of rows already in the table.
  private func existing(_ rows: [[Column]], _ database: Database) throws -> Set<Name> {
    let identifiers = Set(rows.compactMap { identifier(of: $0) })
    guard !identifiers.isEmpty else { return [] }
    let marks = Array(repeating: "?", count: identifiers.count).joined(separator: ", ")
    let found = try database.query(
      "SELECT \(quoted(key)) AS found FROM \(quoted(table)) WHERE \(quoted(key)) IN (\(marks))",
      identifiers.map { .text($0.text) })
    return Set(
      found.compactMap { row in
        ImportSurvey.identifier(in: [Column("found", row["found"])], key: "found")
          .map { Name($0) }
      })
  }

  private func makeTable(_ database: Database) throws -> Bool {
    let exists = try database.query(
      "SELECT 1 FROM sqlite_schema WHERE name = ? COLLATE NOCASE", [.text(table.text)])
    guard exists.isEmpty else {
      try checkColumns(database)
      return false
    }
    guard survey.rows > 0 else {
      throw ImportError("the file has no rows, so the table's columns are not known")
    }
    let columns = survey.columns.filter { $0 != key }.map { name in
      let affinity = survey.affinities[name] ?? .unknown
      let type = affinity == .mixed && reader.format == .csv ? "TEXT" : affinity.rawValue
      return ", \(quoted(name)) \(type)"
    }
    try database.execute(
      single: "CREATE TABLE \(quoted(table))(\(quoted(key)) TEXT PRIMARY KEY NOT NULL"
        + columns.joined() + ")")
    return true
  }

  /// Checks that the table has the file's columns. Throws also for columns of reals: they would
  /// round large integers.
  private func checkColumns(_ database: Database) throws {
    let columns = try database.query(
      "SELECT name, upper(type) AS type FROM pragma_table_info(?)", [.text(table.text)])
    let known = columns.compactMap { $0["name"].stringValue }
    let folded = Set(known.map { Name($0).folded })
    if let unknown = ([key] + survey.columns).first(where: { !folded.contains($0.folded) }) {
      throw ImportError(
        "table \(table) has no column \(unknown); it has \(known.joined(separator: ", "))")
    }
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

  /// Returns true if a declared type has the affinity REAL (https://sqlite.org/datatype3.html
  /// §3.1).
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
        [id] + columns.map { survey.typed($0, isUntyped: reader.format == .csv) })
    }
  }
}
