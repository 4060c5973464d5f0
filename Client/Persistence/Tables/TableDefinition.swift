import FerryProtocol

/// A column of a table created on first use.
///
/// ```swift
/// let columns: [ColumnDefinition] = [
///   .text("id").primaryKey(), .text("title").notNull(), .text("list").references("lists", "id"),
///   .integer("done").notNull().default(false),
/// ]
/// ```
public struct ColumnDefinition: Sendable, Equatable {
  /// The rule for rows with a reference to a deleted row.
  public enum DeletionRule: String, Sendable {
    case restrict = "RESTRICT"
    case cascade = "CASCADE"
    case setNull = "SET NULL"
  }

  let name: Name
  let type: String
  var isKey = false
  var isRequired = false
  private var rest = ""

  private init(_ name: Name, _ type: String) { (self.name, self.type) = (name, type) }

  /// A column for texts, dates, UUIDs and nested values.
  public static func text(_ name: Name) -> Self { Self(name, "TEXT") }
  /// A column for integers and truth values.
  public static func integer(_ name: Name) -> Self { Self(name, "INTEGER") }
  /// A column for reals.
  public static func real(_ name: Name) -> Self { Self(name, "REAL") }
  /// A column for bytes.
  public static func blob(_ name: Name) -> Self { Self(name, "BLOB") }

  /// Makes it part of the primary key. A key of one text column suits a tracked table.
  public func primaryKey() -> Self { with { $0.isKey = true } }
  /// Rejects NULL.
  public func notNull() -> Self { with { $0.isRequired = true } }
  /// Rejects a value found in another row.
  public func unique() -> Self { with { $0.rest += " UNIQUE" } }

  /// Rejects a value missing from a column of another table.
  public func references(
    _ table: Name, _ column: Name, onDelete rule: DeletionRule = .restrict
  ) -> Self {
    with { $0.rest += " REFERENCES \(quoted(table))(\(quoted(column))) ON DELETE \(rule.rawValue)" }
  }

  /// Gives rows this value if an insert leaves the column out.
  public func `default`(_ value: some ColumnValue) -> Self {
    with { $0.rest += " DEFAULT \(value.columnValue.literal)" }
  }

  private func with(_ change: (inout Self) -> Void) -> Self {
    var copy = self
    change(&copy)
    return copy
  }

  fileprivate func sql(isOnlyKey: Bool) -> String {
    // SQLite would allow NULL in a key other than an integer.
    let isRequired = isRequired || (isKey && type != "INTEGER")
    return "\(quoted(name)) \(type)\(isOnlyKey ? " PRIMARY KEY" : "")"
      + "\(isRequired ? " NOT NULL" : "")\(rest)"
  }
}

/// An index of a table created on first use.
public struct IndexDefinition: Sendable, Equatable {
  let columns: [Name]
  let isUnique: Bool

  /// Creates an index over columns, in this order.
  public init(_ columns: Name..., unique: Bool = false) {
    (self.columns, isUnique) = (columns, unique)
  }
}

/// A table's name and, if it is created on first use, the columns and indexes.
public struct TableDefinition: Sendable, Equatable {
  /// The table's name.
  public let name: Name
  let columns: [ColumnDefinition]
  let indexes: [IndexDefinition]

  /// Creates a definition. A table without columns must exist in the file.
  public init(
    _ name: Name, _ columns: [ColumnDefinition] = [], indexes: [IndexDefinition] = []
  ) {
    (self.name, self.columns, self.indexes) = (name, columns, indexes)
  }

  /// The statements to create the table.
  var statements: [String] {
    let keys = columns.filter(\.isKey)
    // SQLite gives a rowid only to a key in the column's own clause.
    var parts = columns.map { $0.sql(isOnlyKey: $0.isKey && keys.count == 1) }
    if keys.count > 1 {
      parts.append("PRIMARY KEY (\(keys.map { quoted($0.name) }.joined(separator: ", ")))")
    }
    return ["CREATE TABLE \(quoted(name))(\(parts.joined(separator: ", ")))"]
      + indexes.map { index in
        // Parentheses keep the names of two tables apart.
        let list = index.columns.map(\.text).joined(separator: ",")
        return
          "CREATE \(index.isUnique ? "UNIQUE " : "")INDEX \(quoted(Name("index of \(name)(\(list))"))) "
          + "ON \(quoted(name))(\(index.columns.map(quoted).joined(separator: ", ")))"
      }
  }

  /// The table as it will be once it is created.
  var info: TableInfo {
    let keys = columns.filter(\.isKey).map(\.name)
    return TableInfo(
      name,
      columns.map { column in
        ColumnInfo(
          name: column.name, type: column.type, isRequired: column.isRequired,
          keyPlace: (keys.firstIndex(of: column.name) ?? -1) + 1, isGenerated: false)
      }, exists: false)
  }
}

extension Value {
  /// The value as SQL, for a column's default; a parameter is not allowed there.
  package var literal: String {
    switch self {
    case .null: "NULL"
    case .integer(let integer): "(\(integer))"
    case .real(let real): real.isFinite ? "(\(real))" : real < 0 ? "(-9e999)" : "(9e999)"
    case .text(let text): quoted(literal: text)
    case .blob(let bytes): quoted(blob: bytes)
    }
  }
}
