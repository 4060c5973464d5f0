import FerryProtocol

/// The result of a first pass over a file: columns, their types, and whether every row has an
/// identifier.
package struct ImportSurvey: Sendable, Equatable {
  /// The narrowest of SQLite's types for a column's values so far.
  package enum Affinity: String, Sendable {
    case unknown = ""
    case integer = "INTEGER"
    case real = "REAL"
    case text = "TEXT"
    case mixed = "BLOB"
  }

  /// Names in the order of their first occurrence, without the key.
  package private(set) var columns: [Name] = []
  package private(set) var affinities: [Name: Affinity] = [:]
  package private(set) var rows = 0
  /// Columns with an integer that has no equal real number.
  package private(set) var wideIntegers: Set<Name> = []
  /// The number of rows with the same identifier as an earlier row.
  package private(set) var repeatedRows = 0
  /// The identifiers of several rows.
  package private(set) var repeated: Set<Name> = []
  /// The first of them, in the order of the file.
  package private(set) var firstRepeated: [Name] = []
  /// The most identifiers in ``firstRepeated``.
  package static let namedMax = 5
  private var identifiers: Set<Name> = []
  /// The names of all columns so far, by the form SQLite compares.
  private var spellings: [Name: Name] = [:]
  /// The column of a row's identifier; `nil` if each row gets a new identifier.
  package let key: Name?

  /// Creates an empty survey.
  ///
  /// - Parameter generated: the name of the key column if each row gets a new identifier.
  package init(key: Name?, generated: Name? = nil) {
    self.key = key
    if let name = key ?? generated { spellings[name.folded] = name }
  }

  /// Adds one row to the survey.
  ///
  /// - Throws: ``ImportError`` if the row has no usable key.
  package mutating func add(_ row: [Column]) throws {
    rows += 1
    for column in row where affinities[column.name] == nil { try add(column.name) }
    if let key {
      guard let identifier = Self.identifier(in: row, key: key) else {
        throw ImportError(
          "row \(rows) has no \(key), which identifies it; name another column with --id")
      }
      add(identifier: Name(identifier))
    }
    for column in row where column.name != key {
      let known = affinities[column.name]
      if known == nil { columns.append(column.name) }
      let joined = (known ?? .unknown).joined(with: column.value)
      if column.value.isWideInteger { wideIntegers.insert(column.name) }
      // A REAL column would round such an integer.
      let isRounded = joined == .real && wideIntegers.contains(column.name)
      affinities[column.name] = isRounded ? .mixed : joined
    }
  }

  private mutating func add(identifier: Name) {
    if identifiers.insert(identifier).inserted { return }
    repeatedRows += 1
    guard repeated.insert(identifier).inserted, firstRepeated.count < Self.namedMax else { return }
    firstRepeated.append(identifier)
  }

  /// Checks and notes a new column's name.
  private mutating func add(_ name: Name) throws {
    if let fault = NameRule.fault(in: name, limits: .standard) {
      throw ImportError("row \(rows) has an invalid column: \(fault)")
    }
    if let other = spellings.updateValue(name, forKey: name.folded), other != name {
      throw ImportError(
        "row \(rows) has a column \(name) beside \(other): SQLite treats both as one column; "
          + "rename one of them in the file")
    }
  }

  /// Returns the row's identifier as text; whole numbers as decimal digits.
  package static func identifier(in row: [Column], key: Name) -> String? {
    switch row.first(where: { $0.name == key })?.value {
    case .text(let text)
    where !text.isEmpty && text.utf8.count <= Limits.standard.recordBytes && !text.utf8.contains(0):
      text
    case .integer(let integer): "\(integer)"
    default: nil
    }
  }

  /// Converts a text from CSV to a number, if the whole column has numbers.
  package func typed(_ column: Column, isUntyped: Bool) -> Value {
    guard isUntyped, case .text(let text) = column.value else { return column.value }
    switch affinities[column.name] {
    case .integer: return Int64(text).map { .integer($0) } ?? column.value
    case .real: return Double(text).map { .real($0) } ?? column.value
    default: return column.value
    }
  }

  /// Adds a row of a file with texts in all fields: reads numbers from the texts.
  package mutating func addUntyped(_ row: [Column]) throws {
    try add(row.map { Column($0.name, $0.name == key ? $0.value : Self.number(in: $0.value)) })
  }

  /// Returns a number only if it has the same text again, so 007 and 1e3 stay text.
  private static func number(in value: Value) -> Value {
    guard case .text(let text) = value else { return value }
    if let integer = Int64(text), "\(integer)" == text { return .integer(integer) }
    if let real = Double(text), real.isFinite, "\(real)" == text { return .real(real) }
    return value
  }
}

extension ImportSurvey.Affinity {
  fileprivate func joined(with value: Value) -> Self {
    let other: Self =
      switch value {
      case .null: .unknown
      case .integer: .integer
      case .real: .real
      case .text: .text
      case .blob: .mixed
      }
    if self == .unknown || self == other { return other == .unknown ? self : other }
    if other == .unknown { return self }
    let isNumeric = [self, other].allSatisfy { $0 == .integer || $0 == .real }
    return isNumeric ? .real : .mixed
  }
}

extension Value {
  /// True if a column of reals would change the number.
  fileprivate var isWideInteger: Bool {
    if case .integer(let integer) = self {
      Int64(exactly: Double(integer)) != integer
    } else {
      false
    }
  }
}
