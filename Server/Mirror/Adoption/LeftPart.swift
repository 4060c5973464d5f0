import FerryProtocol

extension AdoptionPlan {
  /// A part of a table left behind.
  package struct LeftPart: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable {
      case column
      case unique = "unique key"
      case reference = "foreign key"
      case write = "writes of devices"
    }

    package var kind: Kind
    /// Empty for the whole table.
    package var columns: [String]
    package var table: Name
    package var reason: String

    init(kind: Kind, columns: [String], of table: Name, _ reason: String) {
      (self.kind, self.columns, self.table, self.reason) = (kind, columns, table, reason)
    }

    package var description: String {
      let names = columns.joined(separator: ", ")
      if kind == .column { return "column \(table).\(names): \(reason)" }
      return columns.isEmpty
        ? "\(kind.rawValue) to table \(table): \(reason)"
        : "\(kind.rawValue) (\(names)) of table \(table): \(reason)"
    }
  }
}
