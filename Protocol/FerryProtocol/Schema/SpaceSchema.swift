/// The rules of a space for its tables: the merge of conflicts, the allowed values, and the
/// permission to write. They are stored with the space and known to both sides (SPEC.md §11).
/// Unnamed tables follow ``TableRules/standard``.
public struct SpaceSchema: Sendable, Equatable {
  /// Grows with each change of the schema; 0 if none was ever declared.
  public var version: Int64
  /// The oldest permitted protocol of a device.
  public var minimumProtocol: Int
  /// True if every packet has to state a cursor. So none enters a history unknown to its device.
  public var requiresCursor: Bool
  /// The rules of the tables with any, by name.
  public var tables: [Name: TableRules] { didSet { hasAliases = Self.hasAliases(tables) } }
  /// True if a table or a column may have another name on a device.
  package private(set) var hasAliases: Bool

  /// Creates a schema from the given parts.
  public init(
    version: Int64 = 0, minimumProtocol: Int = 1, requiresCursor: Bool = false,
    tables: [Name: TableRules] = [:]
  ) {
    self.version = version
    self.minimumProtocol = minimumProtocol
    self.requiresCursor = requiresCursor
    self.tables = tables
    hasAliases = Self.hasAliases(tables)
  }

  private static func hasAliases(_ tables: [Name: TableRules]) -> Bool {
    tables.values.contains { rules in
      !rules.aliases.isEmpty || rules.columns.values.contains { !$0.aliases.isEmpty }
    }
  }

  /// Declares nothing: every table follows ``TableRules/standard``.
  public static let empty = SpaceSchema()

  /// Returns the rules of one table; the standard ones if the schema does not name it.
  public func rules(for table: Name) -> TableRules {
    tables.isEmpty ? .standard : tables[table] ?? .standard
  }

  /// Returns the policy of one column's conflicts.
  public func policy(of column: Name, in table: Name) -> ConflictPolicy {
    rules(for: table).policy(of: column)
  }
}

/// The rules of a space for one table.
public struct TableRules: Sendable, Equatable {
  /// The policy of columns without a separate policy.
  public var policy: ConflictPolicy { didSet { isPlain = Self.isPlain(self) } }
  /// The rule for a delete in conflict with edits.
  public var deletes: DeletePolicy { didSet { isPlain = Self.isPlain(self) } }
  /// The lowest role with which a device may write the table: `writer` or `admin`.
  public var write: Role
  /// The columns with rules, by name.
  public var columns: [Name: ColumnRules] { didSet { isPlain = Self.isPlain(self) } }
  /// Lists of columns whose values no two records of the space may share.
  public var unique: [[Name]]
  /// The rules of foreign keys whose rows and parents clash; others follow their ON DELETE.
  public var clashes: [DeclaredClash]
  /// Other permitted names of the table on a device.
  public var aliases: [Name]
  /// The definition from which devices create the table; `nil` if none was published.
  public var definition: DeclaredTable?
  /// True if every column is last-writer-wins and deletes win, as for a record without any rules.
  package private(set) var isPlain = true
  /// True for the rules that decide about an authority's operations.
  package var isAuthority = false

  /// Creates rules from their parts.
  public init(
    policy: ConflictPolicy = .lastWriterWins, deletes: DeletePolicy = .deleteWins,
    write: Role = .writer, columns: [Name: ColumnRules] = [:], unique: [[Name]] = [],
    clashes: [DeclaredClash] = [], aliases: [Name] = [], definition: DeclaredTable? = nil
  ) {
    self.policy = policy
    self.deletes = deletes
    self.write = write
    self.columns = columns
    self.unique = unique
    self.clashes = clashes
    self.aliases = aliases
    self.definition = definition
    isPlain = Self.isPlain(self)
  }

  /// Last writer wins, deletes win, every writer may write anything.
  public static let standard = TableRules()

  /// Returns the policy of one column's conflicts.
  public func policy(of column: Name) -> ConflictPolicy {
    columns.isEmpty ? policy : columns[column]?.policy ?? policy
  }

  /// Returns the declared type of one column.
  public func type(of column: Name) -> ColumnType { columns[column]?.type ?? .any }

  private static func isPlain(_ rules: TableRules) -> Bool {
    rules.policy == .lastWriterWins && rules.deletes == .deleteWins
      && rules.columns.values.allSatisfy { ($0.policy ?? .lastWriterWins) == .lastWriterWins }
  }
}

/// The rules of a space for one column.
public struct ColumnRules: Sendable, Equatable {
  /// The policy of conflicts; `nil` is the table's policy.
  public var policy: ConflictPolicy?
  /// The allowed values. A counter holds integers.
  public var type: ColumnType
  /// True if every insert has to set a value other than NULL, and no update may remove it.
  public var isRequired: Bool
  /// Other permitted names of the column on a device.
  public var aliases: [Name]

  /// Creates rules from their parts. A counter's type is integer if none is given.
  public init(
    policy: ConflictPolicy? = nil, type: ColumnType? = nil, isRequired: Bool = false,
    aliases: [Name] = []
  ) {
    self.policy = policy
    self.type = type ?? (policy == .counter ? .integer : .any)
    self.isRequired = isRequired
    self.aliases = aliases
  }
}
