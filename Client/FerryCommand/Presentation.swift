import Ferry
import FerryCommandLine
import Foundation

/// The presentation of values and times.
enum Presentation {
  /// Returns a value in JSON: blobs as {"blob": base64}, as on the wire.
  static func json(_ value: Value) -> JSONText {
    switch value {
    case .null: .null
    case .integer(let integer): .int(integer)
    case .real(let real): .double(real)
    case .text(let text): .string(text)
    case .blob(let bytes): .object([("blob", .string(Data(bytes).base64EncodedString()))])
    }
  }

  /// Returns a value for a table's cell.
  static func cell(_ value: Value) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let text): text
    case .blob(let bytes): "<\(bytes.count.counted("byte"))>"
    }
  }

  static func json(_ columns: [Column]) -> JSONText {
    .object(columns.map { ($0.name.text, json($0.value)) })
  }

  static func cell(_ columns: [Column]) -> String {
    columns.map { "\($0.name)=\(cell($0.value))" }.joined(separator: " ")
  }

  /// Returns the values of an operation's columns. Of a counter the operation has the difference:
  /// the value is the one before the operation and the difference, as far as the former one is
  /// known.
  static func values(of operation: SyncOperation, from former: [Column]) -> [Column] {
    if operation.increments.isEmpty { return operation.columns }
    return operation.columns.map { column in
      guard operation.increments.contains(column.name),
        case .integer(let difference) = column.value,
        case .integer(let before)? = former.first(where: { $0.name == column.name })?.value
      else { return column }
      let (sum, isTooLarge) = before.addingReportingOverflow(difference)
      return isTooLarge ? column : Column(column.name, .integer(sum))
    }
  }

  /// Returns the values of an operation for a table's cell. A difference without a former value is shown as
  /// such: `votes by -3`.
  static func cell(of operation: SyncOperation, from former: [Column] = []) -> String {
    let shown = values(of: operation, from: former)
    return zip(operation.columns, shown).map { own, shown in
      let isKnown = former.contains { $0.name == own.name }
      return operation.increments.contains(own.name) && !isKnown
        ? "\(own.name) by \(cell(own.value))" : cell([shown])
    }.joined(separator: " ")
  }

  /// Returns the lost value of a conflict about a column for a table's cell; of a counter, the lost difference.
  static func cell(ofLost conflict: Conflict, in table: Name, _ schema: SpaceSchema) -> String {
    guard let column = conflict.column, case .integer = conflict.lost,
      schema.policy(of: column, in: table) == .counter
    else { return cell(conflict.lost) }
    return "by \(cell(conflict.lost))"
  }

  /// Returns a time in RFC 3339 format, in UTC, to the millisecond.
  static func time(_ milliseconds: Int64) -> String {
    // Whole seconds: a fraction in floating point may fall into the millisecond before.
    let rest = (milliseconds % 1000 + 1000) % 1000
    let date = Date(timeIntervalSince1970: Double((milliseconds - rest) / 1000))
    let digits = String(1000 + rest).dropFirst()
    return date.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: false))
      + ".\(digits)Z"
  }

  /// Names for other commands; tables never cut them.
  private static let identifiers: Set = ["operation", "id", "entry", "space"]

  /// Prints rows as a table, or as JSON lines.
  static func print(
    _ titles: [String], _ rows: [[(cell: String, json: JSONText)]], asJSON: Bool
  ) throws {
    let output = TextOutput.standardOutput
    if asJSON {
      try output.lines(
        rows.map { row in JSONText.object(zip(titles, row).map { ($0, $1.json) }).text })
      return
    }
    var table = TextTable(titles, whole: identifiers)
    for row in rows { table.append(row.map(\.cell)) }
    try output.lines(table.lines(width: Terminal.current().tableWidth))
  }
}
