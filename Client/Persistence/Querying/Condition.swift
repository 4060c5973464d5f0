import FerryProtocol

/// A column in a condition or an order.
///
/// ```swift
/// let condition = Field("done") == false && Field("title").like("Buy %")
/// ```
public struct Field: Sendable {
  /// The column's name.
  public let name: Name

  /// Names a column. The query checks the name when it runs.
  public init(_ name: Name) { self.name = name }

  /// The smallest value first; NULL is the smallest.
  public var ascending: Ordering { Ordering(name: name, isDescending: false) }
  /// The largest value first.
  public var descending: Ordering { Ordering(name: name, isDescending: true) }

  /// True for rows with this value; for `nil`, for rows without a value.
  public static func == (field: Field, value: some ColumnValue) -> Condition {
    let value = value.columnValue
    return value == .null ? .isNull(field.name) : .compare(field.name, .equal, value)
  }
  /// True for rows with another value, but not for NULL; for `nil`, for rows with a value.
  public static func != (field: Field, value: some ColumnValue) -> Condition {
    let value = value.columnValue
    return value == .null ? .not(.isNull(field.name)) : .compare(field.name, .unequal, value)
  }
  /// True for smaller values.
  public static func < (field: Field, value: some ColumnValue) -> Condition {
    .compare(field.name, .less, value.columnValue)
  }
  /// True for this value and smaller ones.
  public static func <= (field: Field, value: some ColumnValue) -> Condition {
    .compare(field.name, .lessOrEqual, value.columnValue)
  }
  /// True for larger values.
  public static func > (field: Field, value: some ColumnValue) -> Condition {
    .compare(field.name, .greater, value.columnValue)
  }
  /// True for this value and larger ones.
  public static func >= (field: Field, value: some ColumnValue) -> Condition {
    .compare(field.name, .greaterOrEqual, value.columnValue)
  }

  /// True for one of the values; never for NULL.
  public func `in`(_ values: some Sequence<some ColumnValue>) -> Condition {
    .among(name, values.map(\.columnValue))
  }
  /// True for values from `low` to `high`, both included.
  public func between(_ low: some ColumnValue, and high: some ColumnValue) -> Condition {
    .between(name, low.columnValue, high.columnValue)
  }
  /// True for texts of this form: `%` is any text, `_` any character, `\` makes the next character
  /// an ordinary one. ASCII letters match in either case.
  public func like(_ pattern: String) -> Condition { .like(name, pattern) }
  /// True for NULL.
  public var isNull: Condition { .isNull(name) }
}

/// A condition on rows, as a value. ``Field`` makes conditions, and `&&`, `||` and `!` join them.
///
/// The meaning is SQLite's: a comparison with NULL is neither true nor false, and only rows are
/// found that make the whole true.
public indirect enum Condition: Sendable, Hashable {
  case always
  case compare(Name, PredicateComparison, Value)
  case among(Name, [Value])
  case between(Name, Value, Value)
  case like(Name, String)
  case isNull(Name)
  case and([Condition])
  case or([Condition])
  case not(Condition)

  /// True if both are.
  public static func && (left: Condition, right: Condition) -> Condition {
    switch (left, right) {
    case (.always, _): right
    case (_, .always): left
    case (.and(let parts), _): .and(parts + [right])
    default: .and([left, right])
    }
  }
  /// True if one is, or both are.
  public static func || (left: Condition, right: Condition) -> Condition {
    if case .or(let parts) = left { .or(parts + [right]) } else { .or([left, right]) }
  }
  /// True if the condition is false.
  public static prefix func ! (condition: Condition) -> Condition { .not(condition) }
}

/// A column to sort rows by.
public struct Ordering: Sendable, Equatable {
  let name: Name
  let isDescending: Bool
}
