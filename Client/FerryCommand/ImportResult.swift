import Ferry
import FerryCommandLine
import FerryPersistence

/// The numbers of an import, for the report; pure.
struct ImportResult: Equatable {
  let table: Name
  /// True if the import created the table.
  let isCreated: Bool
  /// The rows of the file.
  let rows: Int
  /// Rows with the same identifier as an earlier row of the file.
  let repeatedRows: Int
  /// The first identifiers of such rows.
  let firstRepeated: [Name]
  /// Rows in the table before the import.
  let replacedRows: Int
  /// The first identifiers of such rows.
  let firstReplaced: [Name]

  /// The line for standard output.
  var text: String {
    "\(rows.counted("row")) imported into \(table)\(isCreated ? " (created and tracked)" : "")"
  }

  /// The lines for standard error, about identifiers that existed already.
  var notes: [String] {
    var lines: [String] = []
    if repeatedRows > 0 {
      let verb = repeatedRows == 1 ? "has" : "have"
      lines.append(
        "ferry: \(repeatedRows.counted("row")) of the file \(verb) the identifier of an earlier row "
          + "(\(Self.list(firstRepeated))): the values of the last one count")
    }
    if replacedRows > 0 {
      let verb = replacedRows == 1 ? "was" : "were"
      lines.append(
        "ferry: \(replacedRows.counted("row")) \(verb) in the table before "
          + "(\(Self.list(firstReplaced))): the values of the file replaced theirs")
    }
    return lines
  }

  /// The object for `--json`.
  var json: JSONText {
    .object([
      ("table", .string(table.text)), ("rows", .int(rows)), ("created", .bool(isCreated)),
      ("inserted", .int(rows - repeatedRows - replacedRows)), ("replaced", .int(replacedRows)),
      ("firstReplaced", .array(firstReplaced.map { .string($0.text) })),
      ("repeated", .int(repeatedRows)),
      ("firstRepeated", .array(firstRepeated.map { .string($0.text) })),
    ])
  }

  /// Returns the names, and an ellipsis if there may be more.
  private static func list(_ names: [Name]) -> String {
    let more = names.count < ImportSurvey.namedMax ? [] : [Glyphs.current.ellipsis]
    return (names.map(\.text.escapedForTerminal) + more).joined(separator: ", ")
  }
}

/// Counts the rows of a file already in the table before, batch by batch; pure. A repeated
/// identifier counts once, since the later rows find the first one.
struct ReplacedRows {
  /// The identifiers of several rows of the file.
  let repeated: Set<Name>
  private var seen: Set<Name> = []
  private(set) var count = 0
  /// The first identifiers, in the order of the file.
  private(set) var first: [Name] = []

  init(repeated: Set<Name>) { self.repeated = repeated }

  /// Adds a batch.
  ///
  /// - Parameters:
  ///   - identifiers: those of the batch's rows, in order.
  ///   - existing: those in the table before the batch.
  mutating func add(_ identifiers: [Name], existing: Set<Name>) {
    for identifier in identifiers {
      if repeated.contains(identifier), !seen.insert(identifier).inserted { continue }
      guard existing.contains(identifier) else { continue }
      count += 1
      if first.count < ImportSurvey.namedMax { first.append(identifier) }
    }
  }
}
