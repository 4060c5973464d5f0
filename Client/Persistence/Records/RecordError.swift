import FerryProtocol

/// A record and a table do not fit each other. The message names the table, the column and the
/// value.
///
/// ```swift
/// do {
///   _ = try Note.all.where(Field("titel") == "Milk").fetch(database)
/// } catch let error as RecordError where error.kind == .unknownColumn {
///   print(error)  // table notes has no column titel; it has id, title, done
/// }
/// ```
public struct RecordError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of errors.
  public enum Kind: Sendable, Equatable {
    /// The table has no such column.
    case unknownColumn
    /// A result has no column for a property.
    case missingColumn
    /// A value does not fit the property or the column.
    case wrongValue
    /// The table has no key, or the record has no value for it.
    case noKey
    /// The call itself is not valid.
    case invalid
  }

  /// The kind of the error.
  public let kind: Kind
  /// The table.
  public let table: Name
  /// The column, if there is one.
  public let column: Name?
  /// The event and the reason.
  public let message: String

  init(_ kind: Kind, table: Name, column: Name? = nil, _ message: String) {
    (self.kind, self.table, self.column, self.message) = (kind, table, column, message)
  }

  public var description: String { message }

  /// Returns the error for a value of another type.
  static func wrong(_ value: Value, isNot type: String, table: Name, column: Name) -> RecordError {
    RecordError(
      .wrongValue, table: table, column: column,
      "\(place(table, column)): \(value.shown) is not \(type)")
  }

  /// Returns the error for a value that no column can store.
  static func unstorable(_ value: String, table: Name, column: Name) -> RecordError {
    RecordError(
      .wrongValue, table: table, column: column,
      "\(place(table, column)): \(value) cannot be stored")
  }

  /// Columns passed from record to record have no table.
  private static func place(_ table: Name, _ column: Name) -> String {
    table.isEmpty ? "column \(column)" : "table \(table), column \(column)"
  }
}

extension Value {
  /// For messages.
  var shown: String {
    switch self {
    case .null: "NULL"
    case .integer(let integer): "the integer \(integer)"
    case .real(let real): "the real \(real)"
    case .text(let text): "the text '\(text.prefix(40))\(text.count > 40 ? "…" : "")'"
    case .blob(let bytes): "a blob of \(bytes.count) bytes"
    }
  }
}
