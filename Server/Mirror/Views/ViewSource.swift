import FerryProtocol

/// A view of the company as a read-only table of the space, or a table that the mirror's role may only
/// read. No trigger and no log sees its changes: the mirror compares a copy of the rows with it.
/// Triggers of the copy capture the differences, as those of a program.
package struct ViewSource: Codable, Sendable, Equatable {
  /// The columns that identify a row; empty for the primary key of a table.
  package var key: [String]
  /// The SQL of the rows; `nil` for those of the view or table with the name.
  package var query: String?

  package init(key: [String] = [], query: String? = nil) { (self.key, self.query) = (key, query) }

  /// Returns a query for a FROM clause. A comment in it ends with the line.
  static func relation(_ query: String) -> String { "(\(query)\n)" }
}

extension MirrorConfiguration {
  /// Returns how a table is read if the mirror only reads it; `nil` for others.
  func view(of table: CompanyTable) -> ViewSource? {
    let kinds = ["v", "m", "f"]
    return adoptions[table.name]?.view ?? (kinds.contains(table.kind) ? ViewSource() : nil)
  }

  /// True if a mirror of these settings compares copies.
  var hasViews: Bool { adoptions.values.contains { $0.view != nil } }
}

extension CompanyTable {
  /// Shows the table as the copy of it: without the parts that concern writes alone.
  ///
  /// - Throws: ``MirrorFault`` if the key is unknown.
  mutating func show(_ view: ViewSource) throws(MirrorFault) {
    let key = view.key.isEmpty ? self.key : view.key
    guard !key.isEmpty else {
      let lack = kind == "r" || kind == "p" ? "it has no primary key" : "it is a view without a key"
      throw MirrorFault(
        description:
          "table \(name) cannot be adopted: \(lack); name the columns that identify a row "
          + "with --view-key \(name)=COLUMN,…")
    }
    if let absent = key.first(where: { column($0) == nil }) {
      throw MirrorFault(description: "table \(name) has no column \(absent) for its key")
    }
    var copy = CompanyTable(name: name)
    copy.view = ViewSource(key: key, query: view.query)
    copy.key = key
    copy.columns = columns.map { column in
      var column = column
      (column.isRequired, column.isGenerated, column.identity) = (false, false, "")
      (column.defaultSQL, column.qualifiedDefault) = (nil, nil)
      (column.isUpdatable, column.isInsertable) = (false, false)
      return column
    }
    copy.missingRights =
      missingRights.filter { $0 == "SELECT" } + WriteLimits.Right.allCases.map(\.rawValue)
    self = copy
  }
}
