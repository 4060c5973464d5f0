/// An existing record that a new schema does not allow (SPEC.md §11).
public struct SchemaViolation: Sendable, Equatable {
  /// The record's table.
  public internal(set) var table: Name
  /// The record's identifier.
  public internal(set) var record: Name
  /// The fault, for users.
  public internal(set) var detail: String
  /// The record with the same values of a new unique key; `nil` if there is none.
  public internal(set) var holder: Name?

  /// Creates a violation from the given parts.
  public init(table: Name, record: Name, detail: String, holder: Name? = nil) {
    self.table = table
    self.record = record
    self.detail = detail
    self.holder = holder
  }
}

extension SchemaViolation: JSONMessage {
  package static var blank: Self { Self(table: "", record: "", detail: "") }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.defaulted("table", &table)
    try json.defaulted("record", &record)
    try json.defaulted("detail", &detail)
    try json.omitting("holder", &holder, nil, as: JSONForm.value.nullable)
  }
}
