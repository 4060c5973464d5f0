/// A row of a table in PostgreSQL and on devices: the columns of the key, joined by slashes.
package struct RowName: Sendable, Hashable, Comparable, CustomStringConvertible {
  package var table: String
  package var key: String

  package init(_ table: String, _ key: String) { (self.table, self.key) = (table, key) }

  package var description: String { "\(table)/\(key)" }

  package static func < (left: RowName, right: RowName) -> Bool {
    (left.table, left.key) < (right.table, right.key)
  }
}

/// Rows with the texts of their columns; NULL columns are left out.
package typealias NamedRows = [RowName: [String: String]]

/// A transaction of a device's user or of a program, as known to the author.
package struct AuthoredWrite: Sendable, Equatable {
  /// A value written to a column of an existing row.
  package struct Setting: Sendable, Hashable {
    package var row: RowName
    package var column: String
    package var value: String

    package init(_ row: RowName, _ column: String, _ value: String) {
      (self.row, self.column, self.value) = (row, column, value)
    }
  }

  package var author: String
  /// True if the author knows of the commit. Another one may be committed or not.
  package var isAcknowledged: Bool
  package var inserted: [RowName] = []
  /// The parents of inserted rows with whose delete the rows go.
  package var parents: [RowName: RowName] = [:]
  /// The values of each writer are never the same twice.
  package var set: [Setting] = []
  package var deleted: [RowName] = []

  package init(author: String, isAcknowledged: Bool) {
    (self.author, self.isAcknowledged) = (author, isAcknowledged)
  }
}
