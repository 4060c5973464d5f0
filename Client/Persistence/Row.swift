import FerryProtocol

/// One row of a result.
///
/// ```swift
/// for row in try database.query("SELECT id, title, due FROM notes") {
///   let title = try row.decode(String.self, "title")
///   let due = try row.decode(Date?.self, "due")
///   print(title, due ?? "no date")
/// }
/// ```
public struct Row: Sendable, Equatable {
  /// The columns' names, in order.
  public let names: [String]
  /// The columns' values, in the same order.
  public let values: [Value]

  /// Returns the value of the first column of this name; NULL if there is none. Only for queries of
  /// Ferry's own: a user's misspelt name must not be mistaken for NULL, so ``value(_:)`` throws.
  package subscript(name: String) -> Value {
    names.firstIndex { Name($0) == Name(name) }.map { values[$0] } ?? .null
  }
}

/// The result of one statement of a script.
package struct StatementResult: Sendable, Equatable {
  /// The names of the columns, in order; none if the statement returns no rows.
  package let names: [String]
  /// The rows of the result.
  package var rows: [Row] = []
  /// The number of changed rows.
  package var changes = 0
}
