import FerryProtocol

/// A table of a company, as the catalog of PostgreSQL describes it.
struct CompanyTable: Sendable, Equatable {
  var name: String
  /// The code of its kind in `pg_class.relkind`: `r` for an ordinary table.
  var kind = "r"
  /// Whether rows of it are in other tables, or whether it is a part of another one.
  var isDivided = false
  var columns: [CompanyColumn] = []
  /// The columns of its primary key, in their order; empty if it has none.
  var key: [String] = []
  /// Whether the primary key is checked at commit only.
  var isKeyDeferrable = false
  var unique: [[String]] = []
  var references: [CompanyReference] = []
  /// Rights on the table that the user of the database lacks.
  var missingRights: [String] = []

  func column(_ name: String) -> CompanyColumn? { columns.first { Name($0.name) == Name(name) } }
}

/// A column of a company's table.
struct CompanyColumn: Sendable, Equatable {
  var name: String
  /// The name of its type in the schema `pg_catalog`; `nil` for a type of another schema.
  var type: String?
  /// Its type, as the SQL of the table has it.
  var shownType: String
  /// The digits of a `numeric`; `nil` if they have no limit.
  var precision: Int?
  var isRequired = false
  /// The SQL of its default value.
  var defaultSQL: String?
  /// Whether PostgreSQL computes it from others.
  var isGenerated = false
  /// `a` if PostgreSQL always counts it, `d` if it does so by default, and empty if it does not.
  var identity = ""
}

/// A foreign key of a company's table.
struct CompanyReference: Sendable, Equatable {
  var columns: [String]
  /// The table that it refers to; `nil` if that is in another schema.
  var table: String?
  var to: [String]
  /// The codes of `pg_constraint.confdeltype` and `confupdtype`.
  var onDelete = "a"
  var onUpdate = "a"
  /// Whether PostgreSQL has checked it for all rows.
  var isValid = true
}

/// The part of a company's table that travels.
package struct MirrorAdoption: Codable, Sendable, Equatable {
  /// The columns that travel, with those of the key; empty for all that can.
  package var columns: [String]
  /// The SQL of whether a row travels; `nil` for all rows.
  package var condition: String?
  /// The column that names the space of a row, if the table has rows of several spaces.
  package var space: SpaceColumn?

  package init(columns: [String] = [], condition: String? = nil, space: SpaceColumn? = nil) {
    (self.columns, self.condition, self.space) = (columns, condition, space)
  }
}

/// A column of a company's table that names the space of each row.
package struct SpaceColumn: Codable, Sendable, Equatable {
  package var name: String
  /// The value of the mirror's space, as PostgreSQL writes it.
  package var value: String

  package init(_ name: String, value: String) { (self.name, self.value) = (name, value) }
}
