/// The definition of a table in a space's schema, from which devices create the table (SPEC.md
/// §11). It is a value and no SQL: a device never runs text of a schema.
///
/// ```swift
/// let tasks = DeclaredTable(
///   key: "id", columns: [DeclaredColumn("title", .text, isRequired: true)],
///   references: [DeclaredReference(["list"], to: "lists", onDelete: .cascade)])
/// ```
public struct DeclaredTable: Sendable, Equatable {
  /// The primary key on devices.
  public var key: DeclaredKey
  /// The columns beside the key, in their order: at most ``Limits/columns``.
  public var columns: [DeclaredColumn]
  /// Lists of columns whose values no two rows of a device share: at most 32 of 1 to 16 columns.
  public var unique: [[Name]]
  /// The foreign keys: at most 64.
  public var references: [DeclaredReference]
  /// Lists of columns with an index: at most 64 of 1 to 16 columns.
  public var indexes: [[Name]]
  /// True if devices refuse values of another type (https://sqlite.org/stricttables.html).
  public var isStrict = false
  /// True if devices store the rows by their key (https://sqlite.org/withoutrowid.html).
  public var isWithoutRowID = false
  /// True if a device never uses the integer of a mapped key again
  /// (https://sqlite.org/autoinc.html).
  public var isAutoincrement = false
  /// The places of the key's columns among all columns, from 0; empty if they come first.
  public var keyPlaces: [Int] = []

  /// Creates a definition from the given parts.
  public init(
    key: DeclaredKey, columns: [DeclaredColumn], unique: [[Name]] = [],
    references: [DeclaredReference] = [], indexes: [[Name]] = []
  ) {
    self.key = key
    self.columns = columns
    self.unique = unique
    self.references = references
    self.indexes = indexes
  }
}

/// The primary key of a table created by devices, and its way to become the travelling identifier
/// (SPEC.md §27).
public enum DeclaredKey: Sendable, Equatable {
  /// One text, which is the identifier.
  case text(Name)
  /// One integer, which each device counts itself.
  case mapped(Name)
  /// 1 to 16 columns whose values make the identifier.
  case value([DeclaredKeyColumn])

  /// The names of the key's columns.
  public var names: [Name] {
    switch self {
    case .text(let name), .mapped(let name): [name]
    case .value(let columns): columns.map(\.name)
    }
  }
}

extension DeclaredKey: ExpressibleByStringLiteral {
  /// Creates a text key with this name.
  public init(stringLiteral name: String) { self = .text(Name(name)) }
}

/// A part of a key whose value is the identifier.
public struct DeclaredKeyColumn: Sendable, Equatable {
  /// The column's name.
  public var name: Name
  /// The declared type.
  public var affinity: DeclaredColumn.Affinity

  /// Creates a part of a key.
  public init(_ name: Name, _ affinity: DeclaredColumn.Affinity) {
    (self.name, self.affinity) = (name, affinity)
  }
}

/// A column of a table created by devices.
public struct DeclaredColumn: Sendable, Equatable {
  /// The type declared by devices. SQLite converts values by it (https://sqlite.org/datatype3.html
  /// §3).
  public enum Affinity: String, Sendable, CaseIterable {
    case text, integer, real, numeric
    /// Every value stays as it is. In a strict table, there are only blobs.
    case blob
    /// Every value stays as it is, also in a strict table.
    case any

    /// Returns the type for a declaration in SQLite. Only strict tables have a type ANY; elsewhere
    /// it would convert texts to numbers.
    package func sql(isStrict: Bool = false) -> String {
      // text: a case of this type, in ASCII
      self == .any && !isStrict ? "BLOB" : rawValue.uppercased()
    }
  }

  /// A default read from the device's clock, in UTC.
  public enum Moment: String, Sendable, CaseIterable {
    /// Such as `2026-11-29 16:05:09`.
    case timestamp
    /// Such as `2026-11-29`.
    case date
    /// Such as `16:05:09`.
    case time

    /// The default in SQLite (https://sqlite.org/lang_createtable.html §3.2).
    package var sql: String {
      switch self {
      case .timestamp: "CURRENT_TIMESTAMP"
      case .date: "CURRENT_DATE"
      case .time: "CURRENT_TIME"
      }
    }
  }

  /// The column's name in the space.
  public var name: Name
  /// The declared type.
  public var affinity: Affinity
  /// True if devices refuse NULL.
  public var isRequired: Bool
  /// The value of a row inserted without one; a constant.
  public var defaultValue: Value
  /// The time that a row inserted without a value has, in place of a constant.
  public var now: Moment?

  /// Creates a column from the given parts.
  public init(
    _ name: Name, _ affinity: Affinity, isRequired: Bool = false, defaultValue: Value = .null,
    now: Moment? = nil
  ) {
    self.name = name
    self.affinity = affinity
    self.isRequired = isRequired
    self.defaultValue = defaultValue
    self.now = now
  }
}

/// A foreign key of a table created by devices.
public struct DeclaredReference: Sendable, Equatable {
  /// The effect on a row when the referenced row is deleted, or changes.
  public enum Action: String, Sendable, CaseIterable {
    case none = "no-action"
    case restrict, cascade
    case setNull = "set-null"
    case setDefault = "set-default"
  }

