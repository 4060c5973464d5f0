import FerryPlatform
import FerryProtocol

/// The conversion of values stored in a column (https://sqlite.org/datatype3.html §3).
enum ColumnAffinity: Sendable, Equatable {
  case none
  case text
  case real
  /// The affinities INTEGER and NUMERIC; they store alike.
  case numeric

  /// Derives the affinity from the declared type, as SQLite does.
  init(declared type: String) {
    let type = type.uppercasedASCII
    if type.has("INT") {
      self = .numeric
    } else if ["CHAR", "CLOB", "TEXT"].contains(where: { type.has($0) }) {
      self = .text
    } else if type.isEmpty || type.has("BLOB") {
      self = .none
    } else if ["REAL", "FLOA", "DOUB"].contains(where: { type.has($0) }) {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// Returns true if a column of this affinity has `stored` after `value` is written to it.
  func shows(_ stored: Value, for value: Value) -> Bool {
    if stored == value { return true }
    switch (self, value, stored) {
    case (.text, .integer(let integer), .text(let text)): return text == String(integer)
    case (.text, .real(let real), .text(let text)): return Self.isAbout(real, text)
    case (.real, .integer(let integer), .real(let real)): return Double(integer) == real
    // A whole real is stored as an integer there; an integer has no −0.0.
    case (.real, .real(let real), .real(let shown)): return real == 0 && shown == 0
    case (.numeric, .real(let real), .integer(let integer)): return Double(integer) == real
    case (.real, .text(let text), .real(let real)), (.numeric, .text(let text), .real(let real)):
      return Self.number(text) == real
    case (.numeric, .text(let text), .integer(let integer)):
      return Self.number(text) == Double(integer)
    default: return false
    }
  }

  /// Returns true if a text is a number as SQLite writes it, with fifteen digits. The largest
  /// numbers are infinite with these digits.
  private static func isAbout(_ real: Double, _ text: String) -> Bool {
    guard let shown = number(text) else { return false }
    if shown.isInfinite || real.isInfinite {
      return shown.isInfinite && shown.sign == real.sign && abs(real) >= 1.797_693_134_862_31e308
    }
    return abs(shown - real) <= abs(real) * 1e-14
  }

  private static func number(_ text: String) -> Double? {
    Double(text.trimmedASCII)
  }
}

/// The value of a column in a row inserted without it.
enum ColumnDefault: Sendable, Equatable {
  case null
  case constant(Value)
  /// The value of an expression, different each time.
  case varying
}

/// Compares a row here with the server's version of the record. These are not differences:
///
/// - a column missing from the table here,
/// - a column missing on the server, with the local default here,
/// - a value converted from the server's by the column's declared type.
struct RowComparison: Sendable {
  struct ColumnRule: Sendable {
    let affinity: ColumnAffinity
    let defaultValue: ColumnDefault
  }

  /// The rules of the table's local columns, by name.
  let rules: [Name: ColumnRule]

  /// Returns the difference between a row and the record as the server has it; `nil` without one.
  ///
  /// - Parameter here: the row's columns; `nil` if there is no row.
  func difference(here: [Column]?, there: RecordState) -> RecordDifference.Kind? {
    switch (here, there.isAlive) {
    case (nil, false): return nil
    case (nil, true): return .missingHere
    case (let here?, false): return .missingThere(here)
    case (let here?, true):
      let columns = differing(here: here, there: there.columns)
      return columns.isEmpty ? nil : .different(columns)
    }
  }

  /// Returns the differing columns, ordered by the bytes of their names.
  func differing(here: [Column], there: [ColumnState]) -> [ColumnDifference] {
    var found: [ColumnDifference] = []
    for column in here {
      let other = there.first { $0.name == column.name }
      guard !isSame(column, other?.value) else { continue }
      found.append(
        ColumnDifference(column: column.name, here: column.value, there: other?.value ?? .null))
    }
    for column in there where column.value != .null && rules[column.name] != nil {
      guard !here.contains(where: { $0.name == column.name }) else {
        continue
      }
      found.append(ColumnDifference(column: column.name, here: .null, there: column.value))
    }
    return found.sorted { $0.column < $1.column }
  }

  /// Returns true if a column has NULL or a constant default, as if nobody had written it.
  func isEmpty(_ value: Value, in column: Name) -> Bool {
    if value == .null { return true }
    guard let rule = rules[column], case .constant = rule.defaultValue else { return false }
    return holdsDefault(value, rule)
  }

  private func isSame(_ here: Column, _ there: Value?) -> Bool {
    if here.value == there ?? .null { return true }
    guard let rule = rules[here.name] else { return false }
    guard let there else { return holdsDefault(here.value, rule) }
    return rule.affinity.shows(here.value, for: there)
  }

  private func holdsDefault(_ value: Value, _ rule: ColumnRule) -> Bool {
    switch rule.defaultValue {
    case .null: value == .null
    case .constant(let constant): rule.affinity.shows(value, for: constant)
    case .varying: true
    }
  }
}

extension RecordDifference.Kind {
  /// The values that perhaps no other device has.
  var lost: [Column] {
    switch self {
    case .missingHere: []
    case .missingThere(let row): row.filter { $0.value != .null }
    case .different(let columns):
      columns.filter { $0.here != .null }.map { Column($0.column, $0.here) }
    }
  }

  /// True if a repair deletes the row.
  var losesRow: Bool { if case .missingThere = self { true } else { false } }
}

/// A record's deferred changes laid over the row: the record as received by this device.
enum KeptOverlay {
  /// Returns the record as this device has received it.
  ///
  /// - Parameter row: the row in the table, `nil` if there is none.
  static func received(row: [Column]?, kept: RecordState?) -> [Column]? {
    guard let kept else { return row }
    if kept.deleted != nil && !kept.isAlive { return nil }
    let columns = kept.columns.map { Column($0.name, $0.value) }
    if kept.inserted != nil { return columns }
    guard let row else { return nil }
    let names = Set(columns.map(\.name))
    return row.filter { !names.contains($0.name) } + columns
  }
}
