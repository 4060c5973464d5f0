import FerryProtocol

/// One row of a result.
public struct Row: Sendable, Equatable {
  /// The columns' names, in order.
  public let names: [String]
  /// The columns' values, in the same order.
  public let values: [Value]

  /// Returns the first column of this name; NULL if there is none.
  public subscript(name: String) -> Value {
    names.firstIndex { Name($0) == Name(name) }.map { values[$0] } ?? .null
  }
}
