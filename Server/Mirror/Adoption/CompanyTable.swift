import FerryProtocol

/// A table of a company, as the catalog of PostgreSQL describes it.
struct CompanyTable: Sendable, Equatable {
  var name: String
  /// The code of the kind in `pg_class.relkind`: `r` for an ordinary table.
  var kind = "r"
  /// True if it inherits from another table, or another one from it.
  var isDivided = false
  /// The partitioned table of a partition.
  var parent: String?
  /// The reason if a partition cannot be adopted with the table.
  var partitionFault: String?
  var columns: [CompanyColumn] = []
  /// The columns of the primary key, in order; empty if there is none.
  var key: [String] = []
  /// True if the primary key is checked at commit only.
  var isKeyDeferrable = false
  var unique: [[String]] = []
  var references: [CompanyReference] = []
  /// The sequence that counts the key; `nil` if there is none.
  var sequence: KeySequence?
  /// Rights on the table missing for the database's user.
  var missingRights: [String] = []
  /// The rights without which the table cannot be adopted; without others, devices' writes go back.
  static let requiredRights = ["SELECT", "UPDATE", "TRIGGER"]

  /// Set if the mirror only reads the rows, and compares them with a copy.
  var view: ViewSource?

  /// The missing ones of the required rights.
  var lackingRights: [String] {
    missingRights.filter { view == nil ? Self.requiredRights.contains($0) : $0 == "SELECT" }
  }

  func column(_ name: String) -> CompanyColumn? { columns.first { Name($0.name) == Name(name) } }

  /// Shows the table as it would be with all required rights.
  mutating func grantRequiredRights() {
    let granted = lackingRights
    missingRights.removeAll(where: granted.contains)
    // text: a list of rights
    guard granted.contains("UPDATE") else { return }
    for place in columns.indices { columns[place].isUpdatable = true }
  }
}

/// A column of a company's table.
struct CompanyColumn: Sendable, Equatable {
  var name: String
  /// The name of the type behind all domains, in the schema `pg_catalog`; `nil` for a type of
  /// another schema.
  var type: String?
  /// The same type with its parts.
  var origin: CompanyType?
  /// The type, as in the SQL of the table.
  var shownType: String
  /// The digits of a `numeric`; `nil` if they have no limit.
  var precision: Int?
  var isRequired = false
  /// The SQL of the default value.
  var defaultSQL: String?
  /// The same SQL with the schemas of all names.
  var qualifiedDefault: String?
  /// True if PostgreSQL computes it from others.
  var isGenerated = false
  /// `a` if PostgreSQL always counts it, `d` if it does so by default, and empty if it does not.
  var identity = ""
  /// False if the mirror's role may not change it.
  var isUpdatable = true
  /// False if the mirror's role may not set it in a new row.
  var isInsertable = true
}

/// A foreign key of a company's table.
struct CompanyReference: Sendable, Equatable {
  var columns: [String]
  /// The referenced table; `nil` if it is in another schema.
  var table: String?
  var to: [String]
  /// The codes of `pg_constraint.confdeltype` and `confupdtype`.
  var onDelete = "a"
  var onUpdate = "a"
  /// True if PostgreSQL has checked it for all rows.
  var isValid = true
}

/// The travelling part of a company's table.
package struct MirrorAdoption: Codable, Sendable, Equatable {
  /// The travelling columns, with those of the key; empty for all possible ones.
  package var columns: [String]
  /// True if a person has chosen the columns: later ones do not travel.
  package var isChosen = false
  /// The SQL of the defaults of required columns, by name: devices that do not know a column send no
  /// value.
  package var defaults: [String: String] = [:]
  /// The SQL of whether a row travels; `nil` for all rows.
  package var condition: String?
  /// The column with the space of a row, if the table has rows of several spaces.
  package var space: SpaceColumn?
  /// The columns that travel as texts of PostgreSQL's types.
  package var carried: [CarriedColumn] = []
  /// True if the rows are in partitions.
  package var isPartitioned = false
  /// The writes that the mirror's role may not do.
  package var limits = WriteLimits()
  /// Set for rows that the mirror only reads, and compares with a copy.
  package var view: ViewSource?
  /// The chosen meaning of the key; `nil` for the default.
  package var key: MirrorKey?

  package init(columns: [String] = [], condition: String? = nil, space: SpaceColumn? = nil) {
    (self.columns, self.condition, self.space) = (columns, condition, space)
  }
}

/// A column of a company's table that travels as the text of a type of PostgreSQL.
package struct CarriedColumn: Codable, Sendable, Equatable {
  package var name: String
  package var type: CarriedType
}

/// The meaning of a company's key with a number.
package enum MirrorKey: String, Codable, Sendable, CaseIterable {
  /// The company's sequence counts the rows, and each device counts by itself. The default for keys
  /// with a sequence.
  case mapped
  /// The same number is the same record on all sides.
  case value
}

/// A column of a company's table with the space of each row.
package struct SpaceColumn: Codable, Sendable, Equatable {
  package var name: String
  /// The value of the mirror's space, as PostgreSQL writes it.
  package var value: String

  package init(_ name: String, value: String) { (self.name, self.value) = (name, value) }
}
