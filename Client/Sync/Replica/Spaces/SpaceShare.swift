import FerryProtocol
import FerrySQLite

/// The rows of a table in one space: a column of the table has the space's name (SPEC.md §29).
package struct SpaceShare: Sendable, Equatable {
  /// The column's name in this file.
  let column: Name
  /// The space; `nil` before the ledger has one: no row belongs to it.
  let space: String?

  /// Returns the condition of rows in the space.
  ///
  /// - Parameter side: the row's name in the statement, such as `t` or `NEW`.
  func isOwn(_ side: String? = nil) -> String {
    guard let space else { return "0" }
    let place = (side.map { "\($0)." } ?? "") + quoted(column)
    return "(typeof(\(place)) = 'text' AND \(place) COLLATE BINARY = \(quoted(literal: space)))"
  }
}

extension TableSchema {
  /// The table's rows in the space, as a part of FROM.
  var rows: String {
    let place = quoted(local)
    return share.map { "(SELECT * FROM \(place) WHERE \($0.isOwn()))" } ?? place
  }

  /// Returns a condition, and that the row belongs to the space.
  func own(_ condition: String, in side: String? = nil) -> String {
    share.map { "\(condition) AND \($0.isOwn(side))" } ?? condition
  }
}
