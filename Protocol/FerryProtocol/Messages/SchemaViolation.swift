/// An existing record that a new schema does not allow (SPEC.md §11).
public struct SchemaViolation: Sendable, Equatable {
  /// The record's table.
  public let table: Name
  /// The record's identifier.
  public let record: Name
  /// The fault, for users.
  public let detail: String
  /// The record with the same values of a new unique key; `nil` if there is none.
  public let holder: Name?

  /// Creates a violation from the given parts.
  public init(table: Name, record: Name, detail: String, holder: Name? = nil) {
    self.table = table
    self.record = record
    self.detail = detail
    self.holder = holder
  }
}

extension JSONWriter {
  mutating func violation(_ violation: SchemaViolation) {
    object { json in
      json.member("table", violation.table)
      json.member("record", violation.record)
      json.member("detail", violation.detail)
      json.member("holder", ifPresent: violation.holder)
    }
  }
}

extension JSONReader {
  mutating func violation() throws(MalformedMessage) -> SchemaViolation {
    var (table, record): (Name, Name) = ("", "")
    var detail = ""
    var holder: Name?
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "table": table = try reader.name()
      case "record": record = try reader.name()
      case "detail": detail = try reader.string()
      case "holder": if try !reader.null() { holder = try reader.name() }
      default: try reader.skip()
      }
    }
    return SchemaViolation(table: table, record: record, detail: detail, holder: holder)
  }
}