  /// The referring columns: 1 to 16.
  public var columns: [Name]
  /// The referenced table.
  public var table: Name
  /// The columns there, in the same order; none for the key.
  public var to: [Name]
  /// The action when the referenced row is deleted.
  public var onDelete: Action
  /// The action when those columns change.
  public var onUpdate: Action
  /// True if devices check it at the end of a transaction (`DEFERRABLE INITIALLY DEFERRED`).
  public var isDeferred = false

  /// Creates a foreign key from the given parts.
  public init(
    _ columns: [Name], to table: Name, _ to: [Name] = [], onDelete: Action = .none,
    onUpdate: Action = .none
  ) {
    self.columns = columns
    self.table = table
    self.to = to
    self.onDelete = onDelete
    self.onUpdate = onUpdate
  }
}

extension TableRules {
  /// The reason if a column's rule admits no value that its definition stores.
  var typeFault: String? {
    for column in definition?.columns ?? [] {
      let policy = policy(of: column.name)
      let type = policy == .counter ? .integer : type(of: column.name)
      guard type.isConverted(by: column.affinity) else { continue }
      let rule = policy == .counter ? "is a counter" : "has the type \(type.rawValue)"
      return "column \(column.name) \(rule), and devices store its numbers as "
        + "\(column.affinity.rawValue) by the definition; define it as \(type.rawValue)"
    }
    return nil
  }
}

extension ColumnType {
  /// Returns true if columns of the affinity convert each number of this type to another type.
  fileprivate func isConverted(by affinity: DeclaredColumn.Affinity) -> Bool {
    switch self {
    case .integer: affinity == .real || affinity == .text
    case .real: affinity == .text
    default: false
    }
  }
}

extension DeclaredTable {
  /// Returns the reason if the parts do not fit each other, or are too many.
  func fault(limits: Limits) -> String? {
    guard (1...Self.listMax).contains(key.names.count) else {
      return "a key has 1 to \(Self.listMax) columns"
    }
    var known = Set<Name>()
    for name in key.names where !known.insert(name.folded).inserted {
      return "the key names column \(name) twice"
    }
    if case .value(let columns) = key, columns.count == 1, columns[0].affinity == .text {
      return "a key of one text is its own identifier"
    }
    guard columns.count <= limits.columns else { return "more than \(limits.columns) columns" }
    for column in columns where !known.insert(column.name.folded).inserted {
      return "column \(column.name) is a duplicate, or is of the key"
    }
    if let column = columns.first(where: { $0.now != nil && $0.defaultValue != .null }) {
      return "column \(column.name): now and default exclude each other"
    }
    if let column = columns.first(where: { $0.defaultValue.hasZero }) {
      return "the default of column \(column.name) contains U+0000, which no database can create a "
        + "table with; use another default, or none"
    }
    if isStrict, let name = firstNumeric {
      return "column \(name) is numeric, which no strict table has; declare it as any"
    }
    if !keyPlaces.isEmpty {
      let all = 0..<key.names.count + columns.count
      guard keyPlaces.count == key.names.count, Set(keyPlaces).count == keyPlaces.count,
        keyPlaces.allSatisfy(all.contains)
      else { return "keyPlaces has one place among all columns for each column of the key" }
    }
    if isAutoincrement {
      guard case .mapped = key, !isWithoutRowID else {
        return "autoincrement needs a mapped key, and excludes withoutRowID"
      }
    }
    guard unique.count <= Self.uniqueMax else { return "more than \(Self.uniqueMax) unique keys" }
    guard indexes.count <= Self.indexesMax, references.count <= Self.indexesMax else {
      return "more than \(Self.indexesMax) indexes, or references"
    }
    for list in unique + indexes + references.map(\.columns) {
      guard (1...Self.listMax).contains(list.count) else {
        return "a list of columns has 1 to \(Self.listMax) of them"
      }
      guard Set(list.map(\.folded)).count == list.count else {
        return "a list names a column twice"
      }
      if let other = list.first(where: { !known.contains($0.folded) }) {
        return "there is no column \(other)"
      }
    }
    for reference in references {
      guard reference.to.isEmpty || reference.to.count == reference.columns.count else {
        return "a reference names as many columns there as here"
      }
    }
    return nil
  }

  /// Returns the columns of the key and the others in the order of the table, each by the given
  /// part.
  package func inOrder<Part>(_ keys: [Part], _ others: [Part]) -> [Part] {
    if keyPlaces.isEmpty || keyPlaces.count != keys.count { return keys + others }
    var rest = others[...]
    return (0..<keys.count + others.count).compactMap { place in
      keyPlaces.firstIndex(of: place).map { keys[$0] } ?? rest.popFirst()
    }
  }

  private var firstNumeric: Name? {
    if case .value(let parts) = key, let part = parts.first(where: { $0.affinity == .numeric }) {
      return part.name
    }
    return columns.first { $0.affinity == .numeric }?.name
  }

  private static let uniqueMax = 32
  private static let indexesMax = 64
  private static let listMax = 16
}

extension Value {
  /// True if it is a text with U+0000, which SQL cannot contain.
  fileprivate var hasZero: Bool {
    if case .text(let text) = self { text.utf8.contains(0) } else { false }
  }
}
