/// The reason why the server can never apply an operation. Codes are stable; a client keeps a new,
/// unknown one.
public struct RefusalCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The code on the wire.
  public let rawValue: String

  /// Wraps a code, even if unknown to this version.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The table belongs to the server.
  public static let reservedTable = RefusalCode(rawValue: "reserved_table")
  /// The space's schema lets only a greater role write the table.
  public static let forbiddenTable = RefusalCode(rawValue: "forbidden_table")
  /// A value has another type than the column, or a required one is missing.
  public static let schemaViolation = RefusalCode(rawValue: "schema_violation")
  /// Another record holds the values of a unique key.
  public static let uniqueTaken = RefusalCode(rawValue: "unique_taken")
  /// A batch operation's condition cannot be evaluated, or matches too much.
  public static let invalidPredicate = RefusalCode(rawValue: "invalid_predicate")
  /// The record would be larger than a record may be.
  public static let recordTooLarge = RefusalCode(rawValue: "record_too_large")
  /// A packet's batch operations cost too much to evaluate.
  public static let batchTooExpensive = RefusalCode(rawValue: "batch_too_expensive")
  /// The space has as many tables as it may have.
  public static let tooManyTables = RefusalCode(rawValue: "too_many_tables")
  /// The table has as many columns as it may have.
  public static let tooManyColumns = RefusalCode(rawValue: "too_many_columns")
  /// Another device overruled values with a reason. Only a device uses it, for its quarantine; the
  /// server refuses nothing with it.
  public static let overruled = RefusalCode(rawValue: "overruled")

  /// The codes of this version, in the order of SPEC.md §12.
  public static let known: [RefusalCode] = [
    .reservedTable, .forbiddenTable, .schemaViolation, .uniqueTaken, .invalidPredicate,
    .recordTooLarge, .batchTooExpensive, .tooManyTables, .tooManyColumns,
  ]

  public var description: String { rawValue }
}

/// One operation that can never be applied as it is, and the reason (SPEC.md §12).
public struct Refusal: Sendable, Equatable {
  /// The operation; it is in the refused packet, or in an earlier part of the transaction.
  public internal(set) var operation: OperationID
  /// The stable code.
  public internal(set) var code: RefusalCode
  /// The fault, for users.
  public internal(set) var detail: String
  /// The operation's table.
  public internal(set) var table: Name
  /// The operation's record.
  public internal(set) var record: Name
  /// The record with the unique key; `nil` for other codes.
  public internal(set) var holder: Name?

  /// Creates a refusal from the given parts.
  public init(
    operation: OperationID, code: RefusalCode, detail: String, table: Name, record: Name,
    holder: Name? = nil
  ) {
    self.operation = operation
    self.code = code
    self.detail = detail
    self.table = table
    self.record = record
    self.holder = holder
  }

  /// Creates a refusal of an operation on one record.
  package init(
    _ operation: SyncOperation, _ code: RefusalCode, _ detail: String, holder: Name? = nil
  ) {
    self.init(
      operation: operation.id, code: code, detail: detail, table: operation.key.table,
      record: operation.key.record, holder: holder)
  }
}
